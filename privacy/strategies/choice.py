"""What a spec can say of strategies: their names and settings. The one list of these words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Name = Literal["auto", "disjoint", "sliding", "tree", "factorised", "direct"]
Refine = Literal["none", "subtraction", "bottom_up", "least_squares"]
Form = Literal["square_root", "leaky", "window", "arma"]

NAMES: tuple[Name, ...] = get_args(Name)
REFINES: tuple[Refine, ...] = get_args(Refine)
FORMS: tuple[Form, ...] = get_args(Form)


MOST_WEIGHTS = 4096
"""Longer lists are refused: a solver's minute, and a page of a spec."""

LARGEST = 1e9
"""Only how many times a weight is another one counts; squares of these are far from the ends of all floats."""

WIDEST = 1000.0
"""The largest weight is at most so many times the smallest, so that all shares are far from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the spec says of the strategy; None is left to the planner.

    Attributes:
        branching, height, refine: of a tree.
        form: of a Toeplitz factorisation.
        weights: of the windows, for levels by themselves; from the first one again where there are more windows.
    """

    name: Name = "auto"
    branching: int | None = None
    height: int | None = None
    refine: Refine | None = None
    form: Form | None = None
    weights: tuple[float, ...] | None = None


def check_weights(weights: Sequence[float]) -> None:
    """
    Raises:
        ValueError: weights that no budget is spread by.
    """
    if not 1 <= len(weights) <= MOST_WEIGHTS:
        raise ValueError(f"weights: expected 1 to {MOST_WEIGHTS:,} of them, not {len(weights):,}")
    if not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise ValueError("weights: must be above 0: every window is published; for fewer take longer windows")
    if max(weights) > LARGEST or min(weights) < 1 / LARGEST:
        raise ValueError(f"weights: must be between {1 / LARGEST:g} and {LARGEST:g}; how many times as large counts")
    if max(weights) > WIDEST * min(weights):
        raise ValueError(f"weights: the largest may be {WIDEST:g} times the smallest at most")
