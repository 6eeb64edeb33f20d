// One ordered key: a histogram with error bars for a window, and all windows as a heat map of cells by time.
"use strict";
slackwater.pictures.ordered = (query, { choose, jump }) => {
  const { element, number, scaled, widest, readable, label, span, when, told, ticks, colouring, unsure, doubt, hatched, peakOf, ringed, noted, hint, key, legend, barsLegend, named, boxed } = slackwater;
  const [axis] = query.picture.axes, count = axis.labels.length, inner = count - 2;
  // From where to where a cell is drawn, in steps; those outside of the edges stand apart.
  const sides = (cell) => (cell === 0 ? [-1.6, -0.6] : cell === count - 1 ? [inner + 0.6, inner + 1.6] : [cell - 1, cell]);
  const middle = (cell) => d3.mean(sides(cell));
  const nearestCell = (place) => d3.leastIndex(d3.range(count), (cell) => Math.abs(middle(cell) - place));

  // The cells below and above the edges, in words.
  const [beneath, over] = [`${axis.key} below ${axis.texts[0]}`, `${axis.key} ${axis.texts.at(-1)} or more`];

  // As many edges as fit.
  function edges(room) {
    const step = room / (inner + 3.6), wide = widest(axis.texts) + 10;
    const every = [1, 2, 5, 10, 20, 25, 50, 100].find((one) => one * step >= wide) ?? inner;
    const shown = d3.range(0, inner + 1, every);
    return { ticks: shown, tickFormat: (_, at) => axis.texts[shown[at]] };
  }

  function histogram({ series, window, choice }, room, title, printed) {
    const lines = series.cells.slice(choice * count, (choice + 1) * count), line = (cell) => lines[cell];
    const bars = d3.range(count).filter((cell) => line(cell).v[window] !== null);
    const known = bars.filter((cell) => line(cell).lo[window] !== null);
    const sure = (cell) => !unsure(query, line(cell), window);
    // One scale for all windows, unless the numbers of another one are so large that bars here would be flat.
    const here = lines.flatMap((one) => [one.v[window], one.lo[window], one.hi[window]]).filter((value) => value !== null);
    const all = lines.flatMap((one) => [...one.v, ...one.lo, ...one.hi]).filter((value) => value !== null);
    const apart = d3.max(all, Math.abs) > 3 * d3.max(here, Math.abs), ends = apart ? here : all;
    const height = printed ? 220 : Math.max(220, Math.min(340, room * 0.4)), least = d3.min([0, ...ends]), { y, marginLeft } = scaled(d3.extent([0, ...ends]), Math.floor(height / 45));
    Object.assign(y, { domain: [least, y.domain[1]], ticks: y.ticks.filter((one) => one >= least) });
    const gap = Math.min(0.5, (room - marginLeft - 24) / count / 12); // many bars are thin
    const bar = (cells, fill) => Plot.rectY(cells, { x1: (cell) => sides(cell)[0], x2: (cell) => sides(cell)[1], y1: 0, y2: (cell) => line(cell).v[window], fill, insetLeft: gap, insetRight: gap });
    const svg = Plot.plot({
      width: room, height, marginLeft, marginRight: 24, marginTop: 10, marginBottom: 40,
      x: { type: "linear", domain: [-1.8, inner + 1.8], label: null, tickSize: 3, ...edges(room - marginLeft - 24) },
      y,
      marks: [
        bar(bars.filter(sure), "var(--bar)"),
        bar(bars.filter((cell) => !sure(cell)), "black"),
        Plot.ruleY([0], { stroke: "var(--quiet)" }),
        Plot.ruleX(known, { x: middle, y1: (cell) => line(cell).lo[window], y2: (cell) => line(cell).hi[window], stroke: "var(--ink)", strokeWidth: 2.8 * gap }),
      ],
    });
    // The names of the cells outside of the edges are below them, on a second line.
    const fits = (text) => widest([text]) < (room - marginLeft - 24) / 2 - 6;
    for (const [cell, anchor, texts] of [[0, "start", [beneath, `below ${axis.texts[0]}`]], [count - 1, "end", [over, `${axis.texts.at(-1)} or more`]]])
      d3.select(svg).append("text").attr("x", svg.scale("x").apply(sides(cell)[anchor === "end" ? 1 : 0])).attr("y", height - 8).attr("text-anchor", anchor).attr("fill", "currentColor").text(texts.find(fits) ?? texts[1]);
    d3.select(svg).selectAll('[fill="black"]').attr("fill", hatched(svg)).attr("stroke", "var(--hatch)");
    const x = svg.scale("x");
    const frame = d3.select(svg).append("rect").attr("y", 10).attr("height", height - 50).attr("fill", "currentColor").attr("fill-opacity", 0.08)
      .attr("stroke", "currentColor").attr("pointer-events", "none").attr("visibility", "hidden");
    const show = (from, to) => frame.attr("visibility", "visible").attr("x", x.apply(sides(from)[0])).attr("width", x.apply(sides(to)[1]) - x.apply(sides(from)[0]));
    const text = (cell) => `${axis.key} ${axis.labels[cell]}: ${told(series, line(cell), window)}${sure(cell) ? "" : `, ${doubt(query)}`}`;
    const drawn = readable(svg, {
      summary: title, count, text, choose: (cell) => choose(choice * count + cell),
      nearest: (left) => nearestCell(x.invert(left)),
      mark: (cell) => (cell === null ? frame.attr("visibility", "hidden") : show(cell, cell)),
      between: (from, to) => {
        if (from === null) return "";
        const [low, high] = d3.extent([from, to]);
        show(low, high);
        return boxed(query, series, window, choice, [[low, high + 1]]);
      },
    });
    const scale = apart ? [element("p", { class: "note" }, "The scale is that of this window: another one has numbers more than three times as large.")] : lines[0].v.length > 1 ? [element("p", { class: "note" }, "The vertical scale is the same in all windows.")] : [];
    return [...drawn, barsLegend(query, known.length > 0 && "whisker", !bars.every(sure)), ...scale];
  }

  // The highest number of all windows, and how many other numbers may be as high.
  function peakTold({ series }, { name, line, window, others }) {
    const alike = line.lo[window] === null ? "" : others ? ` The interval${others > 1 ? "s" : ""} of ${number(others)} other number${others > 1 ? "s" : ""} overlap${others > 1 ? "" : "s"} this one.` : " No other interval overlaps this one.";
    return `${others ? "Highest number" : "Largest"} of all windows: ${name}, ${when(series, window)}: ${told(series, line, window)}.${alike}`;
  }

  // All windows: a picture with a pixel for each number, so that many are quick to draw.
  function overTime(state, room, printed) {
    const { series, choice } = state, windows = series.cells[0].v.length;
    const lines = series.cells.slice(choice * count, (choice + 1) * count);
    const tone = colouring(query, lines, printed, series);
    const canvas = element("canvas", { width: windows, height: count }), pen = canvas.getContext("2d");
    lines.forEach((one, cell) => one.v.forEach((value, window) => {
      if (value === null || unsure(query, one, window)) return; // transparent: hatching is below
      pen.fillStyle = tone.colour(value);
      pen.fillRect(window, count - 1 - cell, 1, 1);
    }));
    const starts = d3.range(windows).map((window) => span(series, window)[1]), height = Math.max(160, Math.min(printed ? 220 : 300, count * 14 + 44));
    const steps = axis.texts.filter((_, at) => at % Math.ceil((inner + 1) / Math.max(2, Math.floor(height / 30))) === 0);
    const left = Math.max(46, widest(steps) + 14);
    const dates = ticks(series, starts, ((room - left - 24) * Math.max(1, windows - 1)) / windows), at = d3.scaleLinear(starts.length > 1 ? starts : [starts[0], +starts[0] + 1], d3.range(Math.max(2, windows))).clamp(true);
    const places = steps.map((text) => axis.texts.indexOf(text));
    const svg = Plot.plot({
      width: room, height, marginLeft: left, marginRight: 24, marginTop: 10, marginBottom: 38,
      x: { type: "linear", domain: [0, windows], label: null, tickPadding: 7, ticks: dates.ticks.map(at), tickFormat: (_, place) => dates.tickFormat(_, place) },
      y: { type: "linear", domain: [-1, inner + 1], label: null, ticks: places, tickFormat: (_, place) => steps[place] },
      marks: [Plot.frame({ stroke: "var(--line)" })],
    });
    const [x, y] = [svg.scale("x"), svg.scale("y")];
    const [width, tall] = [x.apply(windows) - x.apply(0), y.apply(-1) - y.apply(inner + 1)];
    d3.select(svg).insert("image", ":first-child").attr("href", canvas.toDataURL()).attr("x", x.apply(0)).attr("y", y.apply(inner + 1))
      .attr("width", width).attr("height", tall).attr("preserveAspectRatio", "none").attr("style", "image-rendering: pixelated");
    const some = lines.some((one) => one.v.some((value, window) => value !== null && unsure(query, one, window)));
    if (some) d3.select(svg).insert("rect", ":first-child").attr("x", x.apply(0)).attr("y", y.apply(inner + 1)).attr("width", width).attr("height", tall).attr("fill", hatched(svg));
    const top = peakOf(query, items(state));
    if (top) {
      const left = x.apply(top.window), down = y.apply(top.cell % count), box = { left, right: left + Math.max(4, width / windows), top: down, bottom: down + tall / count };
      ringed(svg, box);
      noted(svg, [told(series, top.line, top.window), when(series, top.window)], box, [x.apply(0), x.apply(windows), y.apply(inner + 1), y.apply(-1)]);
    }
    const frame = d3.select(svg).append("rect").attr("width", Math.max(3, width / windows)).attr("height", tall / count).attr("fill", "none")
      .attr("stroke", "var(--mark)").attr("stroke-width", 2).attr("pointer-events", "none").attr("visibility", "hidden");
    const numbers = readable(svg, {
      summary: `${query.name}, ${series.label}: all windows, ${axis.key} upwards, time to the right. ${top ? peakTold(state, top) : ""}`,
      count: windows * count,
      arrows: { ArrowLeft: -count, ArrowRight: count, ArrowUp: 1, ArrowDown: -1 },
      nearest: (across, down) => Math.max(0, Math.min(windows - 1, Math.floor(x.invert(across)))) * count + Math.max(0, Math.min(count - 1, Math.floor(y.invert(down)) + 1)),
      mark: (place) => {
        frame.attr("visibility", place === null ? "hidden" : "visible");
        if (place !== null) frame.attr("x", x.apply(Math.floor(place / count))).attr("y", y.apply((place % count)));
      },
      text: (place) => `${when(series, Math.floor(place / count))}, ${axis.key} ${axis.labels[place % count]}: ${told(series, lines[place % count], Math.floor(place / count))}`,
      choose: (place) => choose(choice * count + (place % count), Math.floor(place / count)),
    });
    const keys = legend(...tone.legend(), some && key("hatch", doubt(query)), top && key("ring", `${top.others ? "highest number" : "largest"} of all windows${top.line.lo[top.window] === null ? "" : ", with its 95\u00a0% interval"}${top.others ? "; others may be higher" : ""}`));
    return [element("figcaption", {}, `All windows: ${axis.key} by time`), ...(top ? [element("p", { class: "peak" }, peakTold(state, top), ...jump(top.window, "Show its window"))] : []),
      ...numbers, keys, element("p", { class: "note" }, `The lowest row is ${beneath}, the highest one ${over}. ${[dates.dated, tone.how].filter((one) => one).join(" ")}`)];
  }

  const items = ({ series, choice }) => d3.range(choice * count, (choice + 1) * count).map((cell) => ({ name: named(query, cell), line: series.cells[cell], cell }));
  const draw = (state, room, title, printed) => [
    [...histogram(state, room, title, printed), element("p", { class: "note" },
      hint("Drag over bars, or hold shift with an arrow key, for their sum."))],
    ...(state.series.cells[0].v.length > 1 ? [overTime(state, state.wide, printed)] : []),
  ];
  return Object.assign(draw, { items });
};
