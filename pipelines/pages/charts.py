"""Data of charts (`assets/charts.js`): numbers over time with few digits; of many cells, the largest ones.

`pipelines.pages.pictures` has the further kinds of charts of a query's cells, by the kinds of its keys.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.pages.lines import digits_of, line_of, lines_of_boxes
from pipelines.pages.numbers import Floats, Numbers, decimals, outstanding, says_nothing
from pipelines.pages.pictures.base import Pictured
from pipelines.pages.pictures.grid import OVER, BoxGrid, beyond, grid_of
from pipelines.pages.pictures.quantiles import middle_share
from pipelines.pages.pictures.sums import SumErrors, can_be_added, half_widths_of, half_widths_within, unknown
from pipelines.pages.pictures.table import PICTURES, picture_of
from pipelines.spec.series import series_label
from privacy.planning.plan import Plan
from transforms.aggregation.queries import Query
from transforms.release.published_columns import key_types
from transforms.release.quantile_tables import QUANTILE

NUMBERS = 100_000
"""Most numbers of cells on a page, over all queries: two or three megabytes, and half as much for sums of cells."""

WINDOWS = 1_500
"""Most windows of a series; more do not fit on a screen."""

CELLS = 200
"""Most cells of a query."""

CellLabels = Callable[[NDArray[np.int64]], list[list[str]]]
"""Returns the labels of some cells, given their numbers [cells], int64: each cell's value of each key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Times of windows, in microseconds since the epoch, shifted to the zone of the schedule.

    Attributes:
        start: Start of the first window.
        window: Length of a window.
        boundaries: Start and ends of windows of a calendar, [windows + 1]; None if all windows have the same length.
    """

    start: int
    window: int
    boundaries: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Descriptions of the series of one chart, which have the same cells.

    Attributes:
        name: Name of the query.
        kinds: Name of each series.
        keys: Names of the keys of cells.
        labels: Returns the labels of cells.
        zero: Whether the scale includes zero.
        within: Possible range of the numbers, if their intervals are compared with it; None: with zero.
        called: What the page calls cells.
        rest: Where to find numbers that the page leaves out.
        whole: Whether all cells are shown, in order, rather than all windows.
        shape: Number of boxes along each ordered key, if any box of cells may be added up.
        sums: Number of cells that are sums over listed values; they come on top of the room of a page.
    """

    name: str
    kinds: Sequence[str]
    keys: Sequence[str]
    labels: CellLabels
    zero: bool
    called: str
    rest: str
    whole: bool = False
    shape: tuple[int, ...] = ()
    sums: int = 0
    within: tuple[float, float] | None = None


def shown_cells(numbers: Sequence[Numbers], cells: int, *, queries: int) -> NDArray[np.int64]:
    """Return the numbers of the cells that a page shows, [cells shown], int64.

    If the page has no room for all cells, it shows those with the largest published numbers, the largest first.
    Otherwise the cells are in the order of the spec.

    Args:
        numbers: All series of the chart.
        cells: Number of cells.
        queries: Number of queries that share the page.
    """
    most = _windows(numbers, queries, None)
    room = NUMBERS // queries // sum(min(len(one.value), most) or 1 for one in numbers)
    count = max(1, min(cells, CELLS, room))
    if count == cells:
        return np.arange(cells)
    value = numbers[0].value
    size = np.nan_to_num(np.abs(value)).mean(axis=0) if len(value) else np.zeros(cells)
    return np.argsort(-size, kind="stable")[:count]


