"""Published numbers as arrays [numbers, cells], what of them stands out, and how large the noise is beside them.

Post-processing: it reads what is published alone.
"""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy.adaptive.carry import units_of
from privacy.estimates import CONFIDENCE
from privacy.noise.distributions import widened
from privacy.noise.weighted import spreads
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.plan import Plan
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.release.published_columns import SAMPLED

Floats = NDArray[np.float64]

FENCE = 3.0
"""Quartile ranges that a number is beyond the quartiles if it stands out (Tukey: far out), with all of its interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """One series of a query.

    Attributes:
        value, low, high: [numbers, cells]; not a number where no interval is known.
        total: all cells together, with the half width of its 95 % interval, [numbers] each; None where it has none.
        repeated: which numbers repeat those of the window before, [numbers]; None where none ever does.
    """

    series: Series
    value: Floats
    low: Floats
    high: Floats
    total: tuple[Floats, Floats] | None
    repeated: NDArray[np.bool_] | None = None

    @property
    def together(self) -> tuple[Floats, Floats, Floats] | None:
        """Value, low and high of the only cell or of all together, [numbers] each; None where there is no such."""
        if self.value.shape[1] == 1:
            return self.value[:, 0], self.low[:, 0], self.high[:, 0]
        if self.total is None:
            return None
        value, half = self.total
        return value, value - half, value + half


def numbers_of(series: Series, table: pa.Table, query: Query, plan: Plan) -> Numbers:
    """From the rows of a series, number after number and in each the cells in their order."""
    value, low, high = (
        table.column(name).to_numpy().astype(np.float64).reshape(-1, query.cells)
        for name in ("value", "ci_low", "ci_high")
    )
    repeated = None
    if SAMPLED in table.column_names:
        repeated = ~table.column(SAMPLED).to_numpy().astype(bool).reshape(-1, query.cells)[:, 0]
    total = _total(series, value, repeated, query, plan)
    return Numbers(series=series, value=value, low=low, high=high, total=total, repeated=repeated)


def _total(
    series: Series, value: Floats, repeated: NDArray[np.bool_] | None, query: Query, plan: Plan
) -> tuple[Floats, Floats] | None:
    """All cells of a count or sum together: the noise of different cells is independent, and its sum has an exact law.

    Cells that were made consistent have the sum that the noisy ones had, or 0 if that is nearer to the truth.
    """
    place = next(place for place, demand in enumerate(plan.demands) if demand.name == query.name)
    demand = plan.demands[place]
    if query.cells == 1 or len(demand.measure.components) > 1 or demand.axes:
        return None
    grid, part = demand.measure.components[0].grid, plan.adaptive_of(place)
    if part is not None and repeated is not None:
        return None if part.grouped else (value.sum(axis=1), _of_samples(~repeated, part, query.cells) * grid)
    released = plan.publishing(place, series)
    (noise,) = released.noise
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


def _of_samples(sampled: NDArray[np.bool_], part: AdaptivePart, cells: int) -> Floats:
    """Half widths of the sum of all cells in windows that were sampled; not a number in others."""
    units = units_of(part.adaptive, sampled.tolist())
    halves = {one: part.scales.sample(one).half_width(cells, CONFIDENCE) if one else np.nan for one in set(units)}
    return np.array([halves[one] for one in units])


def _in_every_cell(weights: Floats, cells: int) -> Floats:
    if weights.min() == weights.max():  # a view, that need not be walked along
        return np.broadcast_to(weights[:1], (len(weights) * cells,))
    return np.tile(weights, cells)


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


def signal(numbers: Numbers, *, within: tuple[float, float] | None) -> Signal | None:
    """None where no number is known.

    Args:
        within: as of `says_nothing`.
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
    """Whether intervals hold zero; or are wider than half of what is possible, if it is known what is."""
    found: NDArray[np.bool_] = (low <= 0) & (high >= 0) if within is None else high - low > (within[1] - within[0]) / 2
    return found


def rounded(number: float, noise: float) -> str:
    """So many digits that the last one is a tenth of the noise.

    >>> rounded(1234.56, 20.0), rounded(-12.345, 2.0), rounded(0.12345, 0.01), rounded(1234.56, 0.1)
    ('1,235', '-12.3', '0.123', '1,234.56')
    """
    decimals = _decimals(noise)
    return f"{round(number, decimals) + 0.0:,.{decimals}f}"  # no negative zero


def outward(low: float, high: float) -> tuple[str, str]:
    """The ends of an interval around its middle, as `rounded`, but outward.

    >>> outward(1210.6, 1250.2), outward(0.12011, 0.14089)
    (('1,210', '1,251'), ('0.120', '0.141'))
    """
    noise = (high - low) / 2
    unit = 10.0 ** -_decimals(noise)
    ends = (float(np.floor(low / unit + 1e-9) * unit), float(np.ceil(high / unit - 1e-9) * unit))
    return rounded(ends[0], noise), rounded(ends[1], noise)


def _decimals(noise: float) -> int:
    return 0 if noise >= 10 else 1 - math.floor(math.log10(noise)) if noise > 0 else 6
