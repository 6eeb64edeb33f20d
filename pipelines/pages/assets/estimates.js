// Draws what the page's data hold: for each attribute its estimates with their intervals, and a table to copy from.
"use strict";
(() => {
  const { data, element, number, tick, widest, cut, scaled, readable, copied, drawAll } = slackwater;
  const FEW = 24; // rows at first, and more at each press of the button

  const share = (value) => `${number(Math.round(value * 1e6) / 1e4)} %`.replace("-", "\u2212");

  function told(one, place) {
    const say = one.share ? share : number;
    const noisy = one.noisy[place] ? "; mostly noise" : "";
    return `${one.values[place]}: ${say(one.v[place])} (${say(one.lo[place])} to ${say(one.hi[place])})${noisy}`;
  }

  function marked(svg) {
    const ring = d3.select(svg).append("circle").attr("r", 8).attr("fill", "none").attr("stroke", "currentColor")
      .attr("visibility", "hidden").attr("pointer-events", "none");
    return (at) => {
      ring.attr("visibility", at ? "visible" : "hidden");
      if (at) ring.attr("cx", at[0]).attr("cy", at[1]);
    };
  }

  // A horizontal scale with as many ticks as fit in this width, and the width of the last label.
  function across(domain, room, say) {
    const scale = d3.scaleLinear(domain, [0, room]).nice();
    let count = Math.max(1, Math.floor(room / 60)), ticks = scale.ticks(count);
    const fits = () => ticks.length < 2 || scale(ticks[1]) - scale(ticks[0]) >= widest(ticks.map(say)) + 12;
    while (!fits() && count > 1) ticks = scale.ticks(--count);
    if (!fits()) ticks = ticks.slice(0, 1);
    const half = widest(ticks.map(say)) / 2 + 6;
    return { marginRight: Math.max(24, half), x: { label: null, grid: true, domain: scale.domain(), ticks, tickFormat: say } };
  }

  const fill = (one) => (place) => (one.noisy[place] ? "var(--paper)" : "var(--accent)");

  // Values below each other, each with its estimate and whisker.
  function rows(one, places, width, printed) {
    const ends = places.flatMap((place) => [one.lo[place], one.hi[place]]);
    const domain = d3.extent(one.share ? [0, ...ends] : [...one.range, ...ends]);
    const labels = places.map((place) => cut(one.values[place], width * 0.38));
    const left = widest(labels) + 14;
    const svg = Plot.plot({
      width, height: places.length * (printed ? 18 : 26) + 40, marginLeft: left, marginTop: 8, marginBottom: 32,
      ...across(domain, width - left - 30, one.share ? share : tick),
      y: { label: null, type: "band", domain: places, padding: 0, tickSize: 0, tickFormat: (_, at) => labels[at] },
      marks: [
        one.share ? Plot.ruleX([0], { stroke: "var(--line)" }) : null,
        Plot.ruleY(places, { y: (place) => place, x1: (place) => one.lo[place], x2: (place) => one.hi[place], stroke: "var(--accent)", strokeWidth: 1.6 }),
        Plot.tickX(places.flatMap((place) => [[place, one.lo[place]], [place, one.hi[place]]]), { y: "0", x: "1", stroke: "var(--accent)", strokeWidth: 1.6, insetTop: printed ? 5 : 8, insetBottom: printed ? 5 : 8 }),
        Plot.dot(places, { y: (place) => place, x: (place) => one.v[place], stroke: "var(--accent)", fill: fill(one), r: 4.5, strokeWidth: 1.6 }),
      ],
    });
    const [x, band, ring] = [svg.scale("x"), svg.scale("y"), marked(svg)];
    const y = (place) => band.apply(place) + band.bandwidth / 2;
    return [svg, {
      arrows: { ArrowUp: -1, ArrowDown: 1 },
      mark: (at) => ring(at === null ? null : [x.apply(one.v[places[at]]), y(places[at])]),
      nearest: (_, top) => d3.leastIndex(places, (place) => Math.abs(y(place) - top)),
    }];
  }

  // Points of a curve next to each other.
  function curve(one, places, width) {
    const ends = places.flatMap((place) => [one.lo[place], one.hi[place]]);
    const labels = places.map((place) => cut(one.values[place], 90));
    const each = widest(labels) + 10, every = Math.max(1, Math.ceil((each * places.length) / (width - 90)));
    const svg = Plot.plot({
      width, height: Math.max(200, Math.min(320, width * 0.4)), marginRight: Math.max(24, each / 2), marginTop: 10, marginBottom: 34,
      x: { label: null, type: "point", domain: places, padding: 0.5, ticks: places.filter((_, at) => at % every === 0), tickFormat: (place) => labels[places.indexOf(place)] },
      ...scaled(d3.extent([one.range[0], ...ends]), 5),
      marks: [
        Plot.lineY(places, { x: (place) => place, y: (place) => one.v[place], stroke: "var(--band)" }),
        Plot.ruleX(places, { x: (place) => place, y1: (place) => one.lo[place], y2: (place) => one.hi[place], stroke: "var(--accent)", strokeWidth: 1.6 }),
        Plot.dot(places, { x: (place) => place, y: (place) => one.v[place], stroke: "var(--accent)", fill: fill(one), r: 4, strokeWidth: 1.6 }),
      ],
    });
    const [x, y, ring] = [svg.scale("x"), svg.scale("y"), marked(svg)];
    return [svg, {
      mark: (at) => ring(at === null ? null : [x.apply(places[at]), y.apply(one.v[places[at]])]),
      nearest: (left) => d3.leastIndex(places, (place) => Math.abs(x.apply(place) - left)),
    }];
  }

  function draw(one, home) {
    const figure = element("figure", { class: "large" });
    const more = element("button", { class: "more" }, "");
    more.type = "button";
    let few = FEW;
    more.addEventListener("click", () => { few += FEW; redraw(); });
    const many = !one.curve && one.values.length > FEW;
    const places = many ? d3.sort(one.v.keys(), (place) => -one.v[place]) : [...one.v.keys()];
    const [details] = copied(one.name, () => [
      `${one.name}, ${one.share ? "shares" : "means"}`,
      [one.curve ? "point" : "value", one.share ? "share" : "mean", "95 % from", "to"],
      one.values.map((value, place) => [value, one.v[place], one.lo[place], one.hi[place]]),
    ]);
    home.append(figure, more, details);

    function redraw(printed) {
      const shown = one.curve ? places : places.slice(0, few);
      more.hidden = shown.length === places.length;
      more.textContent = `Show ${Math.min(FEW, places.length - shown.length)} more values`;
      if (!places.length) return;
      const [svg, reads] = (one.curve ? curve : rows)(one, shown, printed ?? home.clientWidth, printed);
      const what = `${one.name}: ${places.length} ${one.share ? "shares" : places.length > 1 ? "means" : "mean"}`;
      const summary = `${what}. ${shown.slice(0, 3).map((place) => told(one, place)).join(". ")}.`;
      figure.replaceChildren(
        ...readable(svg, { summary, count: shown.length, text: (at) => told(one, shown[at]), ...reads }),
        element("p", { class: "note" }, "Dot: the estimate. Line: its 95 % interval." + (one.noisy.some(Boolean) ? " Hollow: mostly noise." : "") +
          (many ? ` The ${shown.length} largest of ${places.length}.` : ""))
      );
    }
    return redraw;
  }

  drawAll(data.attributes, draw);
})();
