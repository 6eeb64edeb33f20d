"""The published numbers of a release as its page shows them: of each query cells, ranges, marginals and quantiles."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.pages.charts import labels as texts_of
from pipelines.pages.numbers import USED, Numbers, numbers_of
from pipelines.pages.pictures.message import quantile_name
from pipelines.published.labels import Labels
from pipelines.published.release import Published
from pipelines.spec.times import moment_text
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.common.dates import number_name
from transforms.common.windows import Windows
from transforms.release.discovered_tables import as_listed
from transforms.release.marginal_tables import (
    ALL,
    Rows,
    by_marginal,
    listed_name,
    marginal_name,
    marginals_of,
    over_listed,
)
from transforms.release.quantile_tables import QUANTILE, by_quantile
from transforms.release.range_tables import by_range, ranges_over

ALL_CELLS = "all cells together"
ALL_FOUND = "all keys found so far"

FEW = 6
"""Most cells whose latest numbers the page lists separately."""


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
        rows: Tables of sums over the cells of `origin` that the numbers are; empty if they are not such sums.
        whole: The published total of the query, if it has no section of the page; None: there is none.
    """

    origin: Query
    query: Query
    name: str
    of: str
    within: tuple[float, float] | None
    numbers: tuple[Numbers, ...]
    rows: tuple[Rows, ...] = ()
    whole: "ReportPart | None" = None


def parts_of(release: Published) -> list[ReportPart]:
    """Return all published numbers, in the order of `show`."""
    parts = [part for query in release.spec.queries for part in _as_published([*_parts(query, release)])]
    totals = {parts[place].origin.name: parts[place] for place in repeated_totals(parts)}
    return [part if part.of else replace(part, whole=totals.get(part.origin.name)) for part in parts]


def repeated_totals(parts: Sequence[ReportPart]) -> list[int]:
    """Return the places of totals that are the sums of all cells of their query, which the page also states."""
    cells = {part.origin.name: part for part in parts if not part.of}
    totals = [(place, part) for place, part in enumerate(parts) if part.of == "total"]
    return [place for place, part in totals if _repeats(part, cells[part.origin.name])]


def _repeats(total: ReportPart, cells: ReportPart) -> bool:
    for one, of_cells in zip(total.numbers, cells.numbers, strict=True):
        if len(one.value) and (of_cells.total is None or not np.allclose(one.value[:, 0], of_cells.total[0])):
            return False
    return True


def _as_published(parts: list[ReportPart]) -> list[ReportPart]:
    """Give sums of all cells the interval of the total that the release publishes, which may be a wider bound."""
    total = next((part for part in parts if part.of == "total"), None)
    if total is None:
        return parts
    first, *others = parts
    pairs = zip(first.numbers, total.numbers, strict=True)
    return [replace(first, numbers=tuple(_with_total(cells, whole) for cells, whole in pairs)), *others]


def _with_total(cells: Numbers, whole: Numbers) -> Numbers:
    value, half = whole.value[:, 0], (whole.high - whole.low)[:, 0] / 2
    if cells.total is None or not np.allclose(cells.total[0], value):
        return cells
    return replace(cells, total=(value, half))


def _parts(query: Query, release: Published) -> Iterator[ReportPart]:
    if query.discovers:
        listed, dense = as_listed([*release.numbers(query)], query, release.bounds, release.windows)
        if listed.cells:
            yield _part(query, listed, iter(dense), release, within=None)
        return
    bounds = query.measure.bounds if len(query.measure.components) > 1 else None
    cells = tuple(0 for _ in query.by)
    yield _part(query, query, release.numbers(query, USED), release, within=bounds, rows=(cells,))
    for marginal in over_listed(query) if query.ranges else ():
        rows, name = by_marginal(query, marginal), f"ranges {listed_name(query, marginal)}".rstrip()
        tables = tuple(ranges_over(query, marginal))
        yield _part(query, by_range(rows), release.ranges(rows), release, of=name, within=bounds, rows=tables)
    for marginal in marginals_of(query):
        rows, numbers = by_marginal(query, marginal), release.marginals(query, marginal)
        name = marginal_name(query, marginal)
        yield _part(query, rows, numbers, release, of=name, within=bounds, rows=(marginal.levels,))
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
    rows: tuple[Rows, ...] = (),
) -> ReportPart:
    found = (numbers_of(series, table, query, release.plan, of_cells=not of) for series, table in tables)
    numbers = tuple(replace(one, listed=not origin.discovers) for one in found)
    name = f"{query.name}, {of}" if of else query.name
    return ReportPart(origin=origin, query=query, name=name, of=of, within=within, numbers=numbers, rows=rows)


def largest(numbers: Numbers, most: int) -> NDArray[np.int64]:
    """Return the cells in their order; of more than `most`, those with the largest numbers, the largest first."""
    value = numbers.value
    if value.shape[1] <= most:
        return np.arange(value.shape[1])
    return np.argsort(-np.nan_to_num(np.abs(value)).sum(axis=0), kind="stable")[:most]


def cells_of(part: ReportPart, cells: NDArray[np.int64]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and the values of some cells."""
    keys = [name for name, _ in part.query.by]
    for cell, values in zip(cells.tolist(), texts_of(part.query, cells), strict=True):
        yield cell, dict(zip(keys, values, strict=True))


def cell_name(cell: Mapping[str, str], part: ReportPart, labels: Labels) -> str:
    """Return the name of a cell for people: its labels, without keys that are added up over, and quantiles in words."""
    kept = {key: value for key, value in cell.items() if not part.of or value != ALL}
    texts = zip(kept, labels.cell(list(kept), list(kept.values())), strict=True)
    name = ", ".join(quantile_name(float(text)).lower() if key == QUANTILE else text for key, text in texts)
    return name or (ALL_CELLS if cell else part.query.name)


class Dated(Protocol):
    """A release or a survey: both publish numbers of windows."""

    @property
    def bounds(self) -> Windows:
        """Bounds of its windows."""

    def local(self, moment: int) -> int:
        """Return the local time at a moment, in microseconds as if it were UTC."""


class NamedWindow(NamedTuple):
    """A window: its name, of a level that of its end, and its start and end, UTC, in ISO 8601."""

    name: str
    start: str
    end: str


def window_of(release: Dated, numbers: Numbers, place: int) -> NamedWindow:
    """Return the window of a number.

    Args:
        release: The release or survey.
        numbers: A series of it.
        place: Place of the number in the series.
    """
    last = place * numbers.series.every + numbers.series.width
    start, end = (release.bounds.end(number) for number in (last - numbers.series.width, last))
    name = number_name(numbers.series.kind, release.local(start), release.local(end))
    return NamedWindow(name, moment_text(start), moment_text(end))
