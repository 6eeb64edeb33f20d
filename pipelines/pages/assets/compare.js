// Compares two published numbers of one series that the reader chooses: of two windows, of two cells, or both.
"use strict";
(() => {
  const { data, element, number, called, when } = slackwater;

  // The same words as pipelines/published/sums.py.
  const answers = {
    higher: "higher: more than the noise explains",
    lower: "lower: more than the noise explains",
    unclear: "may be noise alone",
  };

  // The difference, its interval and the level of this, in percent, as the page states them; null if it does not.
  function stated(series, one, other) {
    for (const [first, second, value, low, high, level] of series.stated ?? []) {
      if (low === undefined) continue;
      if (first === one.name && second === other.name) return [value, low, high, level];
      if (first === other.name && second === one.name) return [-value, -high, -low, level];
    }
    return null;
  }

  // Both 95 % intervals hold at once with at least 90 % probability, and so does this one of the difference.
  function compared(series, one, other) {
    if (one.value === null || other.value === null) return "unknown: one of the numbers is unknown";
    const exact = stated(series, one, other), round = (end) => +end.toFixed(6);
    const value = exact ? exact[0] : round(one.value - other.value), said = `${value > 0 ? "+" : ""}${number(value)}`;
    if (one.name === other.name) return `${said}: it is the same number.`;
    if (!exact && (one.low === null || other.low === null)) return `${said}. The difference has no known interval.`;
    const [low, high, level] = exact ? exact.slice(1) : [round(one.low - other.high), round(one.high - other.low), 90];
    const answer = low > 0 ? "higher" : high < 0 ? "lower" : "unclear";
    const hint = series.noisy && one.cell >= 0 && answer !== "unclear" ? `, but ${series.noisy}` : ""; // not of all cells together
    return `${said} (${level}\u00a0% interval ${number(low)} to ${number(high)}), ${answers[answer]}${hint}.`;
  }

  function draw(query, home) {
    const state = { series: query.series[0] };
    const output = element("p", { class: "compared" });
    output.setAttribute("aria-live", "polite");
    const cells = [...(query.series.some((series) => series.total) ? [-1] : []), ...query.cells.keys()];
    const name = (cell) => (cell < 0 ? "all cells together" : called(query, cell));
    const line = (cell) => (cell < 0 ? state.series.total : state.series.cells[cell]);

    function choice(label, options, text, chosen) {
      const select = element("select", {}, ...options.map((one) => element("option", { value: String(one) }, text(one))));
      select.value = String(chosen);
      select.addEventListener("change", tell);
      return [select, element("label", { class: "field" }, label, select)];
    }
    function number_at(cell, window) {
      const { v, lo, hi } = line(+cell.value), at = +window.value;
      return { cell: +cell.value, value: v[at], low: lo[at], high: hi[at], name: `${name(+cell.value)}, ${when(state.series, at)}` };
    }
    function tell() {
      const [one, other] = state.chosen.map((pair) => number_at(...pair));
      output.textContent = `${one.name}, compared with ${other.name}: ${compared(state.series, one, other)}`;
    }
    function fill(at) {
      state.series = query.series[at];
      const count = state.series.cells[0].v.length, last = count - 1;
      const known = cells.filter((cell) => cell >= 0 || state.series.total);
      const windows = [...Array(count).keys()].reverse();
      const both = [last, Math.max(0, last - 1)].map((window, place) => [
        choice(place ? "Compared with" : "Number", known, name, known[0] < 0 ? known[0] : query.open),
        choice("When", windows, (one) => when(state.series, one), window),
      ]);
      state.chosen = both.map((pair) => pair.map(([select]) => select));
      const kinds = choice("Kind", [...query.series.keys()], (one) => query.series[one].label, at);
      kinds[0].addEventListener("change", () => fill(+kinds[0].value));
      const fields = both.flatMap(([cell, window]) => [...(known.length > 1 ? [cell[1]] : []), window[1]]);
      home.replaceChildren(element("div", { class: "controls" }, ...(query.series.length > 1 ? [kinds[1]] : []), ...fields), output);
      if (count) tell();
      else output.textContent = "There are no numbers yet.";
    }
    fill(0);
  }

  for (const home of document.querySelectorAll(".compare")) draw(data.queries[+home.dataset.place], home);
})();
