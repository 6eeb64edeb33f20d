// Compares two published numbers of one series that the reader chooses: of two windows, of two cells, or both.
"use strict";
(() => {
  const { data, element, number, when } = slackwater;

  const answers = {
    higher: "higher: the difference is larger than the noise",
    lower: "lower: the difference is larger than the noise",
    unclear: "no difference can be distinguished from the noise",
  };

  // Both 95 % intervals hold at once with at least 90 % probability, and so does this one of the difference.
  function compared(one, other) {
    if (one.value === null || other.value === null) return "unknown: one of the numbers is unknown";
    const value = one.value - other.value, said = `${value > 0 ? "+" : ""}${number(+value.toFixed(6))}`;
    if (one.low === null || other.low === null) return `${said}: unknown: one of the numbers has no known interval`;
    const [low, high] = [one.low - other.high, one.high - other.low].map((end) => +end.toFixed(6));
    const answer = low > 0 ? "higher" : high < 0 ? "lower" : "unclear";
    return `${said}, with at least 90 % probability from ${number(low)} to ${number(high)}: ${answers[answer]}.`;
  }

  function draw(query, home) {
    const state = { series: query.series[0] };
    const output = element("p", { class: "compared" });
    output.setAttribute("aria-live", "polite");
    const cells = [...(query.series.some((series) => series.total) ? [-1] : []), ...query.cells.keys()];
    const name = (cell) => (cell < 0 ? "all cells together" : query.cells[cell].join(", ") || query.name);
    const line = (cell) => (cell < 0 ? state.series.total : state.series.cells[cell]);

    function choice(label, options, text, chosen) {
      const select = element("select", {}, ...options.map((one) => element("option", { value: String(one) }, text(one))));
      select.value = String(chosen);
      select.addEventListener("change", tell);
      return [select, element("label", { class: "field" }, label, select)];
    }
    function number_at(cell, window) {
      const { v, lo, hi } = line(+cell.value), at = +window.value;
      return { value: v[at], low: lo[at], high: hi[at], name: `${name(+cell.value)}, ${when(state.series, at)}` };
    }
    function tell() {
      const [one, other] = state.chosen.map((pair) => number_at(...pair));
      output.textContent = `${one.name}, minus ${other.name}: ${compared(one, other)}`;
    }
    function fill(at) {
      state.series = query.series[at];
      const count = state.series.cells[0].v.length, last = count - 1;
      const known = cells.filter((cell) => cell >= 0 || state.series.total);
      const windows = [...Array(count).keys()].reverse();
      const both = [last, Math.max(0, last - 1)].map((window, place) => [
        choice(place ? "minus" : "Number", known, name, known[0]),
        choice(place ? "in window" : "of window", windows, (one) => when(state.series, one), window),
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
