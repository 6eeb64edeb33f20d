"""Public grid of the numbers of records."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.checks import positive
from privacy.noise.odds import Integers

Floats = NDArray[np.float64]

MOST_STEPS = 2**30
"""Largest number of steps of a number's grid, and of a curve's total: 64 bits then hold all sums and products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Grid of the numbers low, low + step, ..., low + steps step.

    Raises:
        ValueError: the range is not a whole number of steps, or has too many steps.

    >>> Grid.of(low=0.0, high=1.0, step=0.25).codes(np.array([-3, 0.4, np.nan, 9]), missing=2).tolist()
    [0, 2, 2, 4]
    """

    low: float
    step: float
    steps: int

    @staticmethod
    def of(*, low: float, high: float, step: float) -> "Grid":
        """Return the grid from one number to another.

        Args:
            low: the least number, in the column's units.
            high: the largest number, above `low`.
            step: distance of adjacent numbers; it divides high - low.

        Raises:
            ValueError: `low` is not below `high`, a number is not finite, or the range is not a whole number of
                steps, or has too many steps.
        """
        positive("step", step)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"min={low} must be less than max={high}, and both finite")
        if (high - low) / step > MOST_STEPS + 1:
            raise ValueError(f"more than 2^30 steps from min={low} to max={high}; take a larger step")
        steps = round((high - low) / step)
        # Decimals have small errors in the last places, far below a step.
        if steps < 1 or abs(low + steps * step - high) > min(2.0**-48 * max(abs(low), abs(high)), 1e-3 * step):
            raise ValueError(f"step={step} does not lead from min={low} to max={high} in whole steps")
        return Grid(low=low, step=step, steps=steps)

    def codes(self, values: Floats, *, missing: int) -> Integers:
        """Return the nearest steps within the range, int64, for values of any shape; `missing` for NaN."""
        steps = np.clip((values - self.low) / self.step, 0, self.steps)
        return np.where(np.isnan(steps), missing, np.rint(np.nan_to_num(steps))).astype(np.int64)

    def values(self, codes: Integers) -> Floats:
        """Return the numbers of steps, float64, also beyond the range."""
        return np.asarray(self.low + self.step * codes, dtype=np.float64)
