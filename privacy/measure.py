"""Measures of queries: each entry's state becomes a few integers, and the query is their sum over entries.

A measure maps a state's value to `components`, integers on a public grid that is equal in all runs: a grid step is a
power of two that follows from the measure's bounds, never from the data. A missing state maps to zeros.

    count           (1,)
    units           (1,)                      of each unit with an entry in the cell, not of each entry
    sum             (v,)                      v clamped to [low, high]
    mean            (1, v - m)                m the middle of [low, high]: the centred sum needs less noise
    second_moment   (1, v^2 - m2)             a mean of squares, centred the same way
    variance        (1, v - m, (v - m)^2 - h^2/2)    h half of high - low

The published estimate is the component itself (count, sum), or a function of the noisy components.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

MeasureKind = Literal["count", "units", "sum", "mean", "second_moment", "variance"]
KINDS: tuple[MeasureKind, ...] = ("count", "units", "sum", "mean", "second_moment", "variance")
COUNTS: tuple[MeasureKind, ...] = ("count", "units")
"""Kinds that read no column."""
VALUED = tuple(kind for kind in KINDS if kind not in COUNTS)

STEPS = 2**24
"""Grid steps in the largest size of a component, if 64 bits have room for them."""

FEWEST_STEPS = 2**12
"""Bounds of centred values with fewer steps between them are refused: they are too close for their size."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One integer that a state contributes, in steps of `grid` (a power of two).

    Attributes:
        name: name of the component, for the names of nodes.
        grid: units of the measure in one step.
        low, high: the range of the integer over all states that exist.
    """

    name: str
    grid: float
    low: int
    high: int

    @property
    def largest(self) -> int:
        """Largest absolute value of the integer; one normalised unit of noise."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Measure of a query: its kind and, except for counts and units, the clamping bounds of its column.

    Args:
        kind: one of `KINDS`.
        low, high: clamping bounds, in the column's units; low < high. For counts and units they are 0 and 1.
        fine: whether counts are on the fine grid too, as Gaussian noise requires (privacy.accounting).

    Raises:
        ValueError: bounds are missing, not finite, not in order or too wide to sum exactly.

    >>> Measure(kind="mean", low=0, high=10).components[1].largest * Measure(kind="mean", low=0, high=10).grid
    5.0
    """

    kind: MeasureKind
    low: float = math.nan
    high: float = math.nan
    fine: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"measure {self.kind!r} is not one of {', '.join(KINDS)}")
        if math.isnan(self.low) and math.isnan(self.high):
            if self.valued:
                raise ValueError(f"a {self.kind} has no clamping bounds; give low= and high=, chosen without the data")
            object.__setattr__(self, "low", 0.0)
            object.__setattr__(self, "high", 1.0)
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"min={self.low} must be less than max={self.high}, and both finite")
        if max(abs(self.low), abs(self.high)) > 2**40:
            raise ValueError("min and max must lie within 2^40 of zero; use larger units")
        if self.high - self.low < 2.0**-40:
            raise ValueError("min and max must lie 2^-40 apart at the least; use smaller units")
        if self._centred and self._high - self._low < FEWEST_STEPS:
            raise ValueError(
                f"min={self.low} and max={self.high} are too close to each other for their size; "
                "measure the difference from a constant near them"
            )

    @property
    def valued(self) -> bool:
        """Whether the measure reads a column."""
        return self.kind not in COUNTS

    @property
    def distinct(self) -> bool:
        """Whether a unit counts once in each cell, for any number of its entries there."""
        return self.kind == "units"

    @property
    def grid(self) -> float:
        """Units of the column in one step of a projected value.

        A power of two, so fine that `STEPS` steps lie in the largest sum, or in half the width of the bounds if values
        are centred; at most 1, so that integers are exact; and never so fine that 64 bits could overflow: values stay
        below 2^35 steps, and values that are squared below 2^31.
        """
        return _grid(self)

    def project(self, values: NDArray[np.float64]) -> Integers:
        """Return values [rows] clamped and rounded to the grid, int64 [rows]; the caller handles NaN.

        >>> Measure(kind="sum", low=0, high=1).project(np.array([-3, 0.5, np.inf])).tolist()
        [0, 8388608, 16777216]
        """
        scaled = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        scaled /= self.grid
        return np.rint(scaled, out=scaled).astype(np.int64)

    @property
    def components(self) -> tuple[Component, ...]:
        return _components(self)

    def contributions(self, values: Integers | None, rows: int) -> list[Integers]:
        """Return the components of `rows` states, int64 [rows] each, from projected values [rows] (None for counts)."""
        count = np.full(rows, self._count.high, dtype=np.int64)
        if not self.valued:
            return [count]
        assert values is not None
        if self.kind == "sum":
            return [values]
        if self.kind == "mean":
            return [count, values - self._middle]
        if self.kind == "second_moment":
            return [count, (values * values >> self._shift) - self._square_middle]
        centred = values - self._middle
        return [count, centred, (centred * centred >> self._shift) - self._square_middle]

    def estimate(self, sums: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the published number from component sums in steps, [..] each; NaN for a ratio without positive count.

        This applies to exact sums and to noisy ones; `privacy.estimates` replaces NaN in published numbers.
        """
        scaled = [s * c.grid for s, c in zip(sums, self.components, strict=True)]
        if len(scaled) == 1:
            return scaled[0]
        count = np.where(scaled[0] > 0, scaled[0], np.nan)
        first = scaled[1] / count + self.shifts[0]
        if self.kind != "variance":
            return first
        return scaled[2] / count + self.shifts[1] - (scaled[1] / count) ** 2

    @property
    def shifts(self) -> tuple[float, ...]:
        """Amount that centring subtracts from each component except the count, in the component's units."""
        if self.kind == "mean":
            return (self._middle * self.grid,)
        if self.kind == "second_moment":
            return (self._square_middle * self.components[1].grid,)
        if self.kind == "variance":
            return self._middle * self.grid, self._square_middle * self.components[2].grid
        return ()

    @property
    def bounds(self) -> tuple[float, float]:
        """Range of a mean, second moment or variance for any data: intervals are cut to it."""
        if self.kind == "mean":
            return self.low, self.high
        if self.kind == "second_moment":
            least = 0.0 if self.low <= 0 <= self.high else min(self.low**2, self.high**2)
            return least, max(self.low**2, self.high**2)
        if self.kind == "variance":
            return 0.0, ((self.high - self.low) / 2) ** 2
        return -math.inf, math.inf

    @property
    def _count(self) -> Component:
        steps = STEPS if self.fine else 1
        return Component(name="count", grid=1.0 / steps, low=steps, high=steps)

    @property
    def _centred(self) -> bool:
        return self.kind in ("mean", "second_moment", "variance")

    @property
    def _low(self) -> int:
        return round(self.low / self.grid)

    @property
    def _high(self) -> int:
        return round(self.high / self.grid)

    @property
    def _middle(self) -> int:
        return (self._low + self._high) // 2

    @property
    def _largest_square(self) -> int:
        low, high = self._low, self._high
        if self.kind == "variance":
            return max(high - self._middle, self._middle - low) ** 2
        return max(low * low, high * high)

    @property
    def _least_square(self) -> int:
        low, high = self._low, self._high
        return 0 if self.kind == "variance" or low <= 0 <= high else min(low * low, high * high)

    @property
    def _shift(self) -> int:
        """Number of bits by which squares are coarsened: a noisy sum of squares needs no more steps than other sums."""
        half = (self._largest_square - self._least_square) // 2
        return max(0, half.bit_length() - STEPS.bit_length())

    @property
    def _square_middle(self) -> int:
        return ((self._least_square >> self._shift) + (self._largest_square >> self._shift)) // 2


