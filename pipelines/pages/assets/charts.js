// Draws what the page's data hold: for each query its picture, a large chart over time, small ones, and a table to copy from.
"use strict";
(() => {
  const FEW = matchMedia("(max-width: 40rem)").matches ? 6 : 12; // small charts at first, and more at each press of the button
  const { data, element, number, scaled, limitsOf, bounded, readable, copied, drawAll, label, called, span, when, stepped, moment, told, toldWhole, dates, POINTS, thinnest, apart, pictures = {}, largest, named, ranked, inOrder } = slackwater;

  // How many other windows have intervals that overlap that of one window.
  function rivals(line, known, place) {
    const count = d3.sum(known, (at) => at !== place && line.lo[at] !== null && line.lo[at] <= line.hi[place] && line.hi[at] >= line.lo[place]);
    return line.lo[place] === null || !count ? "" : ` The interval${count > 1 ? "s" : ""} of ${number(count)} other window${count > 1 ? "s" : ""} overlap${count > 1 ? "" : "s"} it.`;
  }

  // The highest and the lowest number, and whether the noise alone may make the difference.
  function extremes(query, series, line) {
    const known = line.v.flatMap((value, place) => (value !== null && !series.repeated?.[place] ? [place] : []));
    const [high, low] = [d3.maxIndex(known, (place) => line.v[place]), d3.minIndex(known, (place) => line.v[place])].map((at) => known[at]);
    if (known.length < 3 || line.v[high] === line.v[low]) return "";
    const alike = line.lo[high] !== null && line.lo[low] !== null && line.lo[high] <= line.hi[low];
    const one = (called, place) => `${called}, ${when(series, place)}: ${told(series, line, place)}${line.marks?.includes(place) ? ", which stands out" : ""}${line.v[place] < 0 && query.counts && ["level", "entered", "left"].includes(series.kind) ? ", below zero because of the noise" : ""}.${alike ? "" : rivals(line, known, place)}`;
    return [one("Highest", high), one("Lowest", low), ...(alike ? ["Their intervals overlap, so the difference may be noise alone."] : [])].join(" ");
  }

  // Whether small charts are drawn on one scale at first: unless most of them would be flat lines on it.
  function alike({ cells, series: [series] }) {
    const spreads = series.cells.map((line) => d3.extent([...line.v, ...line.lo, ...line.hi].filter((value) => value !== null))).filter(([low]) => low !== undefined);
    const [low, high] = d3.extent([0, ...spreads.flat()]);
    return cells.length < 2 || !spreads.length || 3 * d3.median(spreads, ([least, most]) => most - least) >= high - low;
  }

  // The ends of a vertical scale: with zero, unless the numbers are so far from it that they would be a flat line.
  function reach(query, known) {
    const [low, high] = d3.extent(known);
    return !query.zero || (high - low) * 3 < Math.max(low, -high) ? [low, high] : d3.extent([0, low, high]);
  }

  function chart(query, series, line, { width, height, large, domain, name }) {
    const points = line.v.map((value, place) => ({
      time: moment(series, place), value, low: line.lo[place], high: line.hi[place], repeated: series.repeated?.[place],
    }));
    const drawn = stepped(series) // each number from the start to the end of its window
      ? points.flatMap((point, place) => [0, 2].map((at) => ({ ...point, time: span(series, place)[at] })))
      : points;
    const alone = drawn.length === 1 || points.some((point) => point.value !== null && point.low === null); // so that intervals are bars, and not a band
    const marks = (large && line.marks ? line.marks : []).map((place) => points[place]);
    const known = points.flatMap((point) => [point.value, point.low, point.high]).filter((value) => value !== null);
    const [low = 0, high = 1] = domain ?? reach(query, known);
    const vertical = scaled([low, high], Math.max(3, Math.floor(height / 45)));
    const across = width - vertical.marginLeft - 24, { dated, ...axis } = dates(series, drawn.map((point) => point.time), across);
    const limits = large ? limitsOf(query, known) : [], raised = low > 0 || high < 0;
    const least = thinnest(vertical.y.domain, height - 48), thin = points.some((point) => point.low !== null && point.high - point.low < least);
    const ends = { x: "time", y1: ({ low, high }) => apart(low, high, least)[0], y2: ({ low, high }) => apart(low, high, least)[1] };
    const marked = points.length > POINTS && !series.repeated ? [] : points.filter((point) => point.value !== null && !point.repeated && (series.repeated ? large : points.length === 1 || !stepped(series)));
    const svg = Plot.plot({
      width, height, marginRight: 24, marginTop: 10, marginBottom: 38,
      x: { type: "utc", label: null, tickPadding: 7, ...axis },
      ...vertical,
      marks: [
        alone
          ? Plot.ruleX(points.filter((point) => point.low !== null), { ...ends, stroke: "var(--band)", strokeWidth: large ? 7 : 3 })
          : Plot.areaY(drawn, { ...ends, fill: "var(--band)" }),
        query.zero && low <= 0 ? Plot.ruleY([0], { stroke: "var(--line)" }) : null,
        Plot.ruleY(limits, { stroke: "var(--quiet)", strokeDasharray: "4 3" }),
        Plot.lineY(drawn, { x: "time", y: "value", stroke: "var(--accent)", strokeWidth: large ? 1.4 : 1.1, curve: series.repeated ? "step-after" : "linear" }),
        Plot.dot(marked, { x: "time", y: "value", fill: "var(--accent)", r: large ? 3 : 2.2 }),
        Plot.dot(marks, { x: "time", y: "value", stroke: "var(--mark)", r: 5, strokeWidth: 2 }),
      ],
    });
    const [x, y] = [svg.scale("x"), svg.scale("y")];
    const cursor = d3.select(svg).append("g").attr("pointer-events", "none").attr("visibility", "hidden").attr("aria-hidden", "true");
    cursor.append("line").attr("y1", 10).attr("y2", height - 38).attr("stroke", "currentColor").attr("stroke-dasharray", "2 2");
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
      ? `${name}: ${points.length} ${points.length === 1 ? "number" : "numbers"}, ${when(series, 0)} to ${when(series, last)}. ${(large && extremes(query, series, line)) || `From ${number(lows ?? null)} to ${number(highs ?? null)}.`} The last one: ${told(series, line, last)}.`
      : `${name}: no numbers yet.`;
    return [{ dated, thin, alone, limits, raised }, ...readable(svg, {
      summary, count: points.length, mark,
      nearest: (left) => d3.bisector((point) => point.time).center(points, x.invert(left)),
      text: (place) => `${when(series, place)}: ${toldWhole(series, line, place)}`,
    })];
  }

  // ---- a window: a slider over all of them, which also plays

  function player(query, state, changed) {
    const slider = element("input", { type: "range", min: "0", step: "1", "aria-label": `Window of ${query.name}` });
    const told = element("output", {}), play = element("button", { type: "button" }, "Play");
    let timer = null;
    function stop() {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
      play.setAttribute("aria-pressed", "false");
    }
    function go(window) {
      state.window = window;
      changed();
    }
    play.setAttribute("aria-label", `Play all windows of ${query.name}`);
    slider.addEventListener("input", () => { stop(); go(+slider.value); });
    play.addEventListener("click", () => {
      if (timer !== null) { stop(); return; }
      play.textContent = "Pause";
      play.setAttribute("aria-pressed", "true");
      if (state.window === +slider.max) go(0);
      timer = setInterval(() => { if (state.window >= +slider.max) stop(); else go(state.window + 1); }, 600);
    });
    stop();
    function show() {
      const last = state.series.cells[0].v.length - 1;
      slider.max = String(last);
      slider.value = String(state.window);
      const repeated = state.series.repeated?.[state.window] ? ", which repeats the numbers before" : "";
      told.textContent = `${when(state.series, state.window)}${repeated}`;
      slider.setAttribute("aria-valuetext", told.textContent);
      slider.disabled = play.disabled = last === 0;
    }
    return [element("div", { class: "player" }, play, slider, told), show, stop];
  }

  // ---- a query

  function draw(query, home, place) {
    const together = query.series.some((series) => series.total);
    const make = query.series[0].first === null ? undefined : query.picture && pictures[query.picture.kind];
    const last = (series) => series.cells[0].v.length - 1;
    const state = {
      series: query.series[0], cell: together ? -1 : query.open, wanted: "", few: FEW, same: alike(query),
      window: last(query.series[0]), choice: query.picture?.choice ?? 0,
    };
    const line = (cell) => (cell < 0 ? { ...state.series.total, marks: state.series.marks } : { ...state.series.cells[cell], marks: query.cells.length === 1 ? state.series.marks : null });
    const name = (cell) => (cell < 0 ? "all cells together" : called(query, cell));
    const picture = make?.(query, { choose, arrive });
    const room = (printed, place = home) => printed ?? Math.max(280, place.clientWidth);

    const controls = element("div", { class: "controls" }), below = make ? element("div", { class: "controls" }) : controls;
    if (query.series.length > 1) {
      const set = element("fieldset", {}, element("legend", {}, "Numbers"));
      query.series.forEach((series, at) => {
        const input = element("input", { type: "radio", name: `series-${place}`, value: String(at), checked: at === 0 });
        input.addEventListener("change", () => { state.series = series; state.window = last(series); redraw(); });
        set.append(element("label", {}, input, series.label));
      });
      controls.append(set);
    }
    const kinds = picture?.choices ?? query.picture?.choices?.map(label) ?? [], { summed } = query.picture ?? {};
    if (summed) kinds[0] = "all values";
    let chooser = ""; // the keys whose values are chosen
    if (kinds.length > 1) {
      const select = element("select", {}, ...kinds.map((text, at) => element("option", { value: String(at) }, text)));
      select.value = String(state.choice);
      select.addEventListener("change", () => { state.choice = +select.value; redraw(); });
      const { axes, at, key = at } = query.picture; // the other keys are chosen
      const chosen = axes ? query.keys.slice(0, -axes.length) : query.keys.filter((_, place) => place !== key);
      chooser = chosen.join(", ");
      controls.append(element("label", { class: "field" }, chooser, select));
    }
    const [slider, showWindow, stop] = player(query, state, () => drawPicture());
    if (make && !picture.whole) controls.append(slider);

    const listed = make && query.picture.axes === undefined && !picture.whole; // bars and tables, whose cells have no order
    const large = element("figure", { class: "large" }), pictured = element("div", { class: "pictured" });
    const choice = element("select");
    if (query.cells.length > 1) {
      const choices = [...(together ? [-1] : []), ...query.cells.keys()];
      choice.append(...choices.map((cell) => element("option", { value: String(cell) }, name(cell))));
      choice.value = String(state.cell);
      choice.addEventListener("change", () => { state.cell = +choice.value; redraw(); });
      below.append(element("label", { class: "field" }, !make ? "Large chart and table" : picture.whole ? "Table" : "Over time", choice));
    }
    const overview = query.cells.length > 1 && (!make || listed);
    if (overview) {
      const search = element("input", { type: "search", placeholder: query.keys.join(", ") });
      search.addEventListener("input", () => { state.wanted = search.value.toLowerCase(); state.few = FEW; redraw(); });
      below.append(element("label", { class: "field" }, `Search for ${query.called}`, search));
      const same = element("input", { type: "checkbox", checked: state.same });
      same.addEventListener("change", () => { state.same = same.checked; redraw(); });
      below.append(element("label", {}, same, "small charts on one scale, to compare them"));
    }
    const note = element("p", { class: "note" });
    const many = element("div", { class: "many" });
    const more = element("button", { class: "more", type: "button" }, "");
    more.addEventListener("click", () => { state.few += FEW; redraw(); });
    const [details, fill] = copied(query.name, () => {
      const now = line(state.cell);
      const rows = now.v.map((value, at) => [when(state.series, at), value, now.lo[at], now.hi[at]]);
      return [[query.name, state.series.label, ...(query.cells.length > 1 ? [name(state.cell)] : [])].join(", "), ["when", "number", "95 % from", "to"], rows];
    });
    large.hidden = Boolean(make && picture.whole);
    home.classList.toggle("beside", Boolean(make && !picture.whole)); // wide screens have the chart over time next to the picture
    home.append(controls, pictured, ...(make ? [below] : []), large, note, many, more, details);

    // A cell that a picture chose, and perhaps a window; null: the picture alone has changed.
    function choose(cell, window) {
      if (window !== undefined) { stop(); state.window = window; }
      if (cell === null) { drawPicture(); return; }
      state.cell = cell;
      choice.value = String(cell);
      redraw();
    }

    // After a button below a picture changed it: the picture is in view.
    function arrive() {
      const figure = pictured.querySelector("figure");
      if (figure.getBoundingClientRect().top < 0) figure.scrollIntoView();
    }

    // What the large chart draws, and nothing else; `dated`: what its ticks are; `thin`: bands are wider than intervals;
    // `alone`: intervals are bars.
    function caption(drawn, { dated, thin, alone, limits, raised }) {
      const known = drawn.lo.some((low) => low !== null);
      return [
        state.series.repeated ? "Steps: the published number, repeated until new numbers are published. Dots: new numbers."
          : stepped(state.series) ? "Steps: the published number of each window."
            : `Line: the published number, at the end of its window${state.series.kind === "level" ? "" : "s"}.`,
        known ? `${alone && drawn.v.length === 1 ? "Bar: its 95\u00a0% interval" : alone ? "Bars: 95\u00a0% intervals, where they are known" : "Band: 95\u00a0% intervals"}${thin ? "; narrow ones are drawn wider, to be visible" : ""}.` : "",
        drawn.marks?.length ? "Large circle: stands out." : "",
        raised ? "The vertical axis does not start at 0." : "",
        limits.length ? `Dashed: ${bounded(limits)}` : "",
        dated,
      ].filter((said) => said).join(" ");
    }

    // The cells in the order of a window, or of the last one.
    const ordered = (window) => (listed ? ranked(query, query.cells.keys(), (cell) => state.series.cells[cell], window) : [...query.cells.keys()]);

    // The chosen values of the other keys, and the sum of the cells that have them, if the page has it.
    const scope = () => (summed && !state.choice ? `all values of ${chooser}` : `${kinds[state.choice]}${chooser ? ` (${chooser})` : ""}`);
    const totalOfChoice = () => (summed && !state.choice ? undefined : state.series.totals?.[state.choice]);

    // The value of the other keys to which a picture is confined.
    const among = () => (query.picture.axes && query.picture.choices?.length > 1 && !(summed && !state.choice) ? ` of ${label(query.picture.choices[state.choice])}` : "");

    // The largest number of all windows, if it is in another one; of what the picture shows.
    function peak(items) {
      if (picture.whole || query.picture.axes?.length === 1) return []; // the picture shows all windows
      const known = items.filter(({ line }) => line.v[state.window] !== null), highest = d3.greatest(items, (one, other) => d3.max(one.line.v) - d3.max(other.line.v));
      const now = d3.greatest(known, (one, other) => one.line.v[state.window] - other.line.v[state.window])?.line;
      const window = highest ? d3.maxIndex(highest.line.v) : -1;
      if (window < 0 || window === state.window || !now) return [];
      const [value, low] = [highest.line.v[window], highest.line.lo[window]];
      if (value === now.v[state.window] || (low !== null && low <= now.hi[state.window])) return []; // perhaps only by noise
      const go = element("button", { type: "button", class: "more" }, "Show it");
      go.addEventListener("click", () => { stop(); state.window = window; drawPicture(); arrive(); });
      return [element("p", { class: "note" }, `Largest of all windows${among()}: ${highest.name}, ${when(state.series, window)}: ${told(state.series, highest.line, window)}. `, go)];
    }

    function drawPicture(printed) {
      if (!make) return;
      showWindow();
      const stops = () => [...pictured.querySelectorAll(".plot, .scrolls, select")], focused = pictured.contains(document.activeElement), kept = stops().indexOf(document.activeElement);
      const items = picture.items?.(state) ?? state.series.cells.map((line, cell) => ({ name: named(query, cell), line }));
      const [said, ...more] = [].concat(picture.message?.(state) ?? largest(query, state.series, state.window, items, `Largest${query.picture.kind === "map" ? " cell" : ""}${among()}`));
      // All cells together: as published, or the sum of the cells with its interval.
      const whole = [...data.queries, ...(data.others ?? [])].find((one) => one.origin === query.origin && one.part === "total" && one !== query);
      const sum = picture.total?.(state) ?? totalOfChoice() ?? whole?.series[query.series.indexOf(state.series)]?.cells[0] ?? state.series.total, { untotalled } = state.series;
      const every = picture.root?.(state) ?? `All cells${among()}`;
      const together = (sum || untotalled) && !query.part && query.picture.kind !== "quantiles"
        ? [element("p", sum ? { class: "total" } : { class: "note" }, sum ? `${every}: ${told(state.series, sum, state.window)}${picture.off?.(state) ?? ""}` : `${untotalled.name || every}: ${told(state.series, untotalled.line, state.window)}. ${untotalled.why}`)] : [];
      const title = `${query.name}, ${state.series.label}${kinds.length > 1 ? `, ${scope()}` : ""}${picture.whole ? "" : `: ${when(state.series, state.window)}`}`;
      const [main, ...others] = picture({ ...state, order: ordered(state.window), wide: room(printed) }, room(printed, large.hidden ? home : large), [`${title}.`, said, ...more].join(" "), printed);
      pictured.replaceChildren(
        element("figure", { class: "picture" }, element("figcaption", {}, title), element("p", { class: "said" }, element("strong", {}, said), more.length ? ` ${more.join(" ")}` : ""), ...together, ...main, ...peak(items)),
        ...others.map((one) => element("figure", { class: "picture" }, ...one))
      );
      if (focused) (stops()[kept] ?? pictured.querySelector(".plot, .scrolls"))?.focus({ preventScroll: true }); // a button may be gone
    }

    function redraw(printed) {
      const all = room(printed);
      drawPicture(printed);
      const width = room(printed, large), wide = { width, height: printed ? 200 : Math.max(200, Math.min(320, width * 0.4)), large: true };
      const title = `${query.name}, ${state.series.label}${query.cells.length > 1 ? `: ${name(state.cell)}` : ""}`;
      const [signs, ...plotted] = chart(query, state.series, line(state.cell), { ...wide, name: title });
      const most = extremes(query, state.series, line(state.cell));
      large.replaceChildren(element("figcaption", {}, title), ...(most ? [element("p", { class: "extremes" }, most)] : []), ...plotted, element("p", { class: "note" }, caption(line(state.cell), signs)));
      const found = overview ? ordered().filter((cell) => name(cell).toLowerCase().includes(state.wanted)) : [];
      const shown = found.slice(0, state.few);
      const kept = query.cells.length < query.of ? ` The page has the ${query.cells.length} of ${query.of} ${query.called} with the largest numbers; ${query.rest}.` : "";
      const left = state.series.left ? ` Numbers before the last ${state.series.cells[0].v.length} are left out.` : "";
      const values = shown.flatMap((cell) => { const one = state.series.cells[cell]; return [...one.v, ...one.lo, ...one.hi]; }).filter((value) => value !== null);
      const domain = state.same && shown.length ? reach(query, values) : undefined;
      const axes = state.same ? "" : " Each chart has its own scale, which need not start at 0.";
      note.textContent = (overview ? `${shown.length} of ${found.length} ${query.called}${listed ? `, ${inOrder}` : ""}.${kept}${axes}` : "") + left;
      const columns = printed ? 3 : Math.max(1, Math.floor((all + 24) / (272 + 24)));
      const small = Math.floor((all - (columns - 1) * 24) / columns);
      many.replaceChildren(...shown.map((cell) => element("figure", {}, element("figcaption", {}, name(cell)),
        ...chart(query, state.series, line(cell), { width: small, height: 140, domain, name: `${query.name}, ${name(cell)}` }).slice(1))));
      more.hidden = shown.length >= found.length;
      more.textContent = `Show ${Math.min(FEW, found.length - shown.length)} more ${query.called}`;
      fill();
    }
    return redraw;
  }

  drawAll(data.queries, draw);
})();