def _windows(numbers: Sequence[Numbers], queries: int, chart: Chart | None) -> int:
    """Return the most windows of each series: so that a page has room for one cell and the sum of all, or for all."""
    cells = numbers[0].value.shape[1] - chart.sums + 1 if chart is not None and chart.whole else 2
    return max(1, min(WINDOWS, NUMBERS // queries // (cells * len(numbers))))


def chart_document(
    query: Query,
    numbers: Sequence[Numbers],
    plan: Plan,
    *,
    times: Times,
    queries: int,
    name: str = "",
    of: str = "",
    within: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Return the data of the charts of one query.

    Args:
        query: The query of the release.
        numbers: Its series.
        plan: Plan of the release.
        times: Times of the windows.
        queries: Number of queries that share the page.
        name: Name to show; empty: the query's own name.
        of, within: As in `pipelines.pages.pictures.base.Pictured`.
    """
    subject = Pictured(query=query, numbers=numbers, plan=plan, of=of, within=within)
    kind, grid, room = picture_of(subject), None, NUMBERS // queries // len(numbers)
    if kind is not None and PICTURES[kind].whole and query.ordered:
        grid = grid_of(subject, room, summed=all(unknown(subject, one) is None for one in numbers))
        kind = kind if grid is not None else None
    chart = Chart(
        name=name or query.name,
        kinds=[series_label(one.series, plan) for one in numbers],
        keys=[key for key, _ in query.by],
        labels=lambda cells: labels(query, cells),
        zero=len(query.measure.components) == 1 and QUANTILE not in dict(query.by),
        called="cells",
        rest="the published files have them all",
        whole=kind is not None and PICTURES[kind].whole and query.cells <= min(OVER, room),
        within=within,
    )
    further = {"origin": query.name, "part": of, "within": within, "counts": query.measure.kind == "count"}
    if grid is not None:
        return _of_grid(subject, chart, grid, times, queries) | further
    found = chart_data(chart, numbers, times=times, queries=queries)
    for series, one in zip(found["series"], numbers, strict=True):
        series |= _without_total(subject, one, slice(series["left"], None))
    if kind is None:
        return found | further
    picture = {"kind": kind, **PICTURES[kind].document(subject)}
    if kind == "quantiles":
        shares = [float(cell[picture["key"]]) for cell in found["cells"]]
        found["open"] = shares.index(middle_share(picture["shares"]))
    return found | further | {"picture": picture}


def _of_grid(subject: Pictured, chart: Chart, grid: BoxGrid, times: Times, queries: int) -> dict[str, Any]:
    """Return the data of the charts of a query with ordered keys."""
    texts, kind = grid.labels(), picture_of(subject) or ""
    numbers = [_gridded(one, subject, grid) for one in subject.numbers]
    shown = replace(
        chart,
        keys=[name for name, _ in (*subject.query.listed, *subject.query.ordered)],
        labels=lambda cells: [texts[cell] for cell in cells.tolist()],
        whole=True,
        shape=grid.shape if len(subject.query.measure.components) == 1 else (),
        sums=math.prod(grid.shape) if grid.summed else 0,
    )
    document = chart_data(shown, numbers, times=times, queries=queries)
    errors, over = (SumErrors(subject, grid, every=every) for every in (False, True))
    windows = _windows(numbers, queries, shown)
    for series, one in zip(document["series"], subject.numbers, strict=True):
        series |= _without_total(subject, one, slice(-windows, None))
        series["errors"] = errors.of_series(one, slice(-windows, None))
        if grid.summed:
            series["over"] = over.of_series(one, slice(-windows, None))
        if grid.count > 1 and can_be_added(subject):
            series["totals"] = _sums_of_choices(subject, one, grid, slice(-windows, None), outside=False)
        series["unit"] = 10.0 ** -digits_of(one.high[-windows:] - one.low[-windows:])
    picture = {"kind": kind, **PICTURES[kind].document(subject), **grid.document(), "sums": errors.document()}
    last = np.nan_to_num(numbers[0].value[-1]) if len(numbers[0].value) else np.zeros(len(texts))
    picture["choice"] = 0 if grid.summed else int(np.argmax(last.reshape(grid.count, -1).sum(axis=1)))
    if grid.summed:
        picture["over"] = over.document()
    cells = np.arange(math.prod(grid.shape)) + picture["choice"] * math.prod(grid.shape)
    if len(grid.shape) == 2:
        cells = cells[~beyond(grid)]
        for series, one in zip(document["series"], subject.numbers, strict=True):
            series["outside"] = _outside(subject, one, grid, slice(-windows, None))
    return document | {"open": int(cells[_highest(numbers[0], cells, subject.within)]), "picture": picture}


def _outside(subject: Pictured, numbers: Numbers, grid: BoxGrid, last: slice) -> dict[str, Any]:
    """Return the number of cells of each choice beyond the edges of a map, and their sum with its interval."""
    sides = [len(key) for _, key in subject.query.ordered]
    document: dict[str, Any] = {"cells": math.prod(sides) - math.prod(size - 2 for size in sides)}
    if not can_be_added(subject):
        return {**document, "why": unknown(subject, numbers)}
    why = unknown(subject, numbers)
    lines = _sums_of_choices(subject, numbers, grid, last, outside=True)
    return {**document, "lines": lines} | ({} if why is None else {"why": why})


def _sums_of_choices(
    subject: Pictured, numbers: Numbers, grid: BoxGrid, last: slice, *, outside: bool
) -> list[dict[str, list[float | None]]]:
    """Return the line of the sum of each choice: of all its cells, or of those beyond the edges of the ordered keys."""
    value = grid.sums(numbers.value).reshape(len(numbers.value), grid.count, math.prod(grid.shape))
    sums = (value[:, :, beyond(grid)] if outside else value).sum(axis=2)
    half = half_widths_within(subject, numbers, grid, outside=outside)
    return [_sum_line(sums[last, at], half[last, at]) for at in range(grid.count)]


def _without_total(subject: Pictured, numbers: Numbers, last: slice) -> dict[str, Any]:
    """Return the sum of all cells and why it has no interval; nothing if it has one, or if the sum has no meaning."""
    if numbers.together is not None or subject.of or not can_be_added(subject) or not numbers.value.size:
        return {}
    found = subject.query.name in {one.name for one in subject.plan.demands if one.discover}
    value, why = numbers.value.sum(axis=1), unknown(subject, numbers) or "Its interval is unknown."
    if found:
        value, why = np.nansum(numbers.value, axis=1), "Keys that have not been found are missing."
    value = np.round(value, decimals(numbers.noise or 0.0))
    line = _sum_line(value[last], np.full(len(value[last]), np.nan))
    return {"untotalled": {"name": "All keys found so far" if found else "", "line": line, "why": why}}


def _sum_line(value: Floats, half: Floats) -> dict[str, list[float | None]]:
    """Return the line of a sum; with six digits if no interval is known."""
    if len(value) and not np.isfinite(half).any():
        size = float(np.nanmax(np.abs(np.append(value, 1.0))))
        value = np.round(value, 5 - math.floor(math.log10(size)))
    return line_of(value, value - half, value + half)


def _gridded(numbers: Numbers, subject: Pictured, grid: BoxGrid) -> Numbers:
    """Return the numbers of boxes: as published, or sums of cells that are merged, with their intervals."""
    value, size = grid.sums(numbers.value), math.prod(grid.shape)
    half = np.full_like(value, np.nan)
    if grid.merged > 1 and unknown(subject, numbers) is None:
        half = np.tile(half_widths_of(subject, numbers, grid), grid.count)
    if grid.summed:
        half[:, :size] = half_widths_of(subject, numbers, grid, every=True)
    low, high = value - half, value + half
    if grid.merged == 1:
        single = slice(size if grid.summed else 0, None)
        low[:, single], high[:, single] = (grid.sums(ends)[:, single] for ends in (numbers.low, numbers.high))
    return replace(numbers, value=value, low=low, high=high)


def chart_data(chart: Chart, numbers: Sequence[Numbers], *, times: Times, queries: int) -> dict[str, Any]:
    """Return the data of a chart.

    Args:
        chart: Descriptions of the series.
        numbers: The series, all with the same cells.
        times: Times of the windows.
        queries: Number of queries that share the page.
    """
    of = numbers[0].value.shape[1]
    cells = np.arange(of) if chart.whole else shown_cells(numbers, of, queries=queries)
    windows = _windows(numbers, queries, chart)
    return {
        "name": chart.name,
        "keys": [*chart.keys],
        "cells": chart.labels(cells),
        "of": of,
        "open": _highest(numbers[0], cells, chart.within),
        "zero": chart.zero,
        "called": chart.called,
        "rest": chart.rest,
        "series": [
            _series(one, cells, kind, times, windows, chart.shape)
            for one, kind in zip(numbers, chart.kinds, strict=True)
        ],
    }


def _highest(numbers: Numbers, cells: NDArray[np.int64], within: tuple[float, float] | None) -> int:
    """Return which cell has the highest last number that is not mostly noise, as `pictures.message` names it."""
    if not len(numbers.value):
        return 0
    last = np.nan_to_num(numbers.value[-1, cells], nan=-np.inf)
    lost = says_nothing(numbers.low[-1, cells], numbers.high[-1, cells], within=within)
    return int(np.argmax(last if lost[np.isfinite(last)].all() else np.where(lost, -np.inf, last)))


def labels(query: Query, cells: NDArray[np.int64]) -> list[list[str]]:
    """Return each cell's value of each key, as text; `cells` has the numbers of the cells, [cells], int64."""
    kinds, columns, place = key_types([query]), [], cells
    for name, key in reversed(query.known):  # the last key runs fastest
        place, own = np.divmod(place, len(key))
        values = key.published(0, len(key), kinds[name]).take(pa.array(own))
        columns.append([str(value) for value in values.to_pylist()])
    return [list(label) for label in zip(*reversed(columns), strict=True)] if columns else [[]]


def _series(
    numbers: Numbers, cells: NDArray[np.int64], label: str, times: Times, windows: int, shape: tuple[int, ...]
) -> dict[str, Any]:
    series, last = numbers.series, slice(-windows, None)
    ends = np.arange(len(numbers.value))[last] * series.every + series.width
    document: dict[str, Any] = {
        "kind": series.kind,
        "label": label,
        "first": (times.start + int(ends[0]) * times.window) / 1000 if len(ends) else None,
        "step": series.every * times.window / 1000,
        "width": series.width * times.window / 1000,
        "window": times.window / 1000,
        "left": len(numbers.value) - len(ends),
        "cells": lines_of_boxes(numbers, last, shape)
        if shape
        else [line_of(numbers.value[last, cell], numbers.low[last, cell], numbers.high[last, cell]) for cell in cells],
    }
    if times.boundaries is not None:  # start and end of each number, and start of its last window
        spans = np.stack([times.boundaries[ends - back] for back in (series.width, 1, 0)], axis=1)
        document["spans"] = (spans / 1000).tolist()
    if numbers.together is not None:
        value, low, high = (column[last] for column in numbers.together)
        document |= {} if numbers.total is None else {"total": line_of(value, low, high)}
        document["marks"] = outstanding(value, (high - low) / 2).tolist()
    if numbers.repeated is not None:
        document["repeated"] = numbers.repeated[last].tolist()
    return document
