// Draws what the page's data hold: for each query a large chart, small ones for its cells, and a table to copy from.
"use strict";
(() => {
  const DAY = 86400000;
  const FEW = 12; // small charts at first, and more at each press of the button
  const { data, span, when, element, number, scaled, widest, readable, copied, drawAll } = slackwater;

  // ---- words

  const label = (cell) => cell.join(", ");
  const daily = (series) =>
    series.spans ? series.spans.every((one) => one.every((time) => time % DAY === 0)) : series.window % DAY === 0 && series.first % DAY === 0;

  function told(series, line, place) {
    const value = number(line.v[place]);
    const [low, high] = [line.lo[place], line.hi[place]];
    if (line.v[place] === null) return "unknown";
    if (low === null) return `${value} (${series.repeated?.[place] ? "repeated, " : ""}no known interval)`;
    return `${value} (${number(low)} to ${number(high)})`;
  }

  // ---- a chart

  // Moments whose labels, of at most two lines, fit next to each other in this width; whole days if windows are days.
  function ticks(series, times, width) {
    const [first, last] = [times[0], times.at(-1)];
    const spread = times.length > 1 ? d3.utcTicks(first, last, Math.max(2, Math.floor(width / 60))) : times;
    const days = daily(series) ? [...new Set(spread.map((time) => +d3.utcDay.floor(time)))].map((time) => new Date(time)) : spread;
    const found = days.filter((time) => time >= first);
    const all = (part) => found.every((time) => +part(time) === +time);
    const own = all(d3.utcYear) ? d3.utcFormat("%Y") : all(d3.utcMonth) ? d3.utcFormat("%b") : all(d3.utcDay) ? d3.utcFormat("%-d %b") : d3.utcFormat("%H:%M");
    const rest = all(d3.utcYear) ? () => "" : all(d3.utcDay) ? d3.utcFormat("%Y") : d3.utcFormat("%-d %b");
    const labelled = (kept) => kept.map((time, place) => {
      const more = rest(time);
      return place && more === rest(kept[place - 1]) ? own(time) : `${own(time)}\n${more}`.trimEnd();
    });
    const fits = (kept) => {
      const half = labelled(kept).map((text) => widest(text.split("\n")) / 2);
      return kept.every((time, at) => !at || ((time - kept[at - 1]) / (last - first)) * width >= half[at] + half[at - 1] + 12);
    };
    let step = 1;
    while (!fits(found.filter((_, at) => at % step === 0))) step += 1;
    const kept = found.filter((_, at) => at % step === 0), labels = labelled(kept);
    return { ticks: kept, tickFormat: (_, place) => labels[place] };
  }

  function chart(query, series, line, { width, height, large, domain, name }) {
    const points = line.v.map((value, place) => ({
      time: span(series, place)[1], value, low: line.lo[place], high: line.hi[place], repeated: series.repeated?.[place],
    }));
    const alone = points.some((point) => point.value !== null && point.low === null); // so that intervals are bars, and not a band
    const marks = (large && line.marks ? line.marks : []).map((place) => points[place]);
    const known = points.flatMap((point) => [point.value, point.low, point.high]).filter((value) => value !== null);
    const [low = 0, high = 1] = domain ?? d3.extent(query.zero ? [0, ...known] : known);
    const svg = Plot.plot({
      width, height, marginRight: 24, marginTop: 10, marginBottom: 34,
      x: { type: "utc", label: null, ...ticks(series, points.map((point) => point.time), width - 90) },
      ...scaled([low, high], Math.max(3, Math.floor(height / 45))),
      marks: [
        alone
          ? Plot.ruleX(points.filter((point) => point.low !== null), { x: "time", y1: "low", y2: "high", stroke: "var(--band)", strokeWidth: large ? 7 : 3 })
          : Plot.areaY(points, { x: "time", y1: "low", y2: "high", fill: "var(--band)" }),
        query.zero ? Plot.ruleY([0], { stroke: "var(--line)" }) : null,
        Plot.lineY(points, { x: "time", y: "value", stroke: "var(--accent)", strokeWidth: large ? 1.4 : 1.1, curve: series.repeated ? "step-after" : "linear" }),
        large ? Plot.dot(points.filter((point) => point.repeated), { x: "time", y: "value", stroke: "var(--accent)", fill: "var(--paper)", r: 2.5 }) : null,
        points.length === 1 ? Plot.dot(points, { x: "time", y: "value", fill: "var(--accent)", r: 3 }) : null,
        Plot.dot(marks, { x: "time", y: "value", stroke: "var(--mark)", r: 5, strokeWidth: 2 }),
      ],
    });
    const [x, y] = [svg.scale("x"), svg.scale("y")];
    const cursor = d3.select(svg).append("g").attr("pointer-events", "none").attr("visibility", "hidden").attr("aria-hidden", "true");
    cursor.append("line").attr("y1", 10).attr("y2", height - 34).attr("stroke", "currentColor").attr("stroke-dasharray", "2 2");
    cursor.append("circle").attr("r", 3.5).attr("fill", "var(--accent)");
    function mark(place) {
      cursor.attr("visibility", place === null ? "hidden" : "visible");
      if (place === null) return;
      const { time, value } = points[place];
      cursor.select("line").attr("x1", x.apply(time)).attr("x2", x.apply(time));
      cursor.select("circle").attr("cx", x.apply(time)).attr("cy", y.apply(value)).attr("visibility", value === null ? "hidden" : "inherit");
    }
    const lows = d3.min(line.v), highs = d3.max(line.v), last = points.length - 1;
    const summary = points.length
      ? `${name}: ${points.length} ${points.length === 1 ? "number" : "numbers"}, ${when(series, 0)} to ${when(series, last)}. From ${number(lows ?? null)} to ${number(highs ?? null)}; the last one ${told(series, line, last)}.`
      : `${name}: no numbers yet.`;
    return readable(svg, {
      summary, count: points.length, mark,
      nearest: (left) => d3.bisector((point) => point.time).center(points, x.invert(left)),
      text: (place) => `${when(series, place)}: ${told(series, line, place)}`,
    });
  }

  // ---- a query

  function draw(query, home, place) {
    const together = query.series.some((series) => series.total);
    const state = { series: query.series[0], cell: together ? -1 : query.open, wanted: "", few: FEW, same: query.zero };
    const line = (cell) => (cell < 0 ? { ...state.series.total, marks: state.series.marks } : { ...state.series.cells[cell], marks: query.cells.length === 1 ? state.series.marks : null });
    const name = (cell) => (cell < 0 ? "all cells together" : label(query.cells[cell]) || query.name);

    const controls = element("div", { class: "controls" });
    if (query.series.length > 1) {
      const set = element("fieldset", {}, element("legend", {}, "Numbers"));
      query.series.forEach((series, at) => {
        const input = element("input", { type: "radio", name: `series-${place}`, value: String(at), checked: at === 0 });
        input.addEventListener("change", () => { state.series = series; redraw(); });
        set.append(element("label", {}, input, series.label));
      });
      controls.append(set);
    }
    const choices = [...(together ? [-1] : []), ...query.cells.keys()];
    const choice = element("select");
    if (query.cells.length > 1) {
      choice.append(...choices.map((cell) => element("option", { value: String(cell) }, name(cell))));
      choice.value = String(state.cell);
      choice.addEventListener("change", () => { state.cell = +choice.value; redraw(); });
      controls.append(element("label", { class: "field" }, "Large chart and table", choice));
      const search = element("input", { type: "search", placeholder: query.keys.join(", ") });
      search.addEventListener("input", () => { state.wanted = search.value.toLowerCase(); state.few = FEW; redraw(); });
      controls.append(element("label", { class: "field" }, `Search for ${query.called}`, search));
      const same = element("input", { type: "checkbox", checked: state.same });
      same.addEventListener("change", () => { state.same = same.checked; redraw(); });
      controls.append(element("label", {}, same, "small charts on one scale"));
    }
    const large = element("figure", { class: "large" });
    const note = element("p", { class: "note" });
    const many = element("div", { class: "many" });
    const more = element("button", { class: "more" }, "");
    more.type = "button";
    more.addEventListener("click", () => { state.few += FEW; redraw(); });
    const [details, fill] = copied(query.name, () => {
      const now = line(state.cell);
      const rows = now.v.map((value, at) => [when(state.series, at), value, now.lo[at], now.hi[at]]);
      return [`${query.name}, ${state.series.label}, ${name(state.cell)}`, ["window", "number", "95 % from", "to"], rows];
    });
    home.append(controls, large, note, many, more, details);

    // What the large chart draws, and nothing else.
    function caption(drawn) {
      const known = drawn.lo.some((low) => low !== null), alone = drawn.v.some((value, at) => value !== null && drawn.lo[at] === null);
      return [
        "Line: the published number.",
        known ? `${alone ? "Bars: 95 % intervals, where they are known" : "Band: its 95 % interval"}.` : "",
        state.series.repeated?.some((one) => one) ? "Small circles: windows that repeat the number before." : "",
        drawn.marks?.length ? "Large circle: stands out." : "",
      ].filter((said) => said).join(" ");
    }

    function redraw(printed) {
      const room = printed ?? home.clientWidth;
      const wide = { width: room, height: Math.max(200, Math.min(320, room * 0.4)), large: true };
      const title = `${query.name}, ${state.series.label}${query.cells.length > 1 ? `: ${name(state.cell)}` : ""}`;
      large.replaceChildren(
        element("figcaption", {}, title),
        ...chart(query, state.series, line(state.cell), { ...wide, name: title }),
        element("p", { class: "note" }, caption(line(state.cell)))
      );
      const found = query.cells.length < 2 ? [] : [...query.cells.keys()].filter((cell) => name(cell).toLowerCase().includes(state.wanted));
      const shown = found.slice(0, state.few);
      const kept = query.cells.length < query.of ? ` The page has the ${query.cells.length} of ${query.of} ${query.called} with the largest numbers; ${query.rest}.` : "";
      const left = state.series.left ? ` Numbers before the last ${state.series.cells[0].v.length} are left out.` : "";
      note.textContent = (query.cells.length > 1 ? `${shown.length} of ${found.length} ${query.called}.${kept}` : "") + left;
      const values = shown.flatMap((cell) => { const one = state.series.cells[cell]; return [...one.v, ...one.lo, ...one.hi]; }).filter((value) => value !== null);
      const domain = state.same && shown.length ? d3.extent(query.zero ? [0, ...values] : values) : undefined;
      const columns = printed ? 3 : Math.max(1, Math.floor((room + 24) / (272 + 24)));
      const width = Math.floor((room - (columns - 1) * 24) / columns);
      many.replaceChildren(...shown.map((cell) => element("figure", {}, element("figcaption", {}, name(cell)),
        ...chart(query, state.series, line(cell), { width, height: 140, domain, name: `${query.name}, ${name(cell)}` }))));
      more.hidden = shown.length >= found.length;
      more.textContent = `Show ${Math.min(FEW, found.length - shown.length)} more ${query.called}`;
      fill();
    }
    return redraw;
  }

  drawAll(data.queries, draw);
})();
