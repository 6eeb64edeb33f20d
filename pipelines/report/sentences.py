"""Sentences about each query on a report: what it measures, its latest numbers, what changed and what stands out."""

from collections.abc import Iterable, Iterator

from pipelines.pages import html
from pipelines.pages.numbers import percent
from pipelines.report.facts import StatedNumber, StatedQuery, StatedSeries
from pipelines.report.parts import FEW as FEW_CELLS
from privacy.counted import listed
from transforms.release.quantile_tables import QUANTILE

FEW = 3
"""Number of latest numbers from which on they are a table and not a sentence."""

INTERVAL = "95 % interval "
"""Begin of most texts of intervals."""

NAMED_CELLS = 3
"""Most cells whose change since the window before is a sentence each."""

SINCE = "Since the window before: "
"""Begin of the first of the words that `changes_of` returns."""

NONE_STANDS_OUT = "No single window with an interval is far from all others."
"""Sentence about a query with enough windows, of which none has a number that stands out."""


def sentences_of(
    query: StatedQuery, warnings: Iterable[str], *, headlined: bool = False, alone: bool = False
) -> list[str]:
    """Return the sentences above the charts of a query: what it measures, latest numbers, outliers and changes.

    Args:
        query: The facts about its numbers.
        warnings: Reasons to doubt the numbers.
        headlined: Whether the charts begin with the latest numbers, so that they are not repeated here.
        alone: Whether it is the only query of a page, which begins with the changes.
    """
    what, *more = query.measured
    meanings = [f"{one.kind}: {one.meaning}." for one in query.series]
    kinds = [html.bullets(meanings)] if len(meanings) > 1 else [html.paragraph(one) for one in meanings]
    said = [html.paragraph(what), *kinds, *map(html.paragraph, more)]
    said += [] if headlined else latest_of(query)
    outliers = [text.removeprefix(f"{query.label}, ") for one in query.series for text in one.standing_out]
    standing = [without_kind(text, query) for text in outliers]
    if standing:
        said.append(html.paragraph("Far outside the usual range, by more than the noise:", role="standing"))
        said.append(html.bullets(standing))
    said += [html.paragraph(text, role="warning") for text in warnings]
    said += [] if alone else map(html.paragraph, quiet(query))
    main, *others = ([] if alone else changes_of(query)) or [""]
    if others:
        said.append(html.folded(f"{SINCE}{main}", [html.bullets(others)], if_narrow=True))
    elif main:
        said.append(html.paragraph(f"{SINCE}{main}"))
    return said


def changes_of(query: StatedQuery) -> list[str]:
    """Return words about what has changed since the window before (`SINCE`)."""
    return [f"{without_kind(text, query)}." for one in query.series for text in _changed(one)]


def quiet(query: StatedQuery) -> list[str]:
    """Return a sentence if no window stands out, although enough of them have intervals."""
    judged = any(one.judged for one in query.series) and not any(one.standing_out for one in query.series)
    return [NONE_STANDS_OUT] if judged else []


def latest_of(query: StatedQuery) -> list[str]:
    """Return the latest numbers of a query as HTML."""
    said = []
    for window, texts in _latest(query).items():
        if len(texts) < FEW:
            numbers = "; ".join(without_kind(one.text, query) for one in texts)
            said.append(html.paragraph(f"Latest, {window}: {numbers}.", role="latest"))
        else:
            parted = [_parted(one) for one in texts]
            alike = all(interval.startswith(INTERVAL) for _, interval in parted)  # none repeated, or of another level
            rows = [
                (without_kind(one.name, query), number, interval.removeprefix(INTERVAL if alike else ""))
                for one, (number, interval) in zip(texts, parted, strict=True)
            ]
            said.append(html.table(f"Latest, {window}", ("", "number", INTERVAL if alike else "interval"), rows))
    return said


def without_kind(said: str, query: StatedQuery) -> str:
    """Return words about a number without its kind, which only queries with several kinds need."""
    if len(query.series) > 1:
        return said
    return said.removeprefix(f"{query.series[0].kind}, ").removeprefix(f"{query.series[0].kind}: ")


def _parted(one: StatedNumber) -> tuple[str, str]:
    """Return a number and its interval, as a table has them."""
    number, _, interval = one.text.removeprefix(f"{one.name}: ").partition(" (")
    return number, interval.removesuffix(")")


def noise_warnings(query: StatedQuery) -> Iterator[str]:
    """Yield one warning about all series of a query that are mostly noise."""
    noisy = [(one.kind, one.noise["lost"]) for one in query.series if one.noise is not None and one.noisy]
    if noisy:
        kinds = listed([f"{kind} ({percent(lost)} of the numbers of cells)" for kind, lost in noisy])
        yield f"Mostly noise: {kinds}. Read a single one of these numbers only with its interval."


def _changed(series: StatedSeries) -> list[str]:
    """Return what has changed since the window before: of all cells together, or of few cells each; medians first."""
    said: list[str] = []
    seen: set[str] = set()
    for one in series.differences:
        cell = str(one.cell)
        shown = not one.cell or series.cells <= NAMED_CELLS
        if one.window_end != one.minus_window_end and shown and cell not in seen:
            said.append(f"{series.kind}, {one.text}")
            if one.cell and one.cell.get(QUANTILE) == "0.5":
                said.insert(0, said.pop())
        seen.add(cell)
        if one.cell is None:
            break
    return said


def _latest(query: StatedQuery) -> dict[str, list[StatedNumber]]:
    """Return the last numbers by window: of each series that of all cells together, or of each of few cells."""
    found: dict[str, list[StatedNumber]] = {}
    for one in query.series:
        together = [number for number in one.latest if not number.cell]
        numbers = together or (one.latest if one.cells <= FEW_CELLS else ())
        if numbers:
            found.setdefault(one.window, []).extend(numbers)
    return found
