"""The begin of a report: of each query what stands out, and the largest cell or the median's change."""

from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.pages import html
from pipelines.pages.pictures.message import NONE_LARGEST, message
from pipelines.report.facts import StatedQuery, StatedSeries
from pipelines.report.parts import ALL_CELLS
from pipelines.report.sentences import NAMED_CELLS, changes_of, without_kind

MOST = 2
"""Most numbers that stand out which are named of each series, the latest ones, and most changes of one query."""

HEADING = "In short, with 95 % intervals:"

QUERIES = 3
"""Most queries that are named: those with numbers that stand out come first."""


def in_short(queries: Sequence[StatedQuery], data: dict[str, Any]) -> list[str]:
    """Return what is most important about each query as HTML, about a single one with all of its changes.

    Args:
        queries: Facts about the queries.
        data: Data of the charts of all queries.
    """
    drawn, others = data["queries"], data.get("others", [])
    if len(queries) == 1:
        said = [*_important(queries[0], drawn[0], [*drawn, *others]), *changes_of(queries[0], MOST)]
        return [html.paragraph(HEADING, role="latest"), html.bullets(said)] if said else []
    standing = [any(series.standing_out for series in query.series) for query in queries]
    first = sorted(range(len(queries)), key=lambda place: not standing[place])[:QUERIES]
    linked = [
        (f"#query-{place}", queries[place].label, " ".join(_important(queries[place], drawn[place], [*drawn, *others])))
        for place in sorted(first)
    ]
    return [html.linked(HEADING, linked)]


def _important(query: StatedQuery, drawn: dict[str, Any], others: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield sentences about a query: numbers that stand out, and the main message of its chart or its latest number."""
    standing = [text for series in query.series for text in _standing_out(query, series)]
    yield from standing
    main, first = message(drawn, others)[:1], query.series[0]
    if main and "shares" in drawn["picture"]:
        yield from main
    elif main and not main[0].startswith(NONE_LARGEST):
        called, _, number = main[0].partition(": ")
        yield f"{called}, {first.window}: {number}"
    elif not (main and standing):
        few = first.latest if first.cells <= NAMED_CELLS else first.latest[:1]
        numbers = [without_kind(one.text, query) for one in few if one.cell is None or first.cells <= NAMED_CELLS]
        yield from [f"Latest, {first.window}: {'; '.join(numbers)}."] if numbers else []
        yield from (f"{one.partition(':')[0]}." for one in main)


def _standing_out(query: StatedQuery, series: StatedSeries) -> Iterator[str]:
    """Yield a sentence with the latest numbers that stand out."""
    if series.standing_out:
        texts = [one.removeprefix(f"{query.label}, {series.kind}, ") for one in series.standing_out[-MOST:]]
        together = all(one.startswith(ALL_CELLS) for one in texts)
        named = "; ".join(one.removeprefix(f"{ALL_CELLS}, ") if together else one for one in texts)
        more = len(series.standing_out) - len(texts)
        yield f"Stands out{f', {ALL_CELLS}' * together}: {named}{f'; and {more:,} before' if more else ''}."
