// What pictures of the cells of a window have in common: colours, the main message, sums over boxes with their intervals.
"use strict";
Object.assign(slackwater, (() => {
  const { element, number, label, told } = slackwater;

  // ---- colours: of a screen, light or dark, or of paper

  const LIGHT = { low: "#e3eef9", high: "#08306b", under: "#fbe3e0", deep: "#8a1c14", grey: "#d5d9de", paper: "#ffffff" };
  const DARK = { low: "#17304a", high: "#d6e9ff", under: "#43211f", deep: "#ffb9af", grey: "#353c45", paper: "#10151c" };
  const colours = (printed) => (!printed && matchMedia("(prefers-color-scheme: dark)").matches ? DARK : LIGHT);

  // Colour of a number: the root of its share of the largest one, so that small ones differ as well.
  function toned(most, printed) {
    const { low, high, under, deep } = colours(printed);
    const [up, down] = [d3.interpolateLab(low, high), d3.interpolateLab(under, deep)];
    return (value) => (value < 0 ? down : up)(most > 0 ? Math.sqrt(Math.min(1, Math.abs(value) / most)) : 0);
  }

  // An interval that says nothing: it contains zero or, of means and ratios, is wider than half of their range.
  const unsure = (query, line, window) => {
    const [low, high] = [line.lo[window], line.hi[window]];
    if (low === null) return false;
    return query.within ? high - low > (query.within[1] - query.within[0]) / 2 : low <= 0 && high >= 0;
  };
  const doubt = (query) => (query.within ? "has an interval wider than half of the range" : "cannot be distinguished from zero");

  // Hatching for such numbers; returns how a drawing refers to it.
  let patterns = 0;
  function hatched(svg, printed) {
    const name = `hatch-${patterns += 1}`, { grey, paper } = colours(printed);
    const pattern = d3.select(svg).insert("defs", ":first-child").append("pattern").attr("id", name)
      .attr("width", 5).attr("height", 5).attr("patternUnits", "userSpaceOnUse").attr("patternTransform", "rotate(45)");
    pattern.append("rect").attr("width", 5).attr("height", 5).attr("fill", paper);
    pattern.append("rect").attr("width", 2).attr("height", 5).attr("fill", grey);
    return `url(#${name})`;
  }

  function swatch(colour, text, hatch = false) {
    const box = element("span", { class: hatch ? "swatch hatch" : "swatch" });
    if (!hatch) box.style.background = colour;
    return element("span", { class: "key" }, box, text);
  }

  function legend(query, { most, least, printed, some }) {
    const tone = toned(most, printed), steps = d3.ticks(Math.min(0, least), most, 4);
    return element("p", { class: "legend" }, ...steps.map((step) => swatch(tone(step), number(step))),
      ...(some ? [swatch("", doubt(query), true)] : []));
  }

  // ---- words: as in pipelines/pages/pictures/message.py

  function overlapping(count) {
    if (!count) return "No other interval overlaps this one.";
    return `The interval${count > 1 ? "s" : ""} of ${number(count)} other cell${count > 1 ? "s" : ""} overlap${count > 1 ? "" : "s"} this one.`;
  }

  // The largest of some cells in a window, and how sure that is; `called`: its name.
  function largest(query, series, window, places, called) {
    const lines = places.map((place) => series.cells[place]).filter((line) => line.v[window] !== null);
    if (!lines.length) return "no numbers.";
    const top = d3.greatest(lines, (one, other) => one.v[window] - other.v[window]);
    const known = lines.filter((line) => line.lo[window] !== null);
    const said = [`${called}: ${label(query.cells[series.cells.indexOf(top)])}: ${told(series, top, window)}.`];
    if (top.lo[window] !== null) said.push(overlapping(known.filter((line) => line !== top && line.hi[window] >= top.lo[window]).length));
    const lost = known.filter((line) => unsure(query, line, window)).length;
    if (lost) said.push(`${number(lost)} of ${number(lines.length)} cell${lines.length > 1 ? "s" : ""} ${query.within ? "have intervals wider than half of their range" : "cannot be distinguished from zero"}.`);
    return said.join(" ");
  }

  // ---- sums over a box of cells: from, along each ordered key, one cell to another

  const pair = (size, from, to) => from * size - (from * (from - 1)) / 2 + (to - from - 1);

  // Half width of the interval of a sum over a box; null if it is unknown (pipelines/pages/pictures/sums.py).
  function halfWidth(picture, series, window, box) {
    const { space, noise } = series.errors;
    if (space === undefined || !noise[window]) return null;
    const [table, inTime, share] = noise[window], of = picture.sums.spaces[space], { exact, boxes, spread } = picture.sums.tables[table];
    const sizes = picture.axes.map((axis) => axis.labels.length);
    if (boxes) return boxes[pair(sizes[0], ...box[0])];
    let squares = 1, largest = 1;
    if (of.bounds) {
      box.forEach(([from, to], axis) => { squares *= of.bounds[axis][to] - of.bounds[axis][from]; });
      if (exact) return exact[squares];
      largest = 1 / squares;
    } else if (of.axes) {
      box.forEach(([from, to], axis) => {
        const at = pair(sizes[axis], from, to);
        squares *= of.axes[axis].squares[at];
        largest *= of.axes[axis].largest[at];
      });
    } else {
      const lefts = (sizes[1] * (sizes[1] + 1)) / 2;
      squares = of.boxes[pair(sizes[0], ...box[0]) * lefts + pair(sizes[1], ...box[1])];
    }
    const reached = 1 / (share * largest) + 1e-9;
    return Math.sqrt(inTime * squares) * spread.findLast(([least]) => least === 1 || least <= reached)[1];
  }

  // What a box says: its cells, their sum, and the interval of the sum.
  function boxed(query, series, window, choice, box) {
    const { axes } = query.picture, first = choice * axes.reduce((product, axis) => product * axis.labels.length, 1);
    const [rows, columns] = box.map(([from, to]) => d3.range(from, to));
    const places = columns ? d3.cross(rows, columns, (row, column) => row * axes[1].labels.length + column) : rows;
    const sum = d3.sum(places, (place) => series.cells[first + place].v[window]);
    const where = axes.map((axis, at) => ranged(axis, ...box[at])).join(", ");
    const cells = `${number(places.length)} cell${places.length > 1 ? "s" : ""}, ${where}`;
    const half = halfWidth(query.picture, series, window, box), unit = series.unit, round = (value, way) => way(value / unit) * unit;
    const exact = (value) => number(+value.toPrecision(12));
    if (places.length === 1) return `${cells}: ${told(series, series.cells[first + places[0]], window)}`;
    if (series.errors.why && series.errors.unsummed) return `${cells}: ${series.errors.why}`;
    if (half === null) return `${cells}: sum ${exact(sum)}, no known interval. ${series.errors.why ?? "The window repeats an earlier one."}`;
    return `${cells}: sum ${exact(sum)} (${exact(round(sum - half, Math.floor) - 2 * unit)} to ${exact(round(sum + half, Math.ceil) + 2 * unit)})`;
  }

  // A range of cells along a key, from edge to edge.
  function ranged(axis, from, to) {
    const last = axis.labels.length - 1;
    if (to - from === 1) return `${axis.key} ${axis.labels[from]}`;
    const low = from === 0 ? null : axis.texts[from - 1], high = to > last ? null : axis.texts[to - 1];
    if (low === null && high === null) return `any ${axis.key}`;
    return low === null ? `${axis.key} below ${high}` : high === null ? `${axis.key} from ${low}` : `${axis.key} ${low} to ${high}`;
  }

  // ---- the chart of each kind: a function of a query and of what is chosen, which returns a function that draws

  const pictures = {};

  return { colours, toned, unsure, doubt, hatched, legend, swatch, largest, halfWidth, boxed, ranged, pictures };
})());
