// What pictures of the cells of a window have in common: the main message, and sums over boxes with their intervals.
"use strict";
Object.assign(slackwater, (() => {
  const { number, called: plainly, isSum, told, unsure, topmost } = slackwater;

  // ---- words: as in pipelines/pages/pictures/message.py

  // What sentences call what a chart shows, and how many cells each adds up; empty for single cells.
  function merging({ picture }) {
    const { merged = 1, axes } = picture ?? {};
    if (merged === 1) return ["cell", ""];
    return axes.length === 1 ? ["bar", `Each bar adds up ${merged} cells.`] : ["square", `Each square adds up ${merged} by ${merged} cells.`];
  }
  function overlapping(names, noun) {
    if (!names.length) return "No other interval overlaps this one.";
    return `The interval${overlap(names.length > 2 ? `${number(names.length)} other ${noun}s` : names.join(" and "), names)} this one.`;
  }
  const overlap = (whose, names) => `${names.length > 1 ? "s" : ""} of ${whose} overlap${names.length > 1 ? "" : "s"}`;

  // The name of a cell: of ordered keys with the key, because an interval alone does not name its quantity.
  function named(query, cell) {
    if (!query.picture?.axes) return plainly(query, cell);
    const { axes } = query.picture, listed = query.cells[cell].length - axes.length;
    const along = ({ key, labels, texts }, value) =>
      value === labels[0] ? `${key} below ${texts[0]}` : value === labels.at(-1) ? `${key} ${texts.at(-1)} or more` : `${key} ${value}`;
    const texts = query.cells[cell].map((value, at) => (at < listed ? value : along(axes[at - listed], value))).slice(isSum(query, cell) ? listed : 0);
    return texts.filter((text) => !query.part || text !== "all").join(", ");
  }

  // The largest of some things in a window, each with its name and line, and how sure that is; `called`: its name; `among`: of what.
  function largest(query, series, window, items, called, among = "") {
    const known = items.filter(({ line }) => line.v[window] !== null);
    if (!known.length) return ["no numbers."];
    const top = topmost(query, known, window);
    const sure = known.filter(({ line }) => line.lo[window] !== null), low = top.line.lo[window];
    const chosen = known.some(({ line }) => line.v[window] > top.line.v[window]), shown = `${top.name}: ${told(series, top.line, window)}`;
    const others = low === null ? [] : sure.filter((one) => one !== top && one.line.hi[window] >= low).map(({ name }) => name);
    const [noun, each] = merging(query), what = others.length ? "Highest number" : called, said = [`${what}${chosen ? " that is not mostly noise" : ""}${among}: ${shown}.`];
    const whose = others.length > 2 ? `${number(others.length)} of ${number(sure.length - 1)} other ${noun}s` : others.join(" and ");
    if (others.length && others.length > (sure.length - 1) / 2) said[0] = `No largest ${noun} can be named: the interval${overlap(whose, others)} that of ${shown}${chosen ? ", the highest that is not mostly noise" : ""}.`;
    else if (low !== null) said.push(overlapping(others, noun));
    const lost = sure.filter(({ line }) => unsure(query, line, window)).length;
    if (lost) said.push(`${number(lost)} of ${number(known.length)} ${noun}${known.length > 1 ? "s" : ""} ${query.within ? "have intervals wider than half of their range" : "cannot be distinguished from zero"}.`);
    return each ? [...said, each] : said;
  }

  // The highest number of all windows, if possible one that is not mostly noise: of which thing, when, and how many other
  // numbers may be as high.
  function peakOf(query, items) {
    const tops = [null, null]; // of numbers that are not mostly noise, and of the others
    for (const one of items) one.line.v.forEach((value, window) => {
      if (value === null) return;
      const lost = +unsure(query, one.line, window);
      if (!tops[lost] || value > tops[lost].line.v[tops[lost].window]) tops[lost] = { ...one, window };
    });
    const top = tops[0] ?? tops[1], low = top?.line.lo[top.window];
    return top && { ...top, others: low === null ? 0 : d3.sum(items, ({ line }) => d3.sum(line.hi, (high) => +(high !== null && high >= low))) - 1 };
  }

  // ---- sums over a box of cells: from, along each ordered key, one cell to another

  const pair = (size, from, to) => from * size - (from * (from - 1)) / 2 + (to - from - 1);

  // Half width of the interval of a sum over a box; null if it is unknown (pipelines/pages/pictures/sums.py).
  function halfWidth(picture, series, window, choice, box) {
    const over = picture.summed && choice === 0, { space, noise } = over ? series.over : series.errors, sums = over ? picture.over : picture.sums;
    if (space === undefined || !noise[window]) return null;
    const [table, inTime, share] = noise[window], of = sums.spaces[space], { exact, boxes, spread } = sums.tables[table];
    const sizes = picture.axes.map((axis) => axis.labels.length);
    if (boxes) return boxes[pair(sizes[0], ...box[0])];
    let squares = 1, largest = 1;
    if (of.bounds) {
      squares = of.times;
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
    const cells = `${number(places.length)} ${merging(query)[0]}${places.length > 1 ? "s" : ""}, ${where}`;
    const half = halfWidth(query.picture, series, window, choice, box), unit = series.unit, round = (value, way) => way(value / unit) * unit;
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
    return low === null ? `${axis.key} below ${high}` : high === null ? `${axis.key} ${low} or more` : `${axis.key} ${low} to ${high}`;
  }

  // ---- the chart of each kind: a function of a query and of what is chosen, which returns a function that draws

  const pictures = {};

  return { named, merging, largest, peakOf, halfWidth, boxed, pictures };
})());
