"""Exact privacy loss of adaptive publication on small histograms, from the decisions of the program itself.

The probability that levels are published as given flags and values has a closed form, except for the rule that decides.
That rule is asked: for each window the least noise with which it samples is found by bisection, with a threshold's
noise of 0; a threshold's noise of r moves it by r. The sum over r is exact up to the tails beyond `REACH` scales.

Only for samples with Laplace noise in each cell, and for rules that compare a noisy distance with a noisy threshold.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from privacy.adaptive.base import Rule
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.scales import Scales
from privacy.bisection import last_holding
from privacy.cells.base import Sketcher
from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import NoiseDistribution
from privacy.series import Ints
from privacy.strategies.base import Floats

CERTAIN = 2**50
"""Noise that decides any comparison."""

REACH = 60


@dataclass(slots=True)
class _Chosen:
    """Source of chosen noise. Requests for one number are for the threshold, if it is fresh, then for a distance."""

    fresh: bool
    distance: int
    cells: Ints
    asked: list[str] = field(default_factory=list)

    def __call__(self, distribution: NoiseDistribution | PrivateChoice, size: int) -> Ints:
        if size > 1:
            return self.cells
        if self.fresh and not self.asked:
            self.asked.append("threshold")
            return np.zeros(1, dtype=np.int64)
        self.asked.append("distance")
        return np.array([self.distance])


def log_chance(rule: Rule, scales: Scales, over: Sketcher, levels: Ints, flags: Sequence[bool], values: Ints) -> float:
    """Return the logarithm of the probability that levels are published with these flags and values.

    Args:
        rule: The rule that decides.
        scales: Scales of its noise.
        over: Makes samples: each cell has its own noise. At least two cells.
        levels: Exact levels, int64 [windows, cells].
        flags: Whether each window is sampled.
        values: Published values of sampled windows, int64 [windows, cells].
    """
    carry: AdaptiveCarry | None = None
    total, held = 0.0, None
    reach = REACH * math.ceil(max(scales.threshold or 0, scales.test or 0, 1))
    support = np.arange(-reach, reach + 1)
    for level, flag, value in zip(levels, flags, values, strict=True):
        fresh = scales.threshold is not None and (carry is None or carry.rho is None)

        def stepped(
            noise: int, before: AdaptiveCarry | None = carry, now: Ints = level, told: Ints = value, new: bool = fresh
        ) -> tuple[int, AdaptiveCarry, list[str]]:
            chosen = _Chosen(new, noise, told - now)
            found = rule.publication.step(scales, over, before, now, chosen)
            return found.units, found.carry, chosen.asked

        units, after, asked = stepped(CERTAIN if flag else -CERTAIN)
        if (units > 0) != flag:
            return -math.inf
        if "threshold" in asked:
            held = _log_mass(support, scales.threshold or 1)
        if "distance" in asked:
            least = _least(lambda noise, run=stepped: run(noise)[0] > 0)  # type: ignore[misc]
            shift = support if held is not None else np.zeros(1, dtype=np.int64)
            above = _log_at_least(least + shift, scales.test or 1)
            below = _log_at_least(1 - least - shift, scales.test or 1)
            held = (0 if held is None else held) + (above if flag else below)
            if scales.threshold is None:
                total, held = total + float(held[0]), None
        if flag:
            total += float(_log_mass(value - level, scales.sample(units).scale).sum())
        carry = after
        if held is not None and carry.rho is None:
            total, held = total + _log_sum(held), None
    return total if held is None else total + _log_sum(held)


def _least(above: Callable[[int], bool]) -> int:
    """Return the least noise with which a window is sampled."""
    return last_holding(above, CERTAIN, -CERTAIN, near=lambda good, bad: good - bad <= 1, whole=True)


def _log_mass(n: Ints, scale: float) -> Floats:
    """Return ln Pr[N = n] of discrete Laplace noise."""
    found: Floats = math.log(math.tanh(1 / (2 * scale))) - np.abs(n) / scale
    return found


def _log_at_least(k: Ints, scale: float) -> Floats:
    """Return ln Pr[N >= k] of discrete Laplace noise."""
    lost = -math.log1p(math.exp(-1 / scale))
    found: Floats = np.where(k >= 1, lost - k / scale, np.log1p(-np.exp(lost - (1 - np.minimum(k, 1)) / scale)))
    return found


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
