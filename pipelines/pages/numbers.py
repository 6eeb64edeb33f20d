"""The published numbers of a release as a page draws them: arrays [numbers, cells], few digits, the largest cells.

    in    rows of `estimates`
    out   what `assets/charts.js` reads, and how large the noise is beside the numbers

Post-processing: it reads what is published alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.reports.plan_report import series_document, series_text
from privacy.estimates import CONFIDENCE
from privacy.noise.distributions import widened
from privacy.noise.weighted import spreads
from privacy.planning.plan import Plan
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.release.published_columns import key_types, published_cells

Floats = NDArray[np.float64]

NUMBERS = 100_000
"""On a page, over all queries: about three megabytes."""

WINDOWS = 1_500
"""Of a series: more do not fit on a screen."""

CELLS = 200
"""Of a query."""

FENCE = 3.0
"""Quartile ranges that a number is beyond the quartiles if it stands out (Tukey: far out), with all of its interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """One series of a query.

    Attributes:
        value, low, high: [numbers, cells]; not a number where no interval is known.
        total: all cells together, with the half width of its 95 % interval, [numbers] each; None where it has none.
    """

    series: Series
    value: Floats
    low: Floats
    high: Floats
    total: tuple[Floats, Floats] | None


def numbers_of(series: Series, table: pa.Table, query: Query, plan: Plan) -> Numbers:
    """From the rows of a series, number after number and in each the cells in their order."""
    value, low, high = (
        table.column(name).to_numpy().astype(np.float64).reshape(-1, query.cells)
        for name in ("value", "ci_low", "ci_high")
    )
    return Numbers(series=series, value=value, low=low, high=high, total=_total(series, value, query, plan))


def _total(series: Series, value: Floats, query: Query, plan: Plan) -> tuple[Floats, Floats] | None:
    """All cells of a count or sum together: the noise of different cells is independent, and its sum has an exact law.

    Cells that were made consistent have the sum that the noisy ones had, or 0 if that is nearer to the truth.
    """
    place = next(place for place, demand in enumerate(plan.demands) if demand.name == query.name)
    demand = plan.demands[place]
    if query.cells == 1 or len(demand.measure.components) > 1 or plan.adaptive_of(place) or demand.axes:
        return None
    released = plan.publishing(place, series)
    (noise,), grid = released.noise, demand.measure.components[0].grid
    windows = len(value) * series.every + series.width - series.every
    merged, leaves = series.merged(released.leaf), windows // released.leaf
    stretch = released.strategy.stretch(released.strategy.nodes(leaves))
    if stretch is not None:  # each node is a number, with noise of its own width
        each = [widened(noise, width).half_width(query.cells, CONFIDENCE) for width in stretch.tolist()]
        return value.sum(axis=1), np.array(each) * grid
    _, widths = spreads(
        noise,
        variances=released.strategy.variances(merged, leaves) * query.cells,
        weights=lambda: [_in_every_cell(one, query.cells) for one in released.strategy.weights(merged, leaves)],
        confidence=CONFIDENCE,
    )
    return value.sum(axis=1), widths * grid


def _in_every_cell(weights: Floats, cells: int) -> Floats:
    if weights.min() == weights.max():  # a view, that need not be walked along
        return np.broadcast_to(weights[:1], (len(weights) * cells,))
    return np.tile(weights, cells)


def shown_cells(numbers: Sequence[Numbers], cells: int, *, queries: int) -> NDArray[np.int64]:
    """Which cells a page shows: as many as it has room for, those with the largest published numbers; in the order of
    the spec if it shows them all.

    Args:
        queries: how many share the page.
    """
    room = NUMBERS // queries // sum(min(len(one.value), WINDOWS) or 1 for one in numbers)
    count = max(1, min(cells, CELLS, room))
    if count == cells:
        return np.arange(cells)
    value = numbers[0].value
    size = np.abs(value).mean(axis=0) if len(value) else np.zeros(cells)
    return np.argsort(-size, kind="stable")[:count]


def chart_document(
    query: Query,
    numbers: Sequence[Numbers],
    plan: Plan,
    *,
    start: int,
    queries: int,
    title: str,
    boundaries: NDArray[np.int64] | None = None,
) -> dict[str, Any]:
    """What the charts of one query draw.

    Args:
        start: of the schedule, in microseconds, shifted by its zone.
        boundaries: of windows of a calendar, likewise; None where all are of one length.
        queries: how many share the page.
    """
    cells = shown_cells(numbers, query.cells, queries=queries)
    ratio = len(query.measure.components) > 1
    return {
        "name": query.name,
        "title": title,
        "keys": [key for key, _ in query.by],
        "cells": _labels(query, cells),
        "of": query.cells,
        "open": _clearest(numbers[0], cells),
        "zero": not ratio,
        "series": [_series_document(one, cells, plan, start=start, boundaries=boundaries) for one in numbers],
    }


def _clearest(numbers: Numbers, cells: NDArray[np.int64]) -> int:
    """Which of the cells that are shown has the least noise; the first one where all have the same."""
    width = (numbers.high - numbers.low)[:, cells]
    known = np.where(np.isfinite(width), width, np.inf)
    return int(np.argmin(np.median(known, axis=0))) if len(known) else 0


