// One key with a hierarchy: the nodes below a node as bars; a bar leads further down, buttons lead up.
"use strict";
slackwater.pictures.hierarchy = (query, { choose }) => {
  const { data, element, number, label, told, bars, barsNote } = slackwater;
  const { levels } = query.picture;
  // Lines of inner nodes are on the page as numbers of other parts of the query.
  const lines = (series) => {
    const at = query.series.indexOf(series), found = new Map();
    for (const other of [...data.queries, ...(data.others ?? [])].filter((one) => one.origin === query.origin))
      other.cells.forEach((cell, place) => { if (other.series[at]) found.set(label(cell), other.series[at].cells[place]); });
    return found;
  };
  const top = levels.at(-1).length === 1 ? { level: levels.length, node: levels.at(-1)[0] } : null;
  let path = [top];

  // Nodes of the next level in a node's cells, and cells that are nodes by themselves there.
  function below(at) {
    const [level, from, to] = at ? [at.level, at.node[1], at.node[2]] : [levels.length + 1, 0, query.cells.length];
    const inner = new Map((levels[level - 2] ?? []).map((node) => [node[1], { level: level - 1, node }])), found = [];
    for (let cell = from; cell < to; cell = inner.get(cell)?.node[2] ?? cell + 1) found.push(inner.get(cell) ?? { node: [label(query.cells[cell]), cell, cell + 1], level: 0 });
    return found;
  }

  return ({ series, window }, room, title, printed) => {
    const of = lines(series), here = path.at(-1);
    const trail = element("nav", { class: "trail", "aria-label": `Place in the hierarchy of ${query.name}` });
    path.forEach((one, at) => {
      const name = one?.node[0] ?? query.keys[0];
      if (at) trail.append(" \u203a ");
      if (at === path.length - 1) { trail.append(element("strong", { "aria-current": "true" }, name)); return; }
      const back = element("button", { type: "button" }, name);
      back.addEventListener("click", () => { path = path.slice(0, at + 1); choose(null); });
      trail.append(back);
    });
    const items = below(here).map((one) => ({ ...one, name: one.node[0], line: of.get(one.node[0]) })).filter((one) => one.line);
    const last = (one) => one.line.v.at(-1) ?? -Infinity, sorted = d3.sort(items, (one, other) => d3.descending(last(one), last(other)));
    const together = here && of.get(here.node[0]) ? [element("p", { class: "total" }, `${here.node[0]}: ${told(series, of.get(here.node[0]), window)}`)] : [];
    const drawn = bars(query, series, window, sorted, {
      room, printed, title: `${title} Nodes of ${here?.node[0] ?? query.keys[0]}.`,
      further: (one) => (one.level ? "; click or Enter: nodes below" : ""),
      choose: (one) => { if (one.level) { path = [...path, one]; choose(null); } else choose(one.node[1]); },
    });
    return [[trail, ...together, ...drawn, element("p", { class: "note" }, `${barsNote(query)} Click a bar, or press Enter on it, for the nodes below it. A node is published with its own interval and is the sum of those below it.`)]];
  };
};
