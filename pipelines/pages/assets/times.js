// Times of windows and numbers of lines as words, and ticks of an axis of time.
"use strict";
Object.assign(slackwater, (() => {
  const DAY = 86400000;
  const POINTS = 10; // so few numbers have a marker each, and a tick each if there is room
  const { number, widest, span, when } = slackwater;

  const label = (cell) => cell.join(", ");
  const quantile = (share) => (share === 0.5 ? "Median" : `${number(100 * share)} % quantile`);
  // Whether a cell of a picture is a sum over all values of the listed keys.
  const isSum = ({ picture, cells }, cell) => Boolean(picture?.summed && cell < cells.length / picture.choices.length);
  // The name of a cell (pipelines/report/parts.py): without keys that are added up over, and quantiles in words.
  function called(query, cell) {
    const { shares, key } = query.picture ?? {}, texts = query.cells[cell];
    const listed = isSum(query, cell) ? texts.length - query.picture.axes.length : 0;
    const kept = texts.slice(listed).map((text, at) => (shares && at === key ? quantile(+text).toLowerCase() : text)).filter((text) => !query.part || text !== "all");
    return label(kept) || (texts.length ? "all cells together" : query.name);
  }
  const daily = (series) =>
    series.spans ? series.spans.every((one) => one.every((time) => time % DAY === 0)) : series.window % DAY === 0 && series.first % DAY === 0;

  // Changes of windows that do not overlap: drawn as steps, each over its window. Other numbers are at the end of theirs.
  const stepped = (series) => series.kind !== "level" && series.step >= series.width;
  function moment(series, place) {
    const [from, , end] = span(series, place);
    return stepped(series) ? new Date((+from + +end) / 2) : end;
  }

  function told(series, line, place) {
    const value = number(line.v[place]);
    const [low, high] = [line.lo[place], line.hi[place]];
    if (line.v[place] === null) return "unknown";
    if (low === null) return `${value} (${series.repeated?.[place] ? "repeated, " : ""}no known interval)`;
    return `${value} (${number(low)} to ${number(high)})`;
  }

  // The same, and of a repeated number when it was new and the interval that it had then.
  function toldWhole(series, line, place) {
    let first = place;
    while (first > 0 && series.repeated?.[first]) first -= 1;
    const [low, high] = [line.lo[first], line.hi[first]];
    if (first === place || low === null || line.v[place] === null) return told(series, line, place);
    return `${number(line.v[place])} (repeated; new at ${when(series, first)}, then ${number(low)} to ${number(high)})`;
  }

  // Ticks of points over time: at the points, or else at moments, and for numbers at the end of a day at ends of days.
  const dates = (series, times, width) => atPoints(series, width) ?? ticks(series, times, width, !stepped(series));

  // Moments whose labels, of at most two lines, fit next to each other in this width; whole days if windows are days.
  // `late`: days are marked at their ends.
  function ticks(series, times, width, late) {
    const [first, last] = [times[0], times.at(-1)];
    const spread = times.length > 1 ? d3.utcTicks(first, last, Math.max(4, Math.floor(width / 60))) : times;
    const days = daily(series) ? [...new Set(spread.map((time) => +d3.utcDay.floor(time)))].map((time) => new Date(time)) : spread;
    const found = days.filter((time) => time >= first);
    const all = (part) => found.every((time) => +part(time) === +time);
    const own = all(d3.utcYear) ? d3.utcFormat("%Y") : all(d3.utcMonth) ? d3.utcFormat("%b") : all(d3.utcDay) ? d3.utcFormat("%-d %b") : d3.utcFormat("%H:%M");
    const rest = all(d3.utcYear) ? () => "" : all(d3.utcDay) ? d3.utcFormat("%Y") : d3.utcFormat("%-d %b");
    const unit = all(d3.utcYear) ? "year" : all(d3.utcMonth) ? "month" : all(d3.utcDay) ? "day" : null;
    const after = late && unit === "day" && daily(series) ? DAY : 0, marks = found.map((time) => ({ time: new Date(+time + after), own: own(time), more: rest(time) }));
    return { ...fitted(marks.filter(({ time }) => time <= last), last - first, width), dated: unit ? `Each date marks the ${after ? "end" : "start"} of a ${unit}.` : "" };
  }

  // As many of some ticks, each with a label of at most two lines, as fit next to each other in this width.
  function fitted(marks, length, width) {
    const labelled = (kept) => kept.map(({ own, more }, place) => (place && more === kept[place - 1].more ? own : `${own}\n${more}`.trimEnd()));
    const fits = (kept) => {
      const half = labelled(kept).map((text) => widest(text.split("\n")) / 2);
      return kept.every(({ time }, at) => !at || ((time - kept[at - 1].time) / length) * width >= half[at] + half[at - 1] + 12);
    };
    const every = (step) => marks.filter((_, at) => (marks.length - 1 - at) % step === 0);
    let step = 1;
    while (!fits(every(step))) step += 1;
    const kept = every(step), labels = labelled(kept);
    return { ticks: kept.map(({ time }) => time), tickFormat: (_, place) => labels[place] };
  }

  // Ticks at points, each with the name of its year or month; of few also with its day, or with the last day or moment of
  // its window, or the first one of a step. Null of others.
  function atPoints(series, width) {
    const count = series.cells[0].v.length, spans = d3.range(count).map((place) => span(series, place));
    if (!count) return null;
    const exactly = (unit, from, end) => +unit.floor(from) === +from && +unit.offset(from) === +end;
    const whole = daily(series) && [[d3.utcYear, "%Y", ""], [d3.utcMonth, "%b", "%Y"], [d3.utcDay, "%-d %b", "%Y"]]
      .find(([unit]) => spans.every(([from, start, end]) => exactly(unit, series.kind === "level" ? start : from, end)));
    if (count > (series.window > DAY ? 3 * POINTS : POINTS) && (!whole || whole[0] === d3.utcDay)) return null;
    const [, own, more] = whole || (daily(series) ? [null, "%-d %b", "%Y"] : [null, "%H:%M", "%-d %b"]);
    const steps = !whole && stepped(series), unit = daily(series) ? "date" : "time";
    const marks = spans.map(([from, , end], place) => {
      const time = steps ? from : moment(series, place), named = steps ? from : new Date(daily(series) ? end - DAY : end);
      return { time, own: d3.utcFormat(own)(named), more: d3.utcFormat(more)(named) };
    });
    const length = marks.at(-1).time - marks[0].time + (stepped(series) ? series.width : 0);
    return { ...fitted(marks, length, width), dated: whole ? "" : `Each ${unit} is the ${{ date: ["last day", "first day"], time: ["end", "start"] }[unit][+steps]} of a window.` };
  }

  return { label, quantile, isSum, called, stepped, moment, told, toldWhole, ticks, dates, POINTS };
})());
