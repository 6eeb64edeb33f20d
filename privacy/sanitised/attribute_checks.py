"""Common checks of all attributes of records: epsilon, delta and the width of noise."""

import numpy as np

from privacy.checks import DELTA, between, positive
from privacy.noise.sampling import LARGEST_SCALE
from privacy.sanitised.grid import Grid

LARGEST_EPSILON = 40.0
"""Largest epsilon of one attribute; above it the odds of a false value would be below 2^-62: no protection."""

SMALLEST_EPSILON = 1e-9


def refuse_budget(epsilon: float, delta: float) -> None:
    """Refuse a budget that an attribute cannot have.

    Raises:
        RuleError: a parameter is outside its range.
    """
    positive("epsilon", epsilon)
    between("epsilon", epsilon, SMALLEST_EPSILON, LARGEST_EPSILON)
    DELTA.check("delta", delta)


def refuse_wide(name: str, scale: float) -> None:
    if scale > LARGEST_SCALE:
        raise ValueError(f"{name}: noise of more than 2^55 steps would be needed; use a larger epsilon or step")


def missing_step(grid: Grid, missing: float | None) -> int:
    """Return the grid step of a number for missing values, or the middle step if None is given.

    Raises:
        ValueError: the number is outside the range.
    """
    if missing is None:
        return grid.steps // 2
    if not grid.low <= missing <= grid.low + grid.steps * grid.step * (1 + 1e-12):
        raise ValueError(f"missing={missing} lies outside of min and max")
    return int(grid.codes(np.array([missing]), missing=0)[0])
