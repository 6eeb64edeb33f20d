// Two ordered keys: a heat map for a window; of longitude and latitude in their proportions, over an outline if there is one.
"use strict";
slackwater.pictures.map = (query, { choose }) => {
  const { data, element, number, widest, readable, told, colouring, unsure, doubt, hatched, topmost, ringed, noted, hint, key, legend, named, merging, peakOf, boxed } = slackwater;
  const { axes, across, tall } = query.picture, up = 1 - across, sizes = axes.map((axis) => axis.labels.length);
  const [columns, rows] = [sizes[across] - 2, sizes[up] - 2], count = sizes[0] * sizes[1];
  // Places of the drawing go along rows, from the lowest one up; cells outside of the edges are not drawn.
  const sides = (place) => { const found = []; found[across] = (place % columns) + 1; found[up] = Math.floor(place / columns) + 1; return found; };
  const cellOf = (place) => { const [one, other] = sides(place); return one * sizes[1] + other; };
  const [west, north] = [axes[across].edges, axes[up].edges];
  const places = d3.range(columns * rows);

  // Ticks that fit next to each other, or below each other if labels have the same height.
  function axisOf(axis, room, tall) {
    const moments = /T.*Z$/.test(axis.texts[0]) || /^\d{4}-\d\d-\d\d/.test(axis.texts[0]);
    const scale = (moments ? d3.scaleUtc : d3.scaleLinear)(d3.extent(axis.edges), [0, room]);
    for (let wanted = Math.max(2, Math.min(axis.edges.length - 1, Math.floor(room / (tall ?? 50)))); wanted > 1; wanted -= 1) {
      const ticks = scale.ticks(wanted), texts = ticks.map(scale.tickFormat(wanted)).map((text) => text.replace("-", "\u2212"));
      if (ticks.length < 2 || scale(ticks[1]) - scale(ticks[0]) >= (tall ?? widest(texts) + 12)) return { ticks, tickFormat: (_, at) => texts[at], type: moments ? "utc" : "linear" };
    }
    return { ticks: [], type: moments ? "utc" : "linear" };
  }

  function outline(svg, x, y) {
    if (!data.outline || !tall) return;
    const path = d3.path();
    for (const line of data.outline) line.forEach(([east, place], at) => path[at ? "lineTo" : "moveTo"](x.apply(east), y.apply(place)));
    const clip = `frame-${query.name.length}-${Math.random().toString(36).slice(2)}`;
    d3.select(svg).append("clipPath").attr("id", clip).append("rect").attr("x", x.range[0]).attr("y", y.range[1]).attr("width", x.range[1] - x.range[0]).attr("height", y.range[0] - y.range[1]);
    d3.select(svg).append("path").attr("class", "outline").attr("d", path.toString()).attr("clip-path", `url(#${clip})`).attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 1.2).attr("pointer-events", "none");
  }

  // The squares of a choice, each with its name and line, for the main message.
  const items = ({ series, choice }) => places.map((place) => {
    const cell = choice * count + cellOf(place);
    return { name: named(query, cell), line: series.cells[cell], cell };
  });

  // Published cells that are not drawn: those below and above the edges, with their sum.
  function beyond({ series, window, choice }) {
    const { cells, why, lines } = series.outside;
    const said = `${number(cells)} further cells are below or above the listed ranges of ${axes[0].key} and ${axes[1].key}, so they have no place on the map`;
    return element("p", { class: "note" }, lines ? `${said}; their sum is ${told(series, lines[choice], window)}. ${why ?? ""}` : `${said}. ${why}`);
  }

  // What is in the frame: the largest number of a window, or of all, if no other interval overlaps its one.
  function framed(state, top) {
    const { window } = state, drawn = items(state).filter(({ line }) => line.v[window] !== null), peak = peakOf(query, items(state));
    const low = top.line.lo[window], others = low !== null && drawn.some(({ line }) => line !== top.line && line.hi[window] !== null && line.hi[window] >= low);
    const noisier = drawn.some(({ line }) => line.v[window] > top.line.v[window]) ? " that is not mostly noise" : "", known = low === null ? "" : ", with its 95\u00a0% interval";
    if (others) return `highest number${noisier}${known}; others may be higher`;
    const whole = top.line.v.length > 1 && peak.line === top.line && peak.window === window && !peak.others;
    return `largest ${merging(query)[0]}${noisier}${whole ? " of all windows" : ""}${known}`;
  }

  const draw = (state, room, title, printed) => {
    const { series, window, choice } = state, line = (place) => series.cells[choice * count + cellOf(place)];
    const drawn = places.filter((place) => line(place).v[window] !== null);
    const lost = (place) => unsure(query, line(place), window);
    const tone = colouring(query, places.map(line), printed, series);
    const left = Math.max(46, widest(axes[up].texts) + 14), most_room = room - left - 24;
    const ratio = tall ? (tall * (north.at(-1) - north[0])) / (west.at(-1) - west[0]) : Math.max(0.35, Math.min(0.8, rows / columns));
    const width = Math.min(most_room, (printed ? 400 : 620) / ratio), height = width * ratio;
    const edges = (place) => { const [a, b] = [place % columns, Math.floor(place / columns)]; return { x1: west[a], x2: west[a + 1], y1: north[b], y2: north[b + 1] }; };
    const squares = (kept, fill) => Plot.rect(kept, { x1: (place) => edges(place).x1, x2: (place) => edges(place).x2, y1: (place) => edges(place).y1, y2: (place) => edges(place).y2, fill, shapeRendering: "crispEdges" });
    const svg = Plot.plot({
      width: width + left + 24, height: height + 44, marginLeft: left, marginRight: 24, marginTop: 10, marginBottom: 34,
      x: { domain: d3.extent(west), label: null, ...axisOf(axes[across], width) },
      y: { domain: d3.extent(north), label: null, ...axisOf(axes[up], height, 24) },
      color: { type: "identity" },
      marks: [
        squares(drawn.filter((place) => !lost(place)), (place) => tone.colour(line(place).v[window])),
        squares(drawn.filter(lost), "black"),
        Plot.frame({ stroke: "var(--line)" }),
      ],
    });
    d3.select(svg).selectAll('[fill="black"]').attr("fill", hatched(svg));
    const [x, y] = [svg.scale("x"), svg.scale("y")];
    outline(svg, x, y);
    const frame = d3.select(svg).append("rect").attr("fill", "none").attr("stroke", "var(--mark)").attr("stroke-width", 2).attr("pointer-events", "none").attr("visibility", "hidden");
    function show(from, to) {
      const [one, other] = [edges(from), edges(to)], [x1, x2] = d3.extent([one.x1, one.x2, other.x1, other.x2].map(x.apply)), [y1, y2] = d3.extent([one.y1, one.y2, other.y1, other.y2].map(y.apply));
      frame.attr("visibility", "visible").attr("x", x1).attr("y", y1).attr("width", x2 - x1).attr("height", y2 - y1);
    }
    const top = topmost(query, drawn.map((place) => ({ place, line: line(place) })), window);
    if (top) {
      const { x1, x2, y1, y2 } = edges(top.place), box = { left: x.apply(x1), right: x.apply(x2), top: y.apply(y2), bottom: y.apply(y1) };
      ringed(svg, box);
      noted(svg, [told(series, top.line, window)], box, [left, left + width, 10, height + 10]);
    }
    const within = (edge, value, size) => Math.max(0, Math.min(size - 1, d3.bisectRight(edge, value) - 1));
    const name = (place) => sides(place).map((cell, at) => `${axes[at].key} ${axes[at].labels[cell]}`).join(", ");
    const numbers = readable(svg, {
      summary: title, count: places.length, choose: (place) => choose(choice * count + cellOf(place)),
      arrows: { ArrowLeft: -1, ArrowRight: 1, ArrowUp: columns, ArrowDown: -columns },
      nearest: (right, down) => within(north, +y.invert(down), rows) * columns + within(west, +x.invert(right), columns),
      mark: (place) => (place === null ? frame.attr("visibility", "hidden") : show(place, place)),
      text: (place) => `${name(place)}: ${told(series, line(place), window)}${lost(place) ? `, ${doubt(query)}` : ""}`,
      between: (from, to) => {
        if (from === null) return "";
        show(from, to);
        const [one, other] = [sides(from), sides(to)];
        return boxed(query, series, window, choice, one.map((cell, at) => [Math.min(cell, other[at]), Math.max(cell, other[at]) + 1]));
      },
    });
    const known = drawn.filter((place) => line(place).lo[window] !== null), coloured = d3.sum(known, (place) => !lost(place));
    const chance = !query.within && coloured && coloured < known.length && known.length >= 100 ? ` If all numbers were zero, noise alone would colour at most about ${number(Math.round(known.length / 20))} of these ${number(known.length)} squares.` : "";
    const keys = legend(...tone.legend(), drawn.some(lost) && key("hatch", doubt(query)), top && key("ring", framed(state, top)), data.outline && tall && key("line", "outline"));
    return [[...numbers, keys, beyond(state), element("p", { class: "note" },
      `To the right: ${axes[across].key}; upwards: ${axes[up].key}. ${tone.how}${chance}`, hint("Drag over squares, or hold shift with an arrow key, for their sum with its interval."))]];
  };
  // The part of the sum of all cells that the map does not show.
  const outside = ({ series, window, choice }) => (series.outside.lines ? `, of which ${told(series, series.outside.lines[choice], window)} have no place on the map` : "");
  return Object.assign(draw, { items, outside });
};
