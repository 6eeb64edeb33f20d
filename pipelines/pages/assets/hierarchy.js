// A key with a hierarchy: the nodes below a node as bars; a bar leads further down, buttons lead up. The other keys have one cell.
"use strict";
slackwater.pictures.hierarchy = (query, { choose }) => {
  const { data, element, label, told, largest, topmost, ranked, hint, bars } = slackwater;
  const { at, levels, values, choices } = query.picture, key = query.keys[at], count = values.length;
  const placed = (choice, name) => choices[choice].toSpliced(at, 0, name), text = (cell) => JSON.stringify(cell);
  // Lines of inner nodes are on the page as numbers of other parts of the query.
  const lines = (series) => {
    const place = query.series.indexOf(series), found = new Map();
    for (const other of [...data.queries, ...(data.others ?? [])].filter((one) => one.origin === query.origin))
      other.cells.forEach((cell, one) => { if (other.series[place]) found.set(text(cell), other.series[place].cells[one]); });
    return found;
  };
  const root = levels.at(-1).length === 1 ? { level: levels.length, node: levels.at(-1)[0] } : null;
  let path = [root];

  // Nodes of the next level in a node's values, and values that are nodes by themselves there.
  function below(above) {
    const [level, from, to] = above ? [above.level, above.node[1], above.node[2]] : [levels.length + 1, 0, count];
    const inner = new Map((levels[level - 2] ?? []).map((node) => [node[1], { level: level - 1, node }])), found = [];
    for (let leaf = from; leaf < to; leaf = inner.get(leaf)?.node[2] ?? leaf + 1) found.push(inner.get(leaf) ?? { node: [values[leaf], leaf, leaf + 1], level: 0 });
    return found;
  }
  const withLines = (nodes, { series, choice }) => {
    const of = lines(series);
    return nodes.map((one) => ({ ...one, name: one.node[0], line: of.get(text(placed(choice, one.node[0]))) })).filter((one) => one.line);
  };

  const items = (state) => withLines(below(path.at(-1)), state);
  // The largest node that is drawn, and the largest value below it all, if that is another one.
  function message(state) {
    const { series, window } = state, shown = items(state), [, from, to] = path.at(-1)?.node ?? ["", 0, count];
    const leaves = withLines(d3.range(from, to).map((leaf) => ({ node: [values[leaf], leaf, leaf + 1], level: 0 })), state);
    const top = topmost(query, leaves, window);
    const said = largest(query, series, window, shown, "Largest");
    return top && shown.some((one) => one.level) ? [...said, `Largest ${key}: ${top.name}: ${told(series, top.line, window)}.`] : said;
  }

  const draw = (state, room, title, printed) => {
    const { series, window, choice } = state, here = path.at(-1);
    const trail = element("nav", { class: "trail", "aria-label": `Place in the hierarchy of ${query.name}` });
    path.forEach((one, step) => {
      const name = one?.node[0] ?? key;
      if (step) trail.append(" \u203a ");
      if (step === path.length - 1) { trail.append(element("strong", { "aria-current": "true" }, name)); return; }
      const back = element("button", { type: "button" }, name);
      back.addEventListener("click", () => { path = path.slice(0, step + 1); choose(null); });
      trail.append(back);
    });
    const sorted = ranked(query, items(state), (one) => one.line, window);
    const cell = (one) => query.cells.findIndex((other) => text(other) === text(placed(choice, one.node[0])));
    const drawn = bars(query, series, window, sorted, {
      room, printed, title: `${title} Nodes of ${here?.node[0] ?? key}.`,
      further: (one) => (one.level ? "; click or Enter: nodes below" : ""),
      choose: (one) => { if (one.level) { path = [...path, one]; choose(null); } else if (cell(one) >= 0) choose(cell(one)); },
    });
    return [[...(path.length > 1 ? [trail] : []), ...drawn, element("p", { class: "note" }, "A node is published with its own interval and is the sum of those below it.",
      ...(sorted.some((one) => one.level) ? [hint("Click a bar, or press Enter on it, for the nodes below it.")] : []))]];
  };
  // The node above the bars, with its name.
  const total = ({ series, choice }) => path.at(-1) && lines(series).get(text(placed(choice, path.at(-1).node[0])));
  const called = ({ choice }) => (path.length > 1 ? path.at(-1).node[0] : ["All cells", ...choices[choice].filter((value) => value !== "all")].join(", "));
  return Object.assign(draw, { total, root: called, choices: choices.map((choice) => label(choice)), items, message });
};