def _labels(query: Query, cells: NDArray[np.int64]) -> list[list[str]]:
    """Each cell's value of each key."""
    kinds, columns, place = key_types([query]), [], cells
    for key, listed in reversed(query.by):  # the last key runs fastest
        place, own = np.divmod(place, len(listed))
        values = published_cells(listed, kinds[key], 0, len(listed)).take(pa.array(own))
        columns.append([str(value) for value in values.to_pylist()])
    return [list(label) for label in zip(*reversed(columns), strict=True)] if columns else [[]]


def _series_document(
    numbers: Numbers, cells: NDArray[np.int64], plan: Plan, *, start: int, boundaries: NDArray[np.int64] | None
) -> dict[str, Any]:
    series, last = numbers.series, slice(-WINDOWS, None)
    ends = np.arange(len(numbers.value))[last] * series.every + series.width
    document: dict[str, Any] = {
        "kind": series.kind,
        "label": series_text(series_document(series, plan)),
        "first": (start + int(ends[0]) * plan.window) / 1000 if len(ends) else None,
        "step": series.every * plan.window / 1000,
        "width": series.width * plan.window / 1000,
        "window": plan.window / 1000,
        "left": len(numbers.value) - len(ends),
        "cells": [
            _line(numbers.value[last, cell], numbers.low[last, cell], numbers.high[last, cell]) for cell in cells
        ],
    }
    if boundaries is not None:  # from where to where, and where the last window begins
        spans = np.stack([boundaries[ends - series.width], boundaries[ends - 1], boundaries[ends]], axis=1)
        document["spans"] = (spans / 1000).tolist()
    if numbers.total is not None:
        value, half = (column[last] for column in numbers.total)
        document["total"] = _line(value, value - half, value + half)
        document["marks"] = outstanding(value, half).tolist()
    elif len(cells) == 1:
        value, half = (column[last, 0] for column in (numbers.value, (numbers.high - numbers.low) / 2))
        document["marks"] = outstanding(value, half).tolist()
    return document


def _line(value: Floats, low: Floats, high: Floats) -> dict[str, list[float | None]]:
    """With three digits of the noise; intervals are rounded outward."""
    noise = np.nanmedian(high - low) if np.isfinite(high - low).any() else 0.0
    digits = 2 - math.floor(math.log10(noise)) if noise > 0 else 6
    unit = 10.0**-digits
    return {
        "v": _plain(np.round(value / unit) * unit, digits),
        "lo": _plain(np.floor(low / unit + 1e-9) * unit, digits),
        "hi": _plain(np.ceil(high / unit - 1e-9) * unit, digits),
    }


def _plain(column: Floats, digits: int) -> list[float | None]:
    """As JSON has them: whole numbers without a point, and null for what is unknown."""
    rounded = np.round(column, digits) + 0.0  # no negative zero
    return [
        None if math.isnan(one) else int(one) if one.is_integer() and abs(one) < 2**53 else one
        for one in rounded.tolist()
    ]


def outstanding(value: Floats, half: Floats) -> NDArray[np.int64]:
    """Which numbers stand out of all, with the whole of their intervals; at most three, the furthest first.

    >>> outstanding(np.array([5.0, 6, 5, 4, 6, 5, 4, 90, 5, 6]), np.full(10, 2.0)).tolist()
    [7]
    """
    known = np.isfinite(value) & np.isfinite(half)
    if known.sum() < 8:
        return np.zeros(0, dtype=np.int64)
    lower, upper = np.quantile(value[known], (0.25, 0.75))
    reach = FENCE * (upper - lower)
    beyond = np.maximum(value - half - (upper + reach), (lower - reach) - (value + half))
    beyond = np.where(known, beyond, -np.inf)
    order = np.argsort(-beyond, kind="stable")[:3]
    found: NDArray[np.int64] = order[beyond[order] > 0]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """How large the noise of a series is beside its numbers.

    Attributes:
        typical: median size of a number in a cell; of a ratio the median itself.
        half: median half width of its 95 % interval; None where no interval is known.
        lost: the share of numbers that say next to nothing: an interval that holds zero, or, of a ratio, one that is
            wider than half of its range.
    """

    typical: float
    half: float | None
    lost: float

    @property
    def noisy(self) -> bool:
        """Whether numbers are mostly noise."""
        return self.lost > 0.5


def signal_of(numbers: Numbers, query: Query) -> Signal | None:
    """None where nothing is published."""
    value, width = numbers.value, numbers.high - numbers.low
    known = np.isfinite(width)
    if value.size == 0:
        return None
    low, high = query.measure.bounds
    if len(query.measure.components) > 1:
        lost, typical = width > (high - low) / 2, float(np.median(value))
    else:
        lost, typical = (numbers.low <= 0) & (numbers.high >= 0), float(np.median(np.abs(value)))
    return Signal(
        typical=typical,
        half=float(np.median(width[known])) / 2 if known.any() else None,
        lost=float(lost[known].mean()) if known.any() else 0.0,
    )
