// Quantiles as a fan over time, each with its interval.
"use strict";
slackwater.pictures.quantiles = (query) => {
  const { element, number, scaled, widest, readable, label, quantile, span, stepped, moment, when, told, dates, POINTS, thinnest, apart } = slackwater;
  const { shares, key } = query.picture, middleShare = shares.includes(0.5) ? 0.5 : shares[0];
  const short = (share) => (share === 0.5 ? "median" : `${number(100 * share)} %`);
  const rest = (cell) => label(query.cells[cell].filter((_, at) => at !== key));
  const groups = [...d3.group(query.cells.keys(), rest).values()];

  // How the middle quantile changed (pipelines/pages/pictures/message.py).
  function changed(series, place, window) {
    const line = series.cells[groups[place].find((cell) => +query.cells[cell][key] === middleShare)], name = quantile(middleShare);
    const at = (one) => `${told(series, line, one)} ${series.kind === "level" ? "at" : "for"} ${when(series, one)}`;
    const known = (one) => line.v[one] !== null && line.lo[one] !== null, round = (end) => +end.toFixed(6) + 0;
    // Both 95 % intervals hold at once with at least 90 % probability, and so does this one of the difference.
    const difference = (one) => {
      const value = round(line.v[window] - line.v[one]), [low, high] = [round(line.lo[window] - line.hi[one]), round(line.hi[window] - line.lo[one])];
      const change = value ? `${number(Math.abs(value))} ${value < 0 ? "lower" : "higher"}` : "no difference"; // of the numbers as they are shown
      return `${change} (90 % interval of the difference ${number(low)} to ${number(high)}); ${low <= 0 && high >= 0 ? "may be noise alone" : "more than the noise explains"}`;
    };
    if (!window || !known(0) || !known(window)) return [`${name}: ${at(window)}.`];
    const said = [`${name}: from ${at(0)} to ${at(window)}: ${difference(0)}.`];
    if (window > 1 && known(window - 1)) said.push(`Since the window before: from ${told(series, line, window - 1)}: ${difference(window - 1)}.`);
    return [...said, "No exact interval of such a difference is known: these follow from the intervals of both numbers, and are wider than needed."];
  }

  // Bands that are next to each other differ: the median is the darkest, and two colours take turns on both sides of it.
  const middle = shares.indexOf(0.5);
  const tone = (at) => (at === middle ? "var(--accent)" : `var(--fan-${(at + (at > middle ? 1 : 0)) % 2})`);

  function fan({ series, choice }, room, title, printed) {
    const lines = groups[choice].map((cell) => series.cells[cell]), windows = lines[0].v.length;
    const points = d3.range(windows), time = (window) => moment(series, window);
    const known = lines.flatMap((line) => [...line.v, ...line.lo, ...line.hi]).filter((value) => value !== null);
    const height = printed ? 220 : Math.max(220, Math.min(360, room * 0.42)), names = shares.map(short), right = widest(names) + 16;
    const places = stepped(series) ? points.flatMap((window) => [0, 2].map((at) => ({ window, at: span(series, window)[at] }))) : points.map((window) => ({ window, at: time(window) }));
    const axis = scaled(d3.extent(known), Math.floor(height / 45));
    const least = thinnest(axis.y.domain, height - 48), ends = (line, window) => apart(line.lo[window], line.hi[window], least);
    const svg = Plot.plot({
      width: room, height, marginRight: right, marginTop: 10, marginBottom: 38,
      x: { type: "utc", label: null, tickPadding: 7, ...dates(series, places.map(({ at }) => at), room - axis.marginLeft - right) },
      ...axis,
      marks: [
        ...lines.map((line, at) => Plot.areaY(places, { x: "at", y1: ({ window }) => ends(line, window)[0], y2: ({ window }) => ends(line, window)[1], fill: tone(at), fillOpacity: at === middle ? 0.42 : 0.22 })),
        ...lines.map((line, at) => Plot.lineY(places, { x: "at", y: ({ window }) => line.v[window] ?? NaN, stroke: tone(at), strokeWidth: at === middle ? 2.4 : 1.6 })),
        ...(windows <= POINTS ? lines.map((line, at) => Plot.dot(points.filter((window) => line.v[window] !== null), { x: time, y: (window) => line.v[window], fill: tone(at), r: 3 })) : []),
        places.length === 1 ? lines.map((line, at) => Plot.ruleX([0], { x: time, y1: () => line.lo[0], y2: () => line.hi[0], stroke: tone(at) })) : null,
      ],
    });
    const [x, y] = [svg.scale("x"), svg.scale("y")];
    let low = Infinity; // names at the right do not overlap: from the lowest line up
    d3.sort(lines.keys(), (at) => lines[at].v.at(-1)).forEach((at) => {
      const value = lines[at].v.findLast((one) => one !== null);
      if (value === undefined) return;
      low = Math.min(low - 15, y.apply(value) + 4);
      d3.select(svg).append("text").attr("x", room - right + 6).attr("y", low).attr("fill", tone(at)).attr("text-anchor", "start").text(names[at]);
    });
    const cursor = d3.select(svg).append("line").attr("y1", 10).attr("y2", height - 38).attr("stroke", "currentColor").attr("stroke-dasharray", "2 2").attr("visibility", "hidden");
    const drawn = readable(svg, {
      summary: title, count: windows,
      nearest: (left) => d3.leastIndex(points, (window) => Math.abs(x.apply(time(window)) - left)),
      mark: (window) => (window === null ? cursor.attr("visibility", "hidden") : cursor.attr("visibility", "visible").attr("x1", x.apply(time(window))).attr("x2", x.apply(time(window)))),
      text: (window) => `${when(series, window)}: ${lines.map((line, at) => `${short(shares[at])} ${told(series, line, window)}`).join("; ")}`,
    });
    const start = axis.y.domain[0] > 0 || axis.y.domain[1] < 0 ? " The vertical axis does not start at 0." : "";
    return [...drawn, element("p", { class: "note" }, `Lines: quantiles. Bands of the same colour: their 95 % intervals, each alone. An interval ends at edges of cells, so its ends jump from edge to edge${stepped(series) ? "" : "; slopes only connect published numbers"}.${start}`)];
  }

  const draw = (state, room, title, printed) => [fan(state, room, title, printed)];
  return Object.assign(draw, { choices: groups.map(([cell]) => rest(cell)), whole: true, message: (state) => changed(state.series, state.choice, state.window) });
};
