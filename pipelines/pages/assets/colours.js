// Colours of cells, hatching for numbers that cannot be distinguished from zero, and the legend of each chart.
"use strict";
Object.assign(slackwater, (() => {
  const { element, number, tick, pixels } = slackwater;

  // Steps of equal lightness, so that they differ for all eyes and on paper. On a dark page the lowest one is the
  // darkest, and lighter than the page and the hatching's ground.
  const ABOVE = ["#d0e6f2", "#84c5d9", "#4c9fc6", "#2b77af", "#1b518c", "#0f2f60"];
  const BELOW = ["#feddbb", "#f5ab71", "#e27a37", "#bb5314", "#88370c", "#54210a"];
  const DARK_ABOVE = ["#014d7d", "#086eaf", "#478fd1", "#7fb0e8", "#b5d2f7", "#f0f6fe"];
  const DARK_BELOW = ["#6d3c10", "#9c5413", "#c6722b", "#e5995d", "#f9c39b", "#fef3eb"];
  const SHARES = [0.25, 0.5, 0.75, 0.95, 0.995]; // of the numbers of a chart, at which a new colour begins

  const dark = (printed) => !printed && matchMedia("(prefers-color-scheme: dark)").matches;
  function shades(of, count) {
    const tone = d3.piecewise(d3.interpolateLab, of), [low, high] = count > 2 ? [0, 1] : [0.2, 0.8];
    return d3.range(count).map((step) => tone(count === 1 ? 0.4 : low + ((high - low) * step) / (count - 1)));
  }

  // An interval that says nothing: it contains zero or, of means and ratios, is wider than half of their range.
  const unsure = (query, line, window) => {
    const [low, high] = [line.lo[window], line.hi[window]];
    if (low === null) return false;
    return query.within ? high - low > (query.within[1] - query.within[0]) / 2 : low <= 0 && high >= 0;
  };
  const doubt = (query) => (query.within ? "has an interval wider than half of the range" : "cannot be distinguished from zero");

  // A number with as few digits as its distance to the next one allows.
  const rounded = (value, gap, way) => {
    const unit = 10 ** Math.floor(Math.log10(gap > 0 ? gap : Math.abs(value) || 1));
    return +(way(value / unit) * unit).toPrecision(12);
  };

  // Edges of the steps: quantiles of the sizes of all numbers that are not hatched. A step is at least as wide as the
  // margin of error, so that colours do not show noise alone.
  function stepped(query, lines) {
    const sizes = [], halves = [];
    for (const line of lines) line.v.forEach((value, at) => {
      if (value === null || unsure(query, line, at)) return;
      sizes.push(Math.abs(value));
      if (line.lo[at] !== null) halves.push((line.hi[at] - line.lo[at]) / 2);
    });
    if (!sizes.length) return { edges: [], margin: 0 };
    const sorted = Float64Array.from(sizes).sort(), margin = halves.length ? d3.median(halves) : 0, most = sorted.at(-1);
    const kept = [sorted[0]];
    for (const share of SHARES) {
      const least = kept.at(-1) + margin, edge = Math.min(Math.max(d3.quantileSorted(sorted, share), least), most - margin);
      if (edge >= least && edge > kept.at(-1) && edge < most) kept.push(edge);
    }
    kept.push(most);
    const gap = (at) => Math.min(kept[at] - (kept[at - 1] ?? -Infinity), (kept[at + 1] ?? Infinity) - kept[at]);
    const edges = kept.map((edge, at) => at && at < kept.length - 1 ? rounded(edge, gap(at) / 5, Math.round) : rounded(edge, gap(at) / 10, at ? Math.ceil : Math.floor));
    return { edges: edges.filter((edge, at) => !at || edge > edges[at - 1]), margin };
  }

  // Colours of the numbers of some lines: of one number, and their legend.
  function colouring(query, lines, printed, series) {
    const { edges, margin } = stepped(query, lines), count = Math.max(1, edges.length - 1);
    const [above, below] = (dark(printed) ? [DARK_ABOVE, DARK_BELOW] : [ABOVE, BELOW]).map((of) => shades(of, count)), inner = edges.slice(1, -1);
    const step = (value) => d3.bisectRight(inner, Math.abs(value));
    const lowest = d3.min(lines, (line) => d3.min(line.v.filter((value, at) => value !== null && !unsure(query, line, at))));
    const upper = d3.max(lines, (line) => d3.max(line.v.filter((value, at) => value !== null && !unsure(query, line, at))));
    const bar = (colour, text) => element("span", { class: "step" }, element("i", { style: `background: ${colour}` }), text);
    const scale = (colours, ends) => element("span", { class: "scale" }, ...colours.map((colour, at) => bar(colour, tick(ends[at]))), element("span", { class: "step end" }, tick(ends.at(-1))));
    function legend() {
      const scales = [];
      if (lowest < 0) {
        const steps = step(lowest) + 1;
        scales.push(scale(below.slice(0, steps).reverse(), edges.slice(0, steps + 1).reverse().map((edge) => (edge ? -edge : 0))));
      }
      if (upper >= 0 && edges.length) scales.push(scale(above.slice(0, step(upper) + 1), edges.length > 1 ? edges.slice(0, step(upper) + 2) : [edges[0], edges[0]]));
      return scales;
    }
    const how = edges.length > 2
      ? `Each colour is a range of numbers, the same in all windows${margin ? ` and about as wide as the margin of error (${number(+margin.toPrecision(2))}) or wider` : ""}.`
      : edges.length && margin ? `One colour: the numbers differ by less than two margins of error, each ${number(+margin.toPrecision(2))}.` : "";
    const below0 = lowest < 0 && query.counts && ["level", "entered", "left"].includes(series?.kind) ? " A count is at least 0: numbers below it come from noise alone." : "";
    return { colour: (value) => (value < 0 ? below : above)[step(value)], legend, how: how + below0 };
  }

  // Hatching for numbers that say nothing, in all charts; returns how a drawing refers to it.
  let patterns = 0;
  function hatched(svg) {
    const name = `hatch-${patterns += 1}`;
    const pattern = d3.select(svg).insert("defs", ":first-child").append("pattern").attr("id", name)
      .attr("width", 6).attr("height", 6).attr("patternUnits", "userSpaceOnUse").attr("patternTransform", "rotate(45)");
    pattern.append("rect").attr("width", 6).attr("height", 6).attr("fill", "var(--paper)");
    pattern.append("rect").attr("width", 1.6).attr("height", 6).attr("fill", "var(--hatch)");
    return `url(#${name})`;
  }

  // The largest of some things with lines: of those that an interval is informative about, if there are any.
  function topmost(query, items, window) {
    const known = items.filter(({ line }) => line.v[window] !== null), sure = known.filter(({ line }) => !unsure(query, line, window));
    return d3.greatest(sure.length ? sure : known, (one, other) => one.line.v[window] - other.line.v[window]);
  }

  // Some things with lines in the order of their numbers in a window, the largest first; those that say nothing come last.
  function ranked(query, things, line, window) {
    const at = (one) => window ?? line(one).v.length - 1, value = (one) => line(one).v[at(one)] ?? null;
    return d3.sort(things, (one) => (value(one) === null ? 2 : +unsure(query, line(one), at(one))), (one) => -value(one));
  }
  const inOrder = (window) => `in the order of ${window}, cells that are mostly noise last`;

  // The limits of the possible range that some numbers reach, and what they are.
  const limitsOf = ({ within }, values) => (within ?? []).filter((limit, at) => values.some((value) => (at ? value >= limit : value <= limit)));
  const bounded = (limits) => `${limits.map(number).join(" and ")}, limit${limits.length > 1 ? "s" : ""} of the possible range; numbers and intervals end there.`;

  // A text next to a frame of a drawing, within some limits: at its right, at its left, or above or below it.
  function noted(svg, lines, { left, right, top, bottom }, [west, east, north, south]) {
    const width = 1.1 * d3.max(lines, pixels), tall = 16 * lines.length, [after, before] = [right + 12 + width <= east, left - 12 - width >= west], aside = after || before;
    const middle = Math.max(west + width / 2, Math.min(east - width / 2, (left + right) / 2)), x = after ? right + 8 : before ? left - 8 : middle;
    const beside = Math.max(north + 2, Math.min(south - tall - 2, (top + bottom - tall) / 2)), over = top - tall - 4 >= north ? top - tall - 4 : bottom + 4;
    const label = d3.select(svg).append("text").attr("class", "noted").attr("text-anchor", after ? "start" : before ? "end" : "middle").attr("fill", "currentColor").attr("pointer-events", "none")
      .attr("stroke", "var(--paper)").attr("stroke-width", 5).attr("stroke-linejoin", "round").attr("paint-order", "stroke").attr("font-weight", 600);
    lines.forEach((line, at) => label.append("tspan").attr("x", x).attr("y", (aside ? beside : over) + 12 + 16 * at).text(line));
  }

  // A ring around a frame, of ink and paper, so that it is visible on all colours.
  function ringed(svg, { left, right, top, bottom }) {
    for (const [stroke, width] of [["var(--paper)", 6], ["var(--ink)", 2]])
      d3.select(svg).append("rect").attr("class", "ring").attr("x", left).attr("y", top).attr("width", right - left).attr("height", bottom - top)
        .attr("fill", "none").attr("stroke", stroke).attr("stroke-width", width).attr("pointer-events", "none");
  }

  // What only a screen can do: paper leaves it out.
  const hint = (text) => element("span", { class: "more" }, ` ${text}`);

  // One sign and what it means; the signs are classes of the style sheet.
  const key = (sign, text) => element("span", { class: "key" }, element("span", { class: `swatch ${sign}` }), text);
  const legend = (...keys) => element("div", { class: "legend" }, ...keys.filter((one) => one));
  const barsLegend = (query, whisker, some, dots, limits = []) =>
    legend(key(dots ? "dot" : "bar", "published number"), whisker && key(whisker, "95 % interval"), some && key(dots ? "hollow" : "hatch", `mostly noise: ${doubt(query)}`), limits.length && key("limit", bounded(limits)));

  return { unsure, doubt, colouring, hatched, topmost, ranked, inOrder, limitsOf, bounded, noted, ringed, hint, key, legend, barsLegend };
})());
