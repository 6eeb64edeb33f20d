"""Settings of strategies in a spec. For their names, see privacy.strategies.table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from privacy.checks import Limits
from privacy.problems import RuleError

Refine = Literal["none", "subtraction", "bottom_up", "least_squares"]
FilterForm = Literal["square_root", "leaky", "window", "arma"]

BRANCHING, HEIGHT = Limits(2, 1024), Limits(1, 40)
"""Limits of a tree in a spec."""

REFINES: tuple[Refine, ...] = get_args(Refine)


MOST_WEIGHTS = 4096
"""Largest number of weights in a list; a longer list would need minutes to solve and fill a page of the spec."""

LARGEST = 1e9
"""Only the ratios of weights matter; within this bound their squares are far from the limits of floating point."""

WIDEST = 1000.0
"""Largest ratio of the largest weight to the smallest, so that all shares are far from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Strategy settings of the spec; the planner chooses settings that are None.

    Attributes:
        name: `auto`, or a key of privacy.strategies.table.OFFERS.
        branching, height, refine: parameters of a tree.
        form: form of a Toeplitz factorisation.
        weights: weights of the windows, for direct levels; the list repeats if there are more windows.

    Raises:
        RuleError: a setting is outside its range; the path is its key.
    """

    name: str = "auto"
    branching: int | None = None
    height: int | None = None
    refine: Refine | None = None
    form: FilterForm | None = None
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        BRANCHING.check("branching", self.branching)
        HEIGHT.check("height", self.height)
        if self.weights is not None:
            check_weights(self.weights)


def check_weights(weights: Sequence[float]) -> None:
    """Refuse weights by which no budget can be divided.

    Raises:
        RuleError: too many weights, one outside the allowed range, or a ratio that is too large.
    """
    if not 1 <= len(weights) <= MOST_WEIGHTS:
        raise RuleError(f"expected 1 to {MOST_WEIGHTS:,} of them, not {len(weights):,}", "weights")
    if not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise RuleError("must be above 0: every window is published; for fewer take longer windows", "weights")
    if max(weights) > LARGEST or min(weights) < 1 / LARGEST:
        raise RuleError(f"must be between {1 / LARGEST:g} and {LARGEST:g}; how many times as large counts", "weights")
    if max(weights) > WIDEST * min(weights):
        raise RuleError(f"the largest may be {WIDEST:g} times the smallest at most", "weights")
