// Several listed keys with marginals: a table of a window with margins, sums with their published intervals.
"use strict";
slackwater.pictures.crossed = (query, { choose }) => {
  const { data, element, number, unsure, doubt, key, legend, when } = slackwater;
  const ALL = "all", name = (cell) => JSON.stringify(cell);
  const values = query.keys.map((_, at) => [...new Set(query.cells.map((cell) => cell[at]))]);
  const others = [...query.keys.keys()].slice(2);
  const fixed = new Map(others.map((at) => [at, null]));

  // All numbers of a window: cells, and sums over some keys from other parts of the query.
  const numbers = (series) => {
    const at = query.series.indexOf(series), found = new Map();
    for (const other of [...data.queries, ...(data.others ?? [])].filter((one) => one.origin === query.origin && one.part !== "ranges"))
      other.cells.forEach((cell, place) => { if (other.series[at]) found.set(name(cell), other.series[at].cells[place]); });
    return found;
  };

  return ({ series, window }, room, title) => {
    const of = numbers(series), tools = element("div", { class: "controls" });
    for (const at of others) {
      const select = element("select", {}, ...[ALL, ...values[at]].map((value) => element("option", { value }, value)));
      const there = (value) => [...of.keys()].some((cell) => JSON.parse(cell)[at] === value);
      if (fixed.get(at) === null) fixed.set(at, there(ALL) ? ALL : values[at][0]);
      select.value = fixed.get(at);
      select.addEventListener("change", () => { fixed.set(at, select.value); choose(null); });
      tools.append(element("label", { class: "field" }, query.keys[at], select));
    }
    const long = values[0].length >= values[1].length ? [0, 1] : [1, 0]; // the key with more values goes down
    const [row, column] = long.map((at) => query.keys[at]), label = (one, other) => [...(long[0] ? [other, one] : [one, other]), ...others.map((at) => fixed.get(at))];
    let some = false;
    const box = (one, other) => {
      const line = of.get(name(label(one, other))), margin = one === ALL || other === ALL;
      if (!line) return element("td", { class: "number quiet" }, "\u2013");
      const low = line.lo[window], half = low === null ? "" : ` \u00b1 ${number(+((line.hi[window] - low) / 2).toPrecision(3))}`;
      const lost = unsure(query, line, window), mark = element("span", { class: "swatch hatch", role: "img", "aria-label": doubt(query) });
      if (lost) some = true;
      return element("td", { class: `number${margin ? " margin" : ""}` }, ...(lost ? [mark] : []), number(line.v[window]), element("small", {}, half));
    };
    const shown = (at) => (values[at].includes(ALL) ? values[at] : [...values[at], ALL]);
    const table = element("table", { class: "crossed" }, element("caption", {}, `${query.name}, ${series.label}, ${when(series, window)}`),
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, `${row} \\ ${column}`), ...shown(long[1]).map((value) => element("th", { scope: "col", class: "number" }, value)))),
      element("tbody", {}, ...shown(long[0]).map((value) => element("tr", {}, element("th", { scope: "row" }, value), ...shown(long[1]).map((other) => box(value, other))))));
    const scrolls = element("div", { class: "scrolls", role: "region", "aria-label": title }, table);
    scrolls.tabIndex = 0;
    return [[...(others.length ? [tools] : []), scrolls, ...(some ? [legend(key("hatch", doubt(query)))] : []), element("p", { class: "note" },
      "all: the sum over a key, as published; \u2013: not published. \u00b1: half of the 95 % interval.")]];
  };
};