def _power_of_two(size: float) -> float:
    """Return the largest power of two that is not above a positive number."""
    return 2.0 ** math.floor(math.log2(size))


@lru_cache(maxsize=256)
def _grid(measure: Measure) -> float:
    """Return the grid of a measure; cached, since each window of a release uses it."""
    if not measure.valued:
        return 1.0
    size, half = max(abs(measure.low), abs(measure.high)), (measure.high - measure.low) / 2
    fine = _power_of_two(half if measure._centred else size) / STEPS
    coarse = _power_of_two(size) / 2**34
    if measure.kind in ("second_moment", "variance"):
        coarse = max(coarse, _power_of_two(size if measure.kind == "second_moment" else half) / 2**30)
    return max(min(1.0, fine), coarse)


@lru_cache(maxsize=256)
def _components(measure: Measure) -> tuple[Component, ...]:
    if not measure.valued:
        return (measure._count,)
    low, high = measure._low, measure._high
    if measure.kind == "sum":
        return (Component(name="sum", grid=measure.grid, low=low, high=high),)
    if measure.kind == "mean":
        return (
            measure._count,
            Component(name="sum", grid=measure.grid, low=low - measure._middle, high=high - measure._middle),
        )
    if measure.kind == "second_moment":
        squares = Component(
            name="squares",
            grid=measure.grid**2 * 2**measure._shift,
            low=(measure._least_square >> measure._shift) - measure._square_middle,
            high=(measure._largest_square >> measure._shift) - measure._square_middle,
        )
        return (measure._count, squares)
    return (
        measure._count,
        Component(name="sum", grid=measure.grid, low=low - measure._middle, high=high - measure._middle),
        Component(
            name="squares",
            grid=measure.grid**2 * 2**measure._shift,
            low=-measure._square_middle,
            high=(measure._largest_square >> measure._shift) - measure._square_middle,
        ),
    )
