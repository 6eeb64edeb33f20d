"""The published numbers of a release as its page shows them: of each query cells, ranges, marginals and quantiles."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.pages.charts import labels as texts_of
from pipelines.pages.numbers import USED, Floats, Numbers, numbers_of, outstanding, outward, rounded
from pipelines.published.labels import Labels
from pipelines.published.release import Published
from pipelines.report.facts import StatedNumber
from pipelines.spec.times import moment_text
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.common.dates import window_name
from transforms.release.discovered_tables import as_listed
from transforms.release.marginal_tables import by_marginal, listed_name, marginal_name, marginals_of, over_listed
from transforms.release.quantile_tables import by_quantile
from transforms.release.range_tables import by_range

FEW = 6
"""Most cells whose latest numbers the page lists separately."""

LISTED = 200
"""Most cells whose latest numbers the facts have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPart:
    """Numbers of one query with the same cells.

    Attributes:
        origin: The query as in the spec.
        query: The query with these cells.
        name: Name on the page.
        of: Kind of numbers, `ranges`, `quantiles` or the name of a marginal, or one of the former with a marginal's
            name; empty for numbers of cells.
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
    for marginal in over_listed(query) if query.ranges else ():
        rows, name = by_marginal(query, marginal), f"ranges {listed_name(query, marginal)}".rstrip()
        yield _part(query, by_range(rows), release.ranges(rows), release, of=name, within=bounds)
    for marginal in marginals_of(query):
        rows, numbers = by_marginal(query, marginal), release.marginals(query, marginal)
        yield _part(query, rows, numbers, release, of=marginal_name(query, marginal), within=bounds)
    if query.quantiles:
        (_, key), *_ = query.ordered
        edges = key.edges(0, key.steps + 1)
        scale = float(edges[0]), float(edges[-1])
        for marginal in over_listed(query):
            rows, name = by_marginal(query, marginal), f"quantiles {listed_name(query, marginal)}".rstrip()
            yield _part(query, by_quantile(rows), release.quantiles(rows), release, of=name, within=scale)


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


def latest(part: ReportPart, numbers: Numbers, kind: str, labels: Labels) -> Iterator[StatedNumber]:
    """Yield the last numbers of a series: the sum of all cells, if it is known, then the largest cells."""
    cells = part.query.cells
    if not len(numbers.value):
        return
    if numbers.together is not None:
        if cells > 1:
            yield _stated(None, f"{kind} of all cells ", numbers.together, numbers)
        else:
            yield _stated({}, f"{kind} ", numbers.together, numbers)
    elif cells > FEW and not part.of and part.within is None:
        total = float(numbers.value[-1].sum())
        text = f"{kind} of all cells {total:,.0f}, the sum of the published cells"
        yield StatedNumber(cell=None, value=total, low=None, high=None, repeated=_repeated(numbers), text=text)
    if cells == 1 and numbers.together is not None:
        return
    for place, values in cells_of(part, largest(numbers, LISTED)):
        label = ", ".join(labels.cell(list(values), list(values.values())))
        columns = numbers.value[:, place], numbers.low[:, place], numbers.high[:, place]
        yield _stated(values, f"{kind}, {label}: ", columns, numbers)


def largest(numbers: Numbers, most: int) -> NDArray[np.int64]:
    """Return the cells in their order; of more than `most`, those with the largest numbers, the largest first."""
    value = numbers.value
    if value.shape[1] <= most:
        return np.arange(value.shape[1])
    return np.argsort(-np.nan_to_num(np.abs(value)).mean(axis=0), kind="stable")[:most]


def cells_of(part: ReportPart, cells: NDArray[np.int64]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and the values of some cells."""
    keys = [name for name, _ in part.query.by]
    for cell, values in zip(cells.tolist(), texts_of(part.query, cells), strict=True):
        yield cell, dict(zip(keys, values, strict=True))


def _repeated(numbers: Numbers) -> bool:
    return numbers.repeated is not None and bool(numbers.repeated[-1])


def _stated(
    cell: Mapping[str, str] | None, begin: str, columns: tuple[Floats, Floats, Floats], numbers: Numbers
) -> StatedNumber:
    """Return the last of some numbers with its interval; its text has this begin."""
    known = [None if np.isnan(one[-1]) else float(one[-1]) for one in columns]
    return StatedNumber(
        cell=cell,
        value=known[0],
        low=known[1],
        high=known[2],
        repeated=_repeated(numbers),
        text=f"{begin}{_with_interval(*columns, numbers)}",
    )


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


def standing_out(part: ReportPart, numbers: Numbers, name: str, release: Published) -> Iterator[str]:
    """Yield a sentence for each number of a series that stands out with its whole interval.

    Args:
        part: The part of the page.
        numbers: The series.
        name: Name of its numbers.
        release: The public side of the release.
    """
    if numbers.together is None:
        return
    value, low, high = numbers.together
    half = (high - low) / 2
    name += " of all cells" if part.query.cells > 1 else ""
    for place in sorted(outstanding(value, half).tolist()):
        number, noise, usual = (rounded(n, half[place]) for n in (value[place], half[place], np.nanmedian(value)))
        yield f"{name}, {window_of(release, numbers, place).name}: {number} ± {noise}, where {usual} is usual"


class NamedWindow(NamedTuple):
    """A window: its name, and its start and end, UTC, in ISO 8601."""

    name: str
    start: str
    end: str


def window_of(release: Published, numbers: Numbers, place: int) -> NamedWindow:
    """Return the window of a number; of a level, the one at whose end it is.

    Args:
        release: The release.
        numbers: A series of the release.
        place: Place of the number in the series.
    """
    last = place * numbers.series.every + numbers.series.width
    start, end = (release.bounds.end(number) for number in (last - numbers.series.width, last))
    return NamedWindow(window_name(release.local(start), release.local(end)), moment_text(start), moment_text(end))
