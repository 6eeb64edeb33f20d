"""The beginning of a report: of each query what stands out, the largest cell or the median's change, and the course."""

from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.pages import html
from pipelines.pages.course import course
from pipelines.pages.pictures.message import NONE_LARGEST, OVERLAPPED, message
from pipelines.report.facts import StatedQuery, StatedSeries
from pipelines.report.parts import ALL_CELLS
from pipelines.report.sentences import INTERVAL, NAMED_CELLS, SINCE, changes_of, quiet, without_kind

MOST = 2
"""Most numbers that stand out which are named of each series: the latest ones."""

HEADING = "In short (95 % intervals unless stated):"
"""Text above the list."""

QUERIES = 3
"""Most queries that are named: those with numbers that stand out come first."""


def in_short(queries: Sequence[StatedQuery], data: dict[str, Any]) -> list[str]:
    """Return what is most important about each query as HTML, about a single one with its last change.

    Args:
        queries: Facts about the queries.
        data: Data of the charts of all queries.
    """
    drawn, others = data["queries"], data.get("others", [])
    if len(queries) == 1:
        (query,) = queries
        said = [*_important(query, drawn[0], [*drawn, *others]), *_course(query, drawn[0], 1), *quiet(query)]
        at = -1 if query.series[-1].kind == "change" else 0  # the change of a level is that number, too
        said += [f"{SINCE}{one}" for one in changes_of(query)[at:][:1]]
        return [html.paragraph(HEADING, role="latest"), html.bullets(said)] if said else []
    standing = [any(series.standing_out for series in query.series) for query in queries]
    first = sorted(range(len(queries)), key=lambda place: not standing[place])[:QUERIES]
    points = [
        (f"#query-{place}", queries[place].label, " ".join(_important(queries[place], drawn[place], [*drawn, *others])))
        for place in sorted(first)
    ]
    linked = [one for one in points if one[2]]  # a query without numbers yet has no text
    return [html.linked(HEADING, linked)] if linked else []


def _important(query: StatedQuery, drawn: dict[str, Any], others: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield sentences about a query: what stands out, the main message of its chart, its course or latest number."""
    standing = [text for series in query.series for text in _standing_out(query, series)]
    yield from standing
    main, first = message(drawn, others), query.series[0]
    if main and "shares" in drawn["picture"]:
        yield main[0]
        return
    main = main if main and ": " in main[0] else []  # else it says that there are no numbers
    none = bool(main) and main[0].startswith(NONE_LARGEST)
    if main and not none:
        called, _, number = main[0].partition(": ")
        unclear = called.startswith(OVERLAPPED)
        begin = f"No clear largest; {called[0].lower()}{called[1:]}" if unclear else called
        yield " ".join([f"{begin}, {first.window}: {number}", *main[1 : 1 + unclear]])
    if standing:
        return
    few = first.latest if first.cells <= NAMED_CELLS else [one for one in first.latest[:1] if one.cell is None]
    numbers = "; ".join(without_kind(one.text, query).replace(f"({INTERVAL}", "(") for one in few)
    latest = f"Latest, {first.window}: {numbers}."
    yield from [*_course(query, drawn, 0)] or [latest] * bool(few and (none or not main))
    if none:
        yield f"{main[0].partition(':')[0]}."


def _course(query: StatedQuery, drawn: dict[str, Any], place: int) -> Iterator[str]:
    """Yield a sentence about all windows of one series; nothing if it has no course."""
    for series, shown in [*zip(query.series, drawn["series"], strict=True)][place : place + 1]:
        if said := course(shown):
            whose = [series.kind] * (len(query.series) > 1) + [ALL_CELLS] * (series.cells > 1)
            text = f"{', '.join(whose)}: {said}." if whose else f"{said}."
            yield f"{text[0].upper()}{text[1:]}"


def _standing_out(query: StatedQuery, series: StatedSeries) -> Iterator[str]:
    """Yield a sentence with the latest numbers that stand out."""
    if series.standing_out:
        texts = [one.removeprefix(f"{query.label}, {series.kind}, ") for one in series.standing_out[-MOST:]]
        together = all(one.startswith(ALL_CELLS) for one in texts)
        named = "; ".join(one.removeprefix(f"{ALL_CELLS}, ") if together else one for one in texts)
        more = len(series.standing_out) - len(texts)
        yield f"Stands out{f', {ALL_CELLS}' * together}: {named}{f'; and {more:,} before' if more else ''}."
