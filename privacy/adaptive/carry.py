"""Carry of adaptive publication from one step to the next: private, since it contains the threshold's noise."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privacy.codec import APART

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveCarry:
    """Private state between steps. It does not grow with the windows, except for samples that a long span still holds.

    Attributes:
        windows: number of closed windows.
        published: int64 [numbers], values that the next step needs: the public numbers of the last sample, or what a
            publication carries instead.
        spent: sampled windows and their units, by window: those that still count for the budget of the next window,
            and the last one.
        rho: noise of the threshold; None if it is yet to be sampled.
        memory: further values of a rule, which are a function of public values.
    """

    windows: int
    published: Ints = field(metadata=APART)
    spent: tuple[tuple[int, int], ...]
    rho: int | None
    memory: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        at = [window for window, _ in self.spent]
        if any(before >= after for before, after in pairwise((-1, *at, self.windows))) or any(
            units < 1 for _, units in self.spent
        ):
            raise ValueError("spent: expected windows that have closed, in order, each with its units")
