// What all that is drawn has in common: elements, numbers as text, a plot that is read by pointer and keys, tables to copy.
"use strict";
const slackwater = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const redraws = [];

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key in made && typeof value !== "string") made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children.map((child) => (typeof child === "string" ? isolated(child) : child)));
    return made;
  }

  // A text in which names that are written from right to left do not move the numbers next to them (pipelines/pages/html.py).
  const LEFTWARDS = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc](?:[^\d(:;]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc])?/g;
  const isolated = (text) => text.replace(LEFTWARDS, (name) => (name === text ? name : `\u2068${name}\u2069`));

  const number = (value) =>
    value === null ? "unknown" : Math.abs(value) >= 1e15 ? value.toExponential(3) : value.toLocaleString("en", { maximumFractionDigits: 6 });
  const tick = (value) => (Math.abs(value) >= 1e4 ? d3.format("~s")(value) : d3.format("~g")(value)).replace("-", "\u2212");

  // The name of a window that people use, as transforms/common/dates.py has it: a window does not contain its end.
  const DAY = 86400000;
  const written = (format) => (time) => d3.utcFormat(format)(time);
  const [day, month, clock] = ["%-d %B %Y", "%B %Y", "%H:%M"].map(written);
  function days(from, last) {
    if (+from === +last) return day(from);
    if (from.getUTCFullYear() !== last.getUTCFullYear()) return `${day(from)} to ${day(last)}`;
    return `${written(from.getUTCMonth() === last.getUTCMonth() ? "%-d" : "%-d %B")(from)} to ${day(last)}`;
  }
  function months(from, last) {
    const [first, end] = [from.getUTCFullYear(), last.getUTCFullYear()];
    if (from.getUTCMonth() === 0 && last.getUTCMonth() === 11) return first === end ? `${first}` : `${first} to ${end}`;
    if (month(from) === month(last)) return month(last);
    return `${written(first === end ? "%B" : "%B %Y")(from)} to ${month(last)}`;
  }
  function windowName(from, end) {
    const last = new Date(end - DAY), midnight = end % DAY === 0;
    if (from % DAY || !midnight) {
      if (day(from) === day(end)) return `${day(from)}, ${clock(from)} to ${clock(end)}`;
      if (midnight && end - from < DAY) return `${day(from)}, ${clock(from)} to 24:00`;
      return `${day(from)}, ${clock(from)} to ${day(end)}, ${clock(end)}`;
    }
    if (from.getUTCDate() === 1 && end.getUTCDate() === 1) return months(from, last);
    return end - from === 7 * DAY ? `week of ${days(from, last)}` : days(from, last);
  }

  // A moment as people write it; midnight is the end of the day before.
  const momentName = (time) => (time % DAY === 0 ? `the end of ${day(time - DAY)}` : `${day(time)}, ${clock(time)}`);

  // From where to where a number of a series is, and where its last window begins: of a calendar they are listed.
  const span = (series, place) => {
    if (series.spans) return series.spans[place].map((time) => new Date(time));
    const end = series.first + place * series.step;
    return [end - series.width, end - series.window, end].map((time) => new Date(time));
  };
  // When a number applies: a level at the end of its window, any other kind over its windows.
  function when(series, place) {
    const [from, , end] = span(series, place);
    return series.kind === "level" ? momentName(end) : windowName(from, end);
  }

  // Labels as wide as they will be, in the style that plots have.
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "12px system-ui, sans-serif";
  const pixels = (text) => pen.measureText(text).width;
  const widest = (texts) => Math.ceil(d3.max(texts, pixels));

  // A text, or as much of its begin as has room.
  function cut(text, room) {
    let letters = text.length;
    while (letters > 1 && pixels(`${text.slice(0, letters)}\u2026`) > room) letters -= 1;
    return pixels(text) <= room ? text : `${text.slice(0, letters)}\u2026`;
  }

  // A vertical scale with about this number of ticks, and the width of their labels.
  function scaled([low, high], count) {
    const scale = d3.scaleLinear(low === high ? [low - 1, high + 1] : [low, high], [0, 1]).nice();
    const ticks = scale.ticks(count);
    return { marginLeft: Math.max(46, widest(ticks.map(tick)) + 14), y: { label: null, grid: true, domain: scale.domain(), ticks, tickFormat: tick } };
  }

  // The least height of a band that one sees, in units of a scale of some pixels, and ends of an interval as far apart.
  const thinnest = ([low, high], pixels) => (5 * (high - low)) / pixels;
  function apart(low, high, least) {
    if (low === null) return [NaN, NaN];
    const more = Math.max(0, least - (high - low)) / 2;
    return [low - more, high + more];
  }

  // A drawing as one stop of the keyboard; below it stands what the pointer, or an arrow key, is at.
  // Of `count` things: which is nearest to a place of the drawing, how one is marked (null: none), and what it says;
  // `arrows`: how far each arrow key goes. With `choose`, a click or Enter takes one. With `between`, dragging, or the
  // shift key with an arrow, marks all things from one to another, and returns what they say together.
  function readable(svg, { summary, count, nearest, mark, text, arrows = { ArrowLeft: -1, ArrowRight: 1 }, choose, between }) {
    const readout = element("span", { class: "readout" });
    readout.setAttribute("aria-live", "polite");
    let current = null, anchor = null, kept = false, pressed = false;
    function move(place, extend) {
      anchor = extend ? anchor ?? current ?? place : null;
      current = Math.max(0, Math.min(count - 1, place));
      kept = extend;
      mark(current);
      readout.textContent = isolated(extend ? between(anchor, current) : text(current));
      if (between && !extend) between(null);
    }
    function leave() {
      if (kept) return; // what was marked stays, to be read
      mark(null);
      readout.textContent = "";
    }
    svg.setAttribute("aria-hidden", "true");
    const more = `Arrow keys read single numbers.${between ? " With the shift key they add up numbers." : ""}${choose ? " Enter chooses one." : ""}`;
    const plot = element("div", { class: "plot", role: "group", "aria-label": `${summary} ${more}` }, svg);
    plot.tabIndex = 0;
    const at = (event) => {
      const box = svg.getBoundingClientRect();
      const scale = svg.width.baseVal.value / box.width;
      return nearest((event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
    };
    plot.addEventListener("pointermove", (event) => {
      if (!count || (kept && !pressed)) return;
      const place = at(event);
      move(place, Boolean(between && pressed && (kept || place !== current)));
    });
    plot.addEventListener("pointerdown", (event) => {
      if (!count) return;
      move(at(event), false);
      pressed = true;
    });
    plot.addEventListener("pointerup", () => {
      pressed = false;
      if (choose && count && !kept && current !== null) choose(current);
    });
    plot.addEventListener("pointerleave", () => { pressed = false; leave(); });
    plot.addEventListener("blur", leave);
    plot.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && choose && current !== null) choose(current);
      const by = { ...arrows, PageUp: -7, PageDown: 7, Home: -count, End: count }[event.key];
      if (by === undefined || !count) return;
      event.preventDefault();
      move((current ?? (by > 0 ? -1 : count)) + by, Boolean(between && event.shiftKey));
    });
    return [plot, readout];
  }

  // What opens a table of numbers, and how it is filled: `rows` gives a caption, a heading and rows, the first cell of each a text.
  function copied(name, rows) {
    const table = element("div", { class: "scrolls", role: "region", "aria-label": `Numbers of ${name}` });
    table.tabIndex = 0;
    const summary = element("summary", {}, "Numbers to copy");
    const details = element("details", {}, summary);
    const select = element("button", {}, "Select the table");
    select.type = "button";
    select.addEventListener("click", () => getSelection().selectAllChildren(table));
    details.append(select, table);
    function fill(open = details.open) {
      table.replaceChildren();
      if (!open) return;
      const [caption, heading, body] = rows();
      const line = (cells, first) => element("tr", {}, ...cells.map((cell, column) =>
        element(column && !first ? "td" : "th", { ...(column ? { class: "number" } : {}), ...(column && !first ? {} : { scope: first ? "col" : "row" }) },
          cell === null ? "" : String(cell))));
      table.append(element("table", {}, element("caption", {}, caption), element("thead", {}, line(heading, true)), element("tbody", {}, ...body.map((cells) => line(cells, false)))));
    }
    summary.addEventListener("click", () => fill(!details.open)); // before it opens, so that it opens at its height
    return [details, fill];
  }

  // Draw each chart, and draw it again if its width changes.
  function drawAll(list, draw) {
    list.forEach((one, place) => {
      const home = document.querySelector(`.charts[data-place="${place}"]`);
      home.replaceChildren();
      const redraw = draw(one, home, place);
      redraws.push(redraw);
      redraw();
    });
    const texts = [...document.querySelectorAll("details.told")]; // so that a phone shows the first chart early
    if (matchMedia("(max-width: 40rem)").matches) texts.forEach((one) => { one.open = false; });
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth !== width) redraws.forEach((redraw) => redraw());
      width = innerWidth;
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach((redraw) => redraw()));
    addEventListener("beforeprint", () => redraws.forEach((redraw) => redraw(680)));
    addEventListener("afterprint", () => redraws.forEach((redraw) => redraw()));
  }

  return { data, span, when, element, number, tick, pixels, widest, cut, scaled, thinnest, apart, readable, copied, drawAll };
})();
