// Numbers over time: a line or steps with a band of intervals, and the highest and the lowest number in words.
"use strict";
Object.assign(slackwater, (() => {
  const { number, scaled, limitsOf, readable, span, when, stepped, moment, told, toldWhole, dates, POINTS, thinnest, apart } = slackwater;

  // How many other windows have intervals that overlap that of one window, in words.
  function rivals(line, known, place) {
    if (line.lo[place] === null) return "";
    const count = d3.sum(known, (at) => at !== place && line.lo[at] !== null && line.lo[at] <= line.hi[place] && line.hi[at] >= line.lo[place]);
    return !count ? "; no other interval overlaps it" : count === 1 ? "; the interval of 1 other window overlaps it" : `; the intervals of ${number(count)} other windows overlap it`;
  }

  // The highest and the lowest number, and whether the noise alone may make the difference.
  function extremes(query, series, line) {
    const known = line.v.flatMap((value, place) => (value !== null && !series.repeated?.[place] ? [place] : []));
    const [high, low] = [d3.maxIndex(known, (place) => line.v[place]), d3.minIndex(known, (place) => line.v[place])].map((at) => known[at]);
    if (known.length < 3 || line.v[high] === line.v[low]) return "";
    const alike = line.lo[high] !== null && line.lo[low] !== null && line.lo[high] <= line.hi[low];
    const one = (called, place) => `${called}, ${when(series, place)}: ${told(series, line, place)}${line.marks?.includes(place) ? ", which stands out" : ""}${line.v[place] < 0 && query.counts && ["level", "entered", "left"].includes(series.kind) ? ", below zero because of the noise" : ""}${rivals(line, known, place)}.`;
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

  return { extremes, alike, reach, chart };
})());
