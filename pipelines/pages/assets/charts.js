// Draws what the page's data hold: for each query its picture, a large chart over time, small ones, and a table to copy from.
"use strict";
(() => {
  const FEW = matchMedia("(max-width: 40rem)").matches ? 6 : 12; // small charts at first, and more at each press of the button
  const { data, element, number, bounded, copied, drawAll, label, called, when, stepped, told, pictures, largest, merging, peakOf, named, ranked, inOrder, extremes, alike, reach, chart } = slackwater;

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
      series: query.series[0], cell: together ? -1 : query.open, wanted: [], few: FEW, same: alike(query),
      window: last(query.series[0]), choice: query.picture?.choice ?? 0,
    };
    const line = (cell) => (cell < 0 ? { ...state.series.total, marks: state.series.marks } : { ...state.series.cells[cell], marks: query.cells.length === 1 ? state.series.marks : null });
    const name = (cell) => (cell < 0 ? "all cells together" : called(query, cell));
    const picture = make?.(query, { choose, jump });
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
    const large = element("figure", { class: "large" }), pictured = element("div", { class: "pictured" }), further = element("div", { class: "pictured" });
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
      search.addEventListener("input", () => { state.wanted = search.value.toLowerCase().match(/[^\s,]+/g) ?? []; state.few = FEW; redraw(); });
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
    home.append(controls, pictured, ...(make ? [below] : []), large, further, note, many, more, details);

    // A cell that a picture chose, and perhaps a window; null: the picture alone has changed.
    function choose(cell, window) {
      if (window !== undefined) { stop(); state.window = window; }
      if (cell === null) { drawPicture(); return; }
      state.cell = cell;
      choice.value = String(cell);
      redraw();
    }

    // A button that shows a window, with the picture of its cells in view, and then leads back to the last window.
    function jump(window, text) {
      const there = state.window === window, final = last(state.series);
      if (there && window === final) return [];
      const go = element("button", { type: "button", class: "more jump" }, there ? "Back to the last window" : text);
      go.addEventListener("click", () => {
        stop();
        state.window = there ? final : window;
        drawPicture();
        const { top } = pictured.firstElementChild.getBoundingClientRect();
        if (top < 0 || top > innerHeight / 2) pictured.firstElementChild.scrollIntoView();
      });
      return [" ", go];
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

    // The cells of bars and tables in the order of a window, or of the last one.
    const ordered = (window) => (listed ? ranked(query, query.cells.keys(), (cell) => state.series.cells[cell], window) : [...query.cells.keys()]);

    // The chosen values of the other keys, and the sum of the cells that have them, if the page has it.
    const scope = () => (summed && !state.choice ? `all values of ${chooser}` : `${kinds[state.choice]}${chooser ? ` (${chooser})` : ""}`);
    const totalOfChoice = () => (summed && !state.choice ? undefined : state.series.totals?.[state.choice]);

    // The value of the other keys to which a picture is confined.
    const among = () => (query.picture.axes && query.picture.choices?.length > 1 && !(summed && !state.choice) ? ` of ${label(query.picture.choices[state.choice])}` : "");

    // The highest number of all windows, of what the picture shows, unless the picture says the same of its window.
    function peak(items) {
      if (picture.whole || query.picture.axes?.length === 1) return []; // the picture shows all windows
      const top = peakOf(query, items), final = last(state.series);
      if (!top) return [];
      const { name, line, window, others } = top, compared = window === final ? state.window : final;
      const now = d3.greatest(items, (one, other) => one.line.v[compared] - other.line.v[compared])?.line;
      if (compared === window || now.v[compared] === null || line.v[window] === now.v[compared] || (line.lo[window] !== null && line.lo[window] <= now.hi[compared])) return []; // perhaps only by noise
      const what = others ? "Highest number" : "Largest";
      return [element("p", { class: "note" }, `${what} of all windows${among()}: ${name}, ${when(state.series, window)}: ${told(state.series, line, window)}.${others ? " Others may be higher." : ""}`, ...jump(window, "Show it"))];
    }

    // Draw again what has the focus without losing it.
    function keeping(redrawn) {
      const areas = [pictured, further], active = document.activeElement;
      const sign = areas.some((area) => area.contains(active)) ? [".jump", ".more", "select", ".plot", ".scrolls"].find((one) => active.matches(one)) ?? "none" : null;
      const all = () => areas.flatMap((area) => [...area.querySelectorAll(sign)]), at = sign ? all().indexOf(active) : -1;
      redrawn();
      if (sign) (all()[at] ?? pictured.querySelector(".plot, .scrolls"))?.focus({ preventScroll: true }); // a button may be gone
    }

    function drawPicture(printed) {
      if (!make) return;
      showWindow();
      const items = picture.items?.(state) ?? state.series.cells.map((line, cell) => ({ name: named(query, cell), line }));
      const [said, ...rest] = [].concat(picture.message?.(state) ?? largest(query, state.series, state.window, items, `Largest${query.picture.kind === "map" ? ` ${merging(query)[0]}` : ""}`, among()));
      // All cells together: as published, or the sum of the cells with its interval.
      const whole = [...data.queries, ...(data.others ?? [])].find((one) => one.origin === query.origin && one.part === "total" && one !== query);
      const sum = picture.total?.(state) ?? totalOfChoice() ?? whole?.series[query.series.indexOf(state.series)]?.cells[0] ?? state.series.total, { untotalled } = state.series;
      const every = picture.root?.(state) ?? `All cells${among()}`;
      const together = (sum || untotalled) && !query.part && query.picture.kind !== "quantiles"
        ? [element("p", sum ? { class: "total" } : { class: "note" }, sum ? `${every}: ${told(state.series, sum, state.window)}${picture.outside?.(state) ?? ""}` : `${untotalled.name || every}: ${told(state.series, untotalled.line, state.window)}. ${untotalled.why}`)] : [];
      const title = `${query.name}, ${state.series.label}${kinds.length > 1 ? `, ${scope()}` : ""}${picture.whole ? "" : `: ${when(state.series, state.window)}`}`;
      const [main, ...others] = picture({ ...state, order: ordered(state.window), wide: room(printed) }, room(printed, large.hidden ? home : large), [`${title}.`, said, ...rest].join(" "), printed);
      keeping(() => {
        pictured.replaceChildren(element("figure", { class: "picture" }, element("figcaption", {}, title),
          element("p", { class: "said" }, element("strong", {}, said), rest.length ? ` ${rest.join(" ")}` : ""), ...together, ...main, ...peak(items)));
        further.replaceChildren(...others.map((one) => element("figure", { class: "picture" }, ...one)));
      });
    }

    function redraw(printed) {
      const all = room(printed);
      drawPicture(printed);
      const width = room(printed, large), wide = { width, height: printed ? 200 : Math.max(200, Math.min(320, width * 0.4)), large: true };
      const title = `${query.name}, ${state.series.label}${query.cells.length > 1 ? `: ${name(state.cell)}` : ""}`;
      const [signs, ...plotted] = chart(query, state.series, line(state.cell), { ...wide, name: title });
      const most = extremes(query, state.series, line(state.cell));
      large.replaceChildren(element("figcaption", {}, title), ...(most ? [element("p", { class: "extremes" }, most)] : []), ...plotted, element("p", { class: "note" }, caption(line(state.cell), signs)));
      const found = overview ? ordered().filter((cell) => state.wanted.every((word) => name(cell).toLowerCase().includes(word))) : [];
      const shown = found.slice(0, state.few);
      const kept = query.cells.length < query.of ? ` The page has the ${query.cells.length} of ${query.of} ${query.called} with the largest numbers; ${query.rest}.` : "";
      const left = state.series.left ? ` Numbers before the last ${state.series.cells[0].v.length} are left out.` : "";
      const values = shown.flatMap((cell) => { const one = state.series.cells[cell]; return [...one.v, ...one.lo, ...one.hi]; }).filter((value) => value !== null);
      const domain = state.same && shown.length ? reach(query, values) : undefined;
      const axes = state.same ? "" : " Each chart has its own scale, which need not start at 0.";
      note.textContent = (overview && !found.length ? `None of the ${query.called} matches.` : overview ? `${shown.length} of ${found.length} ${query.called}${listed ? `, ${inOrder("the last window")}` : ""}.${kept}${axes}` : "") + left;
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
