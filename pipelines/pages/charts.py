"""Data of charts (`assets/charts.js`): numbers over time with few digits; of many cells, the largest ones."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.pages.numbers import Floats, Numbers, outstanding
from pipelines.spec.series import series_document, series_text
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
        called: What the page calls cells.
        rest: Where to find numbers that the page leaves out.
    """

    name: str
    kinds: Sequence[str]
    keys: Sequence[str]
    labels: CellLabels
    zero: bool
    called: str
    rest: str


def shown_cells(numbers: Sequence[Numbers], cells: int, *, queries: int) -> NDArray[np.int64]:
    """Return the numbers of the cells that a page shows, [cells shown], int64.

    If the page has no room for all cells, it shows those with the largest published numbers, the largest first.
    Otherwise the cells are in the order of the spec.

    Args:
        numbers: All series of the chart.
        cells: Number of cells.
        queries: Number of queries that share the page.
    """
    most = _windows(numbers, queries)
    room = NUMBERS // queries // sum(min(len(one.value), most) or 1 for one in numbers)
    count = max(1, min(cells, CELLS, room))
    if count == cells:
        return np.arange(cells)
    value = numbers[0].value
    size = np.nan_to_num(np.abs(value)).mean(axis=0) if len(value) else np.zeros(cells)
    return np.argsort(-size, kind="stable")[:count]


def _windows(numbers: Sequence[Numbers], queries: int) -> int:
    """Return the most windows of each series, so that a page has room for one cell and the sum of all cells."""
    return max(1, min(WINDOWS, NUMBERS // queries // (2 * len(numbers))))


def chart_document(
    query: Query, numbers: Sequence[Numbers], plan: Plan, *, times: Times, queries: int, name: str = ""
) -> dict[str, Any]:
    """Return the data of the charts of one query.

    Args:
        query: The query of the release.
        numbers: Its series.
        plan: Plan of the release.
        times: Times of the windows.
        queries: Number of queries that share the page.
        name: Name to show; empty: the query's own name.
    """
    chart = Chart(
        name=name or query.name,
        kinds=[series_text(series_document(one.series, plan)) for one in numbers],
        keys=[key for key, _ in query.by],
        labels=lambda cells: labels(query, cells),
        zero=len(query.measure.components) == 1 and QUANTILE not in dict(query.by),
        called="cells",
        rest="\u201cslackwater show\u201d has them all",
    )
    return chart_data(chart, numbers, times=times, queries=queries)


def chart_data(chart: Chart, numbers: Sequence[Numbers], *, times: Times, queries: int) -> dict[str, Any]:
    """Return the data of a chart.

    Args:
        chart: Descriptions of the series.
        numbers: The series, all with the same cells.
        times: Times of the windows.
        queries: Number of queries that share the page.
    """
    of = numbers[0].value.shape[1]
    cells = shown_cells(numbers, of, queries=queries)
    return {
        "name": chart.name,
        "keys": [*chart.keys],
        "cells": chart.labels(cells),
        "of": of,
        "open": _clearest(numbers[0], cells),
        "zero": chart.zero,
        "called": chart.called,
        "rest": chart.rest,
        "series": [
            _series(one, cells, kind, times, _windows(numbers, queries))
            for one, kind in zip(numbers, chart.kinds, strict=True)
        ],
    }


def _clearest(numbers: Numbers, cells: NDArray[np.int64]) -> int:
    """Return which of the shown cells has the least noise; the first one if all have the same noise."""
    width = (numbers.high - numbers.low)[:, cells]
    known = np.where(np.isfinite(width), width, np.inf)
    return int(np.argmin(np.median(known, axis=0))) if len(known) else 0


def labels(query: Query, cells: NDArray[np.int64]) -> list[list[str]]:
    """Return each cell's value of each key, as text; `cells` has the numbers of the cells, [cells], int64."""
    kinds, columns, place = key_types([query]), [], cells
    for name, key in reversed(query.known):  # the last key runs fastest
        place, own = np.divmod(place, len(key))
        values = key.published(0, len(key), kinds[name]).take(pa.array(own))
        columns.append([str(value) for value in values.to_pylist()])
    return [list(label) for label in zip(*reversed(columns), strict=True)] if columns else [[]]


def _series(numbers: Numbers, cells: NDArray[np.int64], label: str, times: Times, windows: int) -> dict[str, Any]:
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
        "cells": [
            line_of(numbers.value[last, cell], numbers.low[last, cell], numbers.high[last, cell]) for cell in cells
        ],
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


def line_of(value: Floats, low: Floats, high: Floats) -> dict[str, list[float | None]]:
    """Return one line of a chart, rounded to three digits of the noise; intervals are rounded outward.

    Args:
        value, low, high: Numbers with the ends of their intervals, [windows], float64; not a number if unknown.
    """
    noise = np.nanmedian(high - low) if np.isfinite(high - low).any() else 0.0
    digits = 2 - math.floor(math.log10(noise)) if noise > 0 else 6
    unit = 10.0**-digits
    return {
        "v": _plain(np.round(value / unit) * unit, digits),
        "lo": _plain(np.floor(low / unit + 1e-9) * unit, digits),
        "hi": _plain(np.ceil(high / unit - 1e-9) * unit, digits),
    }


def _plain(column: Floats, digits: int) -> list[float | None]:
    """Return numbers for JSON: whole numbers without a decimal point, and null for unknown ones."""
    rounded = np.round(column, digits) + 0.0  # no negative zero
    return [
        None if math.isnan(one) else int(one) if one.is_integer() and abs(one) < 2**53 else one
        for one in rounded.tolist()
    ]
