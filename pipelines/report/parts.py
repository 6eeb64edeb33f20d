"""The published numbers of a release as its page shows them: of each query cells, ranges, marginals and quantiles."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.pages.charts import labels
from pipelines.pages.noise import told
from pipelines.pages.numbers import USED, Floats, Numbers, numbers_of, outstanding, outward, rounded, signal
from pipelines.published.release import Published
from pipelines.spec.series import series_document, series_text
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.release.discovered_tables import as_listed
from transforms.release.marginal_tables import by_marginal, marginal_name, marginals_of
from transforms.release.quantile_tables import by_quantile
from transforms.release.range_tables import by_range

DAY = 86_400_000_000
_START = datetime(1970, 1, 1, tzinfo=UTC)

NAMED = 12
"""Most keys that the page names for one window of discovery."""

FEW = 6
"""Most cells whose latest numbers the page lists separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPart:
    """Numbers of one query with the same cells.

    Attributes:
        origin: The query as in the spec.
        query: The query with these cells.
        name: Name on the page.
        of: Kind of numbers, `ranges`, `quantiles` or the name of a marginal; empty for numbers of cells.
        within: Possible range of the numbers, if their intervals are compared with it; None: with zero.
    """

    origin: Query
    query: Query
    name: str
    of: str
    within: tuple[float, float] | None
    numbers: tuple[Numbers, ...]


def parts_of(release: Published) -> list[ReportPart]:
    """Return all published numbers, in the order of `show`."""
    return [part for query in release.spec.queries for part in _parts(query, release)]


def _parts(query: Query, release: Published) -> Iterator[ReportPart]:
    if query.discovers:
        listed, dense = as_listed([*release.numbers(query)], query, release.bounds, release.windows)
        if listed.cells:
            yield _part(query, listed, iter(dense), release, within=None)
        return
    bounds = query.measure.bounds if len(query.measure.components) > 1 else None
    yield _part(query, query, release.numbers(query, USED), release, within=bounds)
    if query.ranges:
        yield _part(query, by_range(query), release.ranges(query), release, of="ranges", within=bounds)
    for marginal in marginals_of(query):
        rows, numbers = by_marginal(query, marginal), release.marginals(query, marginal)
        yield _part(query, rows, numbers, release, of=marginal_name(query, marginal), within=bounds)
    if query.quantiles:
        (_, key), *_ = query.ordered
        edges = key.edges(0, key.steps + 1)
        scale = float(edges[0]), float(edges[-1])
        yield _part(query, by_quantile(query), release.quantiles(query), release, of="quantiles", within=scale)


def _part(
    origin: Query,
    query: Query,
    tables: Iterator[tuple[Series, pa.Table]],
    release: Published,
    *,
    within: tuple[float, float] | None,
    of: str = "",
) -> ReportPart:
    numbers = tuple(numbers_of(series, table, query, release.plan) for series, table in tables)
    name = f"{query.name}, {of}" if of else query.name
    return ReportPart(origin=origin, query=query, name=name, of=of, within=within, numbers=numbers)


def without_keys(release: Published, parts: Sequence[ReportPart]) -> list[str]:
    """Return the names of the queries that have found no key so far."""
    there = {part.origin.name for part in parts}
    return [query.name for query in release.spec.queries if query.name not in there]


def discoveries(part: ReportPart, release: Published) -> list[str]:
    """Return the found keys of a query, window by window; none if its cells are listed."""
    if not part.origin.discovers:
        return []
    ((_, keys),), (numbers,) = part.query.listed, (one for one in part.numbers if one.series.kind == "level")
    first = np.isfinite(numbers.value).argmax(axis=0)
    said = []
    for window in np.unique(first).tolist():
        new = [str(keys[place]) for place in np.flatnonzero(first == window).tolist()]
        more = f" and {len(new) - NAMED:,} more" if len(new) > NAMED else ""
        said.append(f"{window_text(release, numbers, window)}: {', '.join(new[:NAMED])}{more}")
    return said


