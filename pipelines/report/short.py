"""The begin of a report on several queries: of each what stands out, and the largest cell or the median's change."""

from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.pages import html
from pipelines.pages.pictures.message import NONE_LARGEST, message
from pipelines.report.facts import StatedQuery, StatedSeries
from pipelines.report.parts import ALL_CELLS
from pipelines.report.sentences import without_kind

MOST = 2
"""Most numbers that stand out which are named of each series: the latest ones."""

QUERIES = 3
"""Most queries that are named: those with numbers that stand out come first."""


def in_short(queries: Sequence[StatedQuery], data: dict[str, Any]) -> list[str]:
    """Return what is most important about each query, as HTML; nothing for one query, whose section follows at once.

    Args:
        queries: Facts about the queries.
        data: Data of the charts of all queries.
    """
    if len(queries) == 1:
        return []
    drawn, others = data["queries"], data.get("others", [])
    standing = [any(series.standing_out for series in query.series) for query in queries]
    first = sorted(range(len(queries)), key=lambda place: not standing[place])[:QUERIES]
    said = [
        (f"#query-{place}", queries[place].label, " ".join(_important(queries[place], drawn[place], [*drawn, *others])))
        for place in sorted(first)
    ]
    return [html.linked("In short, of the latest numbers:", said)]


def _important(query: StatedQuery, drawn: dict[str, Any], others: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield sentences about a query: numbers that stand out, and the main message of its chart or its latest number."""
    standing = [text for series in query.series for text in _standing_out(query, series)]
    yield from standing
    main = message(drawn, others)
    latest = [without_kind(one.text, query) for series in query.series[:1] for one in series.latest[:1]]
    if not main:
        yield from (f"{text}." for text in latest)
    elif not main[0].startswith(NONE_LARGEST):
        yield main[0]
    elif not standing:
        yield from (f"{without_kind(one.text, query)}." for one in query.series[0].latest[:1] if one.cell is None)
        yield f"{main[0].partition(':')[0]}."


def _standing_out(query: StatedQuery, series: StatedSeries) -> Iterator[str]:
    """Yield a sentence with the latest numbers that stand out."""
    if series.standing_out:
        texts = [one.removeprefix(f"{query.label}, {series.kind}, ") for one in series.standing_out[-MOST:]]
        together = all(one.startswith(ALL_CELLS) for one in texts)
        named = "; ".join(one.removeprefix(f"{ALL_CELLS}, ") if together else one for one in texts)
        more = len(series.standing_out) - len(texts)
        yield f"Stands out{f', {ALL_CELLS}' * together}: {named}{f'; and {more:,} before' if more else ''}."
