// Listed keys: bars, or dots of means, with intervals for a window, in its order.
"use strict";
(() => {
  const { element, tick, pixels, widest, cut, readable, called, told, unsure, doubt, hatched, limitsOf, barsLegend, inOrder, pictures } = slackwater;
  const FEW = matchMedia("(max-width: 40rem)").matches ? 10 : 20, PRINTED = 28; // bars at first, and more at each press of the button; on paper at least as many as fit on a page

  function across(domain, room) {
    const scale = d3.scaleLinear(domain, [0, room]).nice();
    for (let count = Math.max(1, Math.floor(room / 90)); count > 0; count -= 1) {
      const ticks = scale.ticks(count);
      if (ticks.length < 2 || scale(ticks[1]) - scale(ticks[0]) >= widest(ticks.map(tick)) + 12) return { domain: scale.domain(), ticks, tickFormat: tick };
    }
    return { domain: scale.domain(), ticks: [] };
  }

  // Bars of some lines, each with its name; `further` says more of one, `choose` takes one.
  slackwater.bars = (query, series, window, items, { room, title, printed, choose, further = () => "" }) => {
    const shown = items.filter(({ line }) => line.v[window] !== null);
    const ends = shown.flatMap(({ line }) => [line.v[window], line.lo[window], line.hi[window]]).filter((value) => value !== null);
    const places = [...shown.keys()], line = (place) => shown[place].line, value = (place) => line(place).v[window];
    // Names are next to the bars, or above them if they are long.
    const above = shown.some(({ name }) => pixels(name) > room * 0.36), tall = above ? 42 : printed ? 18 : 24;
    const names = shown.map(({ name }) => (above ? cut(name, room - 24) : name)), left = above ? 20 : (widest(names) || 0) + 14;
    const sure = (place) => !unsure(query, line(place), window), known = places.filter((place) => line(place).lo[window] !== null);
    const scale = across(d3.extent(query.zero ? [0, ...ends] : ends), room - left - 30), limits = limitsOf(query, ends), [first, last] = scale.domain;
    if (limits.length) scale.domain = [first - (last - first) / 50, last + (last - first) / 50]; // so that a dot at a limit is whole
    const bar = (kept, fill) => Plot.barX(kept, { y: (place) => place, x1: 0, x2: value, fill, insetTop: above ? 20 : printed ? 2 : 4, insetBottom: printed ? 2 : 4 });
    const svg = Plot.plot({
      width: room, height: shown.length * tall + 40, marginLeft: left, marginRight: Math.max(24, widest(scale.ticks.map(tick)) / 2 + 8), marginTop: 6, marginBottom: 30,
      x: { label: null, grid: true, ...scale },
      color: { type: "identity" },
      y: { label: null, type: "band", domain: places, padding: 0, tickSize: 0, tickFormat: (_, at) => (above ? "" : names[at]) },
      marks: [
        ...(query.zero ? [bar(places.filter(sure), "var(--bar)"), bar(places.filter((place) => !sure(place)), "black")] : []),
        query.zero ? Plot.ruleX([0], { stroke: "var(--quiet)" }) : null,
        Plot.ruleX(limits, { stroke: "var(--quiet)", strokeDasharray: "4 3" }),
        Plot.ruleY(known, { y: (place) => place, x1: (place) => line(place).lo[window], x2: (place) => line(place).hi[window], stroke: "var(--ink)", strokeWidth: 1.4, dy: above ? 8 : 0 }),
        query.zero ? null : Plot.dot(places, { y: (place) => place, x: value, r: 4.5, dy: above ? 8 : 0, stroke: "var(--accent)", strokeWidth: 1.6, fill: (place) => (sure(place) ? "var(--accent)" : "var(--paper)") }),
        above ? Plot.text(places, { y: (place) => place, text: (place) => names[place], frameAnchor: "left", textAnchor: "start", dx: -16, dy: -11, fill: "currentColor", stroke: "var(--paper)", strokeWidth: 4 }) : null,
      ],
    });
    d3.select(svg).selectAll('[fill="black"]').attr("fill", hatched(svg)).attr("stroke", "var(--hatch)");
    const [band, width] = [svg.scale("y"), +svg.getAttribute("width")];
    const frame = d3.select(svg).append("rect").attr("x", above ? 0 : left).attr("width", width - (above ? 0 : left)).attr("height", band.bandwidth).attr("fill", "currentColor")
      .attr("fill-opacity", 0.08).attr("pointer-events", "none").attr("visibility", "hidden");
    const drawn = readable(svg, {
      summary: title, count: shown.length, choose: choose && ((place) => choose(shown[place])),
      arrows: { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 },
      nearest: (_, down) => Math.max(0, Math.min(shown.length - 1, Math.floor((down - 6) / band.bandwidth))),
      mark: (place) => (place === null ? frame.attr("visibility", "hidden") : frame.attr("visibility", "visible").attr("y", band.apply(place))),
      text: (place) => `${shown[place].name}: ${told(series, line(place), window)}${sure(place) ? "" : `, ${doubt(query)}`}${further(shown[place])}`,
    });
    return [...drawn, barsLegend(query, known.length > 0 && "whisker across", !places.every(sure), !query.zero, limits)];
  };

  pictures.bars = (query, { choose }) => {
    let few = FEW;
    return ({ series, window, order }, room, title, printed) => {
      const items = order.slice(0, printed ? Math.max(few, PRINTED) : few).map((cell) => ({ name: called(query, cell), line: series.cells[cell], cell }));
      const more = element("button", { class: "more", type: "button" }, `Show ${Math.min(FEW, order.length - few)} more cells`);
      more.addEventListener("click", () => { few += FEW; choose(null); });
      const drawn = slackwater.bars(query, series, window, items, { room, title, printed, choose: ({ cell }) => choose(cell) });
      const note = element("p", { class: "note" }, `${items.length < order.length ? `${items.length} of ${order.length} cells` : "Cells"} ${inOrder("this window")}.`);
      return [[...drawn, note, ...(few < order.length ? [more] : [])]];
    };
  };
})();
