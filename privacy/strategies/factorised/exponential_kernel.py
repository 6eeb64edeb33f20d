"""Filters that are sums of exponentials (arma), with one state for each exponential, in integer arithmetic.

c = sum_i u_i / (1 - t_i x), t_i = 1 - a_i / 2^b_i, integers u_i with sum 2^16, and one state for each i:

    s_i <- s_i - floor(a_i s_i / 2^b_i) + 2^g x,    y = floor(sum_i u_i s_i / 2^(16 + g) + 1/2).

Between neighbours s_i differs by the linear response to z, plus d_i with d_i <- t_i d_i + e, |e| < 1, so that
|d_i| < 1 / (1 - t_i); e = 0 for t_i = 1 and t_i = 0. So the nodes differ by C z and at most
1 + sum_i u_i / (2^(16 + g) (1 - t_i)) steps each, the sum over 0 < t_i < 1.

g are the guard bits: 8, and fewer where a unit's state is larger than 2^24 steps. So rounding costs the same share of
the sensitivity, and there is room for larger levels. If no level exceeds 2^(61 - g) steps, no s_i exceeds 2^62, since
it is a level minus a weighted mean of earlier ones.

    states   int64: forward, exact, one for each exponential
    decays   float64: back, one for each term of 1 / ((1 - x) c(x))
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from privacy.series import Ints
from privacy.strategies.base import Floats
from privacy.strategies.factorised import coefficients as series
from privacy.strategies.factorised.kernel import Integers, Reals
from privacy.strategies.factorised.step import LARGEST

Pole = tuple[int, int, int]
"""(a, b, u): the exponential u / 2^16 * t^j with t = 1 - a / 2^b."""

WEIGHT = 16
"""Number of bits of an exponential's weight after the binary point."""

GUARD = 8
"""Most bits of an exponential's state below one step."""

