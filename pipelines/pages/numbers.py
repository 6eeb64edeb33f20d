"""Published numbers as arrays [numbers, cells], the ones that stand out, and the size of the noise compared with them.

This is post-processing: it reads published numbers alone.
"""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy.planning.plan import Plan
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.release.published_columns import SAMPLED

Floats = NDArray[np.float64]

USED = ("value", "ci_low", "ci_high", SAMPLED)
"""Columns of rows from which `numbers_of` makes numbers."""

FENCE = 3.0
"""A number stands out if its interval lies more than this many interquartile ranges beyond the quartiles.

Source: Tukey, Exploratory Data Analysis, 1977 ("far out").
"""


JUDGED = 8
"""Fewest numbers with intervals of which one can stand out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """One series of a query.

    Attributes:
        value, low, high: Numbers and the ends of their 95 % intervals, [numbers, cells], float64; not a number if no
            interval is known.
        total: Sum of all cells and the half width of its 95 % interval, [numbers] each; None if no interval is known.
        repeated: Which numbers repeat those of the window before, [numbers]; None if numbers are never repeated.
        listed: Whether the spec lists all cells. Otherwise a cell has numbers from the window on in which it was found.
    """

    series: Series
    value: Floats
    low: Floats
    high: Floats
    total: tuple[Floats, Floats] | None
    repeated: NDArray[np.bool_] | None = None
    listed: bool = True

    @property
    def count(self) -> int:
        """Number of published numbers; before a key is found, it has none."""
        return int(np.count_nonzero(self.published))

    @property
    def repeats(self) -> int:
        """Number of published numbers that repeat those of the window before."""
        return 0 if self.repeated is None else int(np.count_nonzero(self.published[self.repeated]))

    @property
    def published(self) -> NDArray[np.bool_]:
        """Which numbers were published, [numbers, cells]: all, or those since their key was found."""
        return np.full(self.value.shape, True) if self.listed else np.isfinite(self.value)

    @property
    def noise(self) -> float | None:
        """Median half width of the intervals of the numbers; None if no interval is known."""
        width = self.high - self.low
        return float(np.nanmedian(width)) / 2 if np.isfinite(width).any() else None

    @property
    def together(self) -> tuple[Floats, Floats, Floats] | None:
        """Value, low and high of the only cell, or of the sum of all cells, [numbers] each; None if not known."""
        if self.value.shape[1] == 1:
            return self.value[:, 0], self.low[:, 0], self.high[:, 0]
        if self.total is None:
            return None
        value, half = self.total
        return value, value - half, value + half


def numbers_of(series: Series, table: pa.Table, query: Query, plan: Plan, *, of_cells: bool = True) -> Numbers:
    """Return the numbers of a series from its rows.

    Args:
        series: The kind of numbers.
        table: Rows of the series, number after number, each with all cells in their order.
        query: The query, with the cells of the rows.
        plan: Plan of the release.
        of_cells: Whether the rows are the cells of the query, and not sums of them, such as marginals.
    """
    value, low, high = (
        table.column(name).to_numpy().astype(np.float64).reshape(-1, query.cells)
        for name in ("value", "ci_low", "ci_high")
    )
    repeated = None
    if SAMPLED in table.column_names:
        repeated = ~table.column(SAMPLED).to_numpy().astype(bool).reshape(-1, query.cells)[:, 0]
    total = _total(series, value, repeated, query, plan) if of_cells else None
    return Numbers(series=series, value=value, low=low, high=high, total=total, repeated=repeated)


def _total(
    series: Series, value: Floats, repeated: NDArray[np.bool_] | None, query: Query, plan: Plan
) -> tuple[Floats, Floats] | None:
    """Return the sum of all cells of a count or sum with its half width, [numbers] each; None if it is not known.

    If each cell has its own noise, the distribution of the sum is exact. Under a strategy over cells the half width is
    that of `slackwater answer`. Consistent cells have the same sum as the noisy cells, or 0 if that is closer to the
    truth.
    """
    place = next(place for place, demand in enumerate(plan.demands) if demand.name == query.name)
    demand = plan.demands[place]
    if query.cells == 1 or demand.discover or len(demand.measure.components) > 1:
        return None
    if demand.measure.distinct and not plan.promise.alone:  # a unit can be in several cells
        return None
    part, sampled = plan.of_series(place, series), [] if repeated is None else (~repeated).tolist()
    if not demand.axes:
        widths = part.total_errors(series, len(value), query.cells, sampled)
    elif part.unsummed or not len(value) or (query.consistent and series.kind in ("level", "entered", "left")):
        widths = None
    else:
        widths = part.sum_errors(series, np.ones(query.cells), np.arange(len(value)), None, sampled)[1]
    return None if widths is None else (value.sum(axis=1), widths * demand.measure.components[0].grid)


def is_judged(value: Floats, low: Floats, high: Floats) -> bool:
    """Return whether enough numbers have an interval to say which stand out.

    >>> [is_judged(np.ones(8), np.full(8, low), np.ones(8)) for low in (0.5, np.nan)]
    [True, False]
    """
    return bool(np.isfinite(value + high - low).sum() >= JUDGED)


def outstanding(value: Floats, half: Floats) -> NDArray[np.int64]:
    """Return the places of numbers whose whole interval stands out; at most three, the furthest first.

    Args:
        value, half: Numbers and the half widths of their intervals, [numbers], float64; not a number if unknown.

    >>> outstanding(np.array([5.0, 6, 5, 4, 6, 5, 4, 90, 5, 6]), np.full(10, 2.0)).tolist()
    [7]
    """
    known = np.isfinite(value) & np.isfinite(half)
    if known.sum() < JUDGED:
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
    """Size of the noise of a series, compared with its numbers.

    Attributes:
        typical: Median size of a number in a cell; for a ratio the median itself.
        half: Median half width of the 95 % intervals; None if no interval is known.
        lost: Share of uninformative numbers: their interval contains zero or, for a ratio, is wider than half of its
            range.
    """

    typical: float
    half: float | None
    lost: float

    @property
    def noisy(self) -> bool:
        """Whether numbers are mostly noise."""
        return self.lost > 0.5


def signal(numbers: Numbers, *, within: tuple[float, float] | None) -> Signal | None:
    """Return the size of the noise compared with the numbers; None if no number is known.

    Args:
        numbers: A series.
        within: As in `says_nothing`.
    """
    known = np.isfinite(numbers.high - numbers.low)
    value = numbers.value[np.isfinite(numbers.value)]
    if value.size == 0:
        return None
    low, high = numbers.low[known], numbers.high[known]
    return Signal(
        typical=float(np.median(np.abs(value) if within is None else value)),
        half=float(np.median(high - low)) / 2 if low.size else None,
        lost=float(says_nothing(low, high, within=within).mean()) if low.size else 0.0,
    )


def says_nothing(low: Floats, high: Floats, *, within: tuple[float, float] | None) -> NDArray[np.bool_]:
    """Return which intervals are uninformative.

    Args:
        low, high: Ends of intervals, float64, of one shape.
        within: Least and largest possible number. None: an interval is uninformative if it contains zero; otherwise, if
            it is wider than half of this range.

    Returns:
        Booleans of the same shape.
    """
    found: NDArray[np.bool_] = (low <= 0) & (high >= 0) if within is None else high - low > (within[1] - within[0]) / 2
    return found


def rounded(number: float, noise: float) -> str:
    """Return a number as text, with digits down to a tenth of the noise.

    >>> rounded(1234.56, 20.0), rounded(-12.345, 2.0), rounded(0.12345, 0.01), rounded(1234.56, 0.1)
    ('1,235', '-12.3', '0.123', '1,234.56')
    """
    return _text(number, decimals(noise))


def apart(first: tuple[float, float], second: tuple[float, float]) -> tuple[str, str, str]:
    """Return two numbers as `rounded` writes them, and the first one minus the second one of these texts.

    Args:
        first, second: A number, and its noise.

    >>> apart((54.0, 5.0), (54.6, 5.0)), apart((12.04, 1.5), (12.5, 20.0))
    (('54', '54.6', '-0.6'), ('12', '12', '0'))
    """
    digits = [decimals(noise) for _, noise in (first, second)]
    ends = [round(value, each) for (value, _), each in zip((first, second), digits, strict=True)]
    return rounded(*first), rounded(*second), _text(ends[0] - ends[1], max(digits))


def outward(low: float, high: float) -> tuple[str, str]:
    """Return the ends of an interval as `rounded` does, but rounded outward.

    An end that would become zero by this has more digits.

    >>> outward(1210.6, 1250.2), outward(0.12011, 0.14089), outward(-594.2, -0.31)
    (('1,210', '1,251'), ('0.12', '0.141'), ('-595', '-0.31'))
    """
    digits = decimals((high - low) / 2)
    least, most = (decimals(end) if 0 < end < 10.0**-digits else digits for end in (low, -high))
    return (
        _text(np.floor(low * 10.0**least + 1e-9) / 10.0**least, least),
        _text(np.ceil(high * 10.0**most - 1e-9) / 10.0**most, most),
    )


def _text(number: float, digits: int) -> str:
    """Return a number without zeros at its end, as the scripts write it (`toLocaleString`)."""
    said = f"{round(float(number), digits) + 0.0:,.{digits}f}"  # no negative zero
    return said.rstrip("0").removesuffix(".") if digits else said


def percent(share: float) -> str:
    """Return a share as text.

    >>> percent(0.563)
    '56 %'
    """
    return f"{100 * share:.0f} %"


def decimals(noise: float) -> int:
    """Return the number of decimals that texts have next to noise of this size."""
    return 0 if noise >= 10 else 1 - math.floor(math.log10(noise)) if noise > 0 else 6