def signals_of(part: ReportPart, release: Published) -> Iterator[dict[str, Any]]:
    """Compare the noise of each series with its numbers."""
    says = (
        "cannot be distinguished from zero" if part.within is None else "have intervals wider than half of their range"
    )
    for one in part.numbers:
        found = signal(one, within=part.within)
        if found is not None:
            advice = "Use fewer and larger cells, or longer windows."
            yield {"query": part.name, "series": _kind(one, release), **told(found, says=says, advice=advice)}


def _kind(numbers: Numbers, release: Published) -> str:
    return series_text(series_document(numbers.series, release.plan))


def latest(part: ReportPart, release: Published) -> dict[str, list[str]]:
    """Return the last number of each series by window: of the only cell, of all cells together, or of each of few."""
    found: dict[str, list[str]] = {}
    for one in part.numbers:
        if len(one.value):
            found.setdefault(window_text(release, one, len(one.value) - 1), []).extend(_latest(one, part, release))
    return found


def _latest(numbers: Numbers, part: ReportPart, release: Published) -> Iterator[str]:
    kind, cells = _kind(numbers, release), part.query.cells
    if numbers.together is not None:
        of = " of all cells" if cells > 1 else ""
        yield f"{kind}{of} {_with_interval(*numbers.together, numbers)}"
    elif cells <= FEW:
        for cell, label in enumerate(labels(part.query, np.arange(cells))):
            text = _with_interval(numbers.value[:, cell], numbers.low[:, cell], numbers.high[:, cell], numbers)
            yield f"{kind}, {', '.join(label)}: {text}"
    elif not part.of and part.within is None:
        yield f"{kind} of all cells {numbers.value[-1].sum():,.0f}, the sum of the published cells"


def _with_interval(value: Floats, low: Floats, high: Floats, numbers: Numbers) -> str:
    """Return the last of some numbers with its interval, as text."""
    if np.isnan(value[-1]):
        return "not known"
    if np.isfinite(high[-1] - low[-1]):
        return f"{rounded(value[-1], (high[-1] - low[-1]) / 2)}, {_interval(low[-1], high[-1])}"
    known = np.flatnonzero(np.isfinite(high - low))
    noise = float(high[known[-1]] - low[known[-1]]) / 2 if len(known) else 1.0
    text = rounded(value[-1], noise)
    if numbers.repeated is None or not numbers.repeated[-1] or not len(known):
        return f"{text}, without a known interval"
    back = len(value) - 1 - known[-1]
    ago = "the window before" if back == 1 else f"{back:,} windows before"
    return f"{text}, repeated from {ago}, then {_interval(low[known[-1]], high[known[-1]])}"


def _interval(low: float, high: float) -> str:
    least, most = outward(low, high)
    return f"with 95 % probability from {least} to {most}"


def standing_out(part: ReportPart, release: Published) -> list[str]:
    """Return a sentence for each number that stands out with its whole interval."""
    said = []
    for one in part.numbers:
        if one.together is None:
            continue
        value, low, high = one.together
        half = (high - low) / 2
        name = _kind(one, release) + (" of all cells" if part.query.cells > 1 else "")
        for place in sorted(outstanding(value, half).tolist()):
            number, noise, usual = (rounded(n, half[place]) for n in (value[place], half[place], np.nanmedian(value)))
            window = window_text(release, one, place)
            said.append(f"{part.name}, {name}, {window}: {number} ± {noise}, where {usual} is usual")
    return said


def window_text(release: Published, numbers: Numbers, place: int) -> str:
    """Return the name of the last window of a number.

    Args:
        release: The release.
        numbers: A series of the release.
        place: Place of the number in the series.
    """
    return end_text(release, release.bounds.end(place * numbers.series.every + numbers.series.width))


def end_text(release: Published, moment: int) -> str:
    """Return the end of a window in the schedule's zone; for midnight, the day that ends."""
    local = release.local(moment)
    if local % DAY == 0:
        return f"end of {_START + timedelta(microseconds=local - DAY):%a %d %b %Y}"
    return f"{_START + timedelta(microseconds=local):%Y-%m-%d %H:%M}"