STATE = 24
"""Bits of a unit's state up to which all guard bits are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponentials:
    """Filter that is a sum of exponentials (privacy.strategies.factorised.kernel.Kernel).

    Attributes:
        poles: the exponentials; the first is (0, 0, u), the level, and the last (1, 0, u), the current leaf.
        guard: number of bits of an exponential's state below one step.
    """

    form: ClassVar[str] = "arma"
    endless: ClassVar[bool] = False
    bounded: ClassVar[bool] = True
    poles: tuple[Pole, ...]
    guard: int = GUARD

    def __post_init__(self) -> None:
        _check(self.poles)
        if not 0 <= self.guard <= GUARD:
            raise ValueError(f"guard={self.guard}: from 0 to {GUARD} bits")

    @property
    def parameters(self) -> dict[str, Any]:
        return {"form": self.form, "poles": [list(pole) for pole in self.poles]}

    def settled(self, horizon: int | None) -> "Exponentials":
        return self

    def sized(self, size: int) -> "Exponentials":
        """Return the filter with the guard bits for which a state of a unit leaves room.

        >>> found = Exponentials(poles=((0, 0, 2**15), (1, 0, 2**15)))
        >>> [found.sized(size).guard for size in (1, 2**24, 2**24 * 17, 2**40)]
        [8, 8, 4, 0]
        """
        return replace(self, guard=min(GUARD, max(0, GUARD + STATE + 1 - size.bit_length())))

    def coefficients(self, horizon: int | None) -> Floats:
        assert horizon is not None
        return series.exponentials(horizon, *_exponentials(self.poles))

    def response(self, leaves: int, horizon: int | None) -> Floats:
        return _response(self.poles, leaves)

    def rounding(self, changes: int, horizon: int | None) -> float:
        assert horizon is not None
        slow = math.fsum(u * 2.0 ** (b - WEIGHT - self.guard) / a for a, b, u in self.poles if 0 < a < 2**b)
        return math.sqrt(horizon) * (1 + slow)

    def start(self, cells: int) -> tuple[Integers, Reals]:
        states = np.zeros((len(self.poles), cells), dtype=np.int64)
        return {"states": states}, {"decays": np.zeros((len(self.poles) - 1, cells))}

    def remembered(self, leaves: int, horizon: int | None) -> int:
        return len(self.poles) + len(self.poles) - 1

    def forward(self, kept: Integers, leaves: Ints, horizon: int | None) -> tuple[Ints, Integers]:
        """Return the nodes of leaves (`Kernel.forward`)."""
        nodes, states = forward_by_states(self.poles, self.guard, kept["states"], leaves)
        return nodes, {"states": states}

    def back(self, kept: Reals, level: Floats, noisy: Floats, horizon: int | None) -> tuple[Floats, Reals]:
        """Return levels from noisy nodes (`Kernel.back`)."""
        levels, decays = back_by_decays(*_decays(self.poles), kept["decays"], noisy)
        return levels, {"decays": decays}


def _check(poles: tuple[Pole, ...]) -> None:
    if len(poles) < 2 or poles[0][:2] != (0, 0) or poles[-1][:2] != (1, 0):
        raise ValueError("poles: at least two, the first (0, 0, weight), the last (1, 0, weight)")
    if any(not (0 < a < 2**8 and 0 <= b <= 40) for a, b, _ in poles[1:]):
        raise ValueError("poles: (a, b, weight) with 0 < a < 2^8 and 0 <= b <= 40")
    gaps = [a / 2.0**b for a, b, _ in poles]
    if any(after <= gap for gap, after in pairwise(gaps)):
        raise ValueError("poles: a / 2^b must rise from 0 to 1")
    if any(u < 1 for _, _, u in poles) or sum(u for _, _, u in poles) != 2**WEIGHT:
        raise ValueError("poles: weights are positive with sum 2^16")


def _exponentials(poles: tuple[Pole, ...]) -> tuple[Floats, Floats]:
    """Return the weights u_i and the gaps 1 - t_i."""
    return (
        np.array([u / 2.0**WEIGHT for _, _, u in poles]),
        np.array([a / 2.0**b for a, b, _ in poles]),
    )


@lru_cache(maxsize=16)
def _decays(poles: tuple[Pole, ...]) -> tuple[Floats, Floats]:
    """Return the weights and gaps of the exponentials of 1 / ((1 - x) c(x))."""
    return series.decays(*_exponentials(poles))


@lru_cache(maxsize=16)
def _response(poles: tuple[Pole, ...], leaves: int) -> Floats:
    return series.exponentials(leaves, *_decays(poles))


def forward_by_states(poles: Sequence[Pole], guard: int, states: Ints, leaves: Ints) -> tuple[Ints, Ints]:
    """Return the nodes of leaves, int64 [rows, cells], and the states after them, int64 [poles, cells].

    Args:
        poles: the exponentials.
        guard: number of bits of a state below one step.
        states: int64 [poles, cells], states before the leaves.
        leaves: int64 [rows, cells].

    Raises:
        OverflowError: a level exceeds the range of 64 bits.
    """
    a, b, u = np.array(poles, dtype=np.int64).T[:, :, None]
    levels = (states[0] >> guard) + np.cumsum(leaves, axis=0)
    if levels.size and max(-int(levels.min()), int(levels.max())) > LARGEST >> guard:
        raise OverflowError(f"a level exceeds 2^{(LARGEST >> guard).bit_length() - 1} steps; use a coarser grid")
    nodes = np.empty_like(leaves)
    below, digits = (np.int64(1) << b) - 1, WEIGHT + guard
    for row, leaf in enumerate(leaves):
        # floor(a s / 2^b) and floor(u s / 2^digits) in two parts, since a s and u s would not fit.
        states = states - a * (states >> b) - (a * (states & below) >> b) + (leaf << guard)
        rest = (u * (states & (2**digits - 1))).sum(axis=0)
        nodes[row] = (u * (states >> digits)).sum(axis=0) + (rest + 2 ** (digits - 1) >> digits)
    return nodes, states


def back_by_decays(weights: Floats, gaps: Floats, decays: Floats, noisy: Floats) -> tuple[Floats, Floats]:
    """Return levels from noisy nodes: the sum of weights times exponentials, each with its own state.

    Args:
        weights, gaps: float64 [terms], of 1 / ((1 - x) c(x)).
        decays: float64 [terms, cells], states before the nodes.
        noisy: float64 [rows, cells], noisy nodes.

    Returns:
        Levels [rows, cells] and the states after them.
    """
    levels = np.empty_like(noisy)
    for row, node in enumerate(noisy):
        decays = node - (gaps - 1)[:, None] * decays
        levels[row] = weights[0] * decays[0]
        for weight, decay in zip(weights[1:], decays[1:], strict=True):
            levels[row] += weight * decay
    return levels, decays
