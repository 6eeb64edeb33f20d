"""Exact privacy loss of adaptive publication on small histograms, from the decisions of the program itself.

The probability that levels are published as given flags and values has a closed form, except for the rule that decides.
That rule is asked: for each window the least noise with which it samples is found by bisection, with a threshold's
noise of 0; a threshold's noise of r moves it by r. The sum over r is exact up to the tails beyond `REACH` scales.

`wrong_decisions` checks what the sum assumes, one decision after the other.

Only for rules that compare a noisy distance with a noisy threshold, and samples with noise in each cell, which for
`log_chance` is Laplace noise.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from privacy.adaptive.base import Rule, Stepped
from privacy.adaptive.carry import AdaptiveCarry
from privacy.adaptive.scales import Scales
from privacy.bisection import last_holding
from privacy.cells.base import Sketcher
from privacy.noise.choices import PrivateChoice
from privacy.noise.distributions import DiscreteLaplace, NoiseDistribution
from privacy.series import Ints
from privacy.strategies.base import Floats

CERTAIN = 2**50
"""Noise that decides any comparison."""

REACH = 60

NEGLIGIBLE = 30
"""Logarithm of the share of a sum that its last terms may have at most."""

MOVED = 1000
"""Noise of a threshold that must move a decision by as much."""


@dataclass(slots=True)
class _Chosen:
    """Source of chosen noise. Requests for one number are for the threshold, if it is fresh, then for a distance."""

    fresh: bool
    distance: int
    threshold: int
    cells: Ints
    asked: dict[str, NoiseDistribution | PrivateChoice] = field(default_factory=dict)

    def __call__(self, distribution: NoiseDistribution | PrivateChoice, size: int) -> Ints:
        if size > 1:
            self.asked["sample"] = distribution
            return self.cells
        if self.fresh and not self.asked:
            self.asked["threshold"] = distribution
            return np.array([self.threshold])
        self.asked["distance"] = distribution
        return np.array([self.distance])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A window that is published with chosen noise.

    Attributes:
        rule, scales, over: As of `log_chance`.
        carry: Carry of the window before; None before the first.
        level: Exact level, int64 [cells].
        value: Published values if it is sampled, int64 [cells].
    """

    rule: Rule
    scales: Scales
    over: Sketcher
    carry: AdaptiveCarry | None
    level: Ints
    value: Ints

    @property
    def fresh(self) -> bool:
        return self.scales.threshold is not None and (self.carry is None or self.carry.rho is None)

    def step(self, distance: int, threshold: int = 0) -> tuple[Stepped, dict[str, NoiseDistribution | PrivateChoice]]:
        """Publish it; return the result, and the distributions of the noise, by its purpose."""
        chosen = _Chosen(self.fresh, distance, threshold, self.value - self.level)
        found = self.rule.publication.step(self.scales, self.over, self.carry, self.level, chosen)
        return found, chosen.asked

    def least(self, threshold: int = 0) -> int:
        """Return the least noise with which a sample is taken."""

        def sampled(noise: int) -> bool:
            return self.step(noise, threshold)[0].units > 0

        return last_holding(sampled, CERTAIN, -CERTAIN, near=lambda good, bad: good - bad <= 1, whole=True)


def log_chance(rule: Rule, scales: Scales, over: Sketcher, levels: Ints, flags: Sequence[bool], values: Ints) -> float:
    """Return the logarithm of the probability that levels are published with these flags and values.

    Args:
        rule: The rule that decides.
        scales: Scales of its noise.
        over: Makes samples: each cell has its own noise. At least two cells.
        levels: Exact levels, int64 [windows, cells].
        flags: Whether each window is sampled.
        values: Published values of sampled windows, int64 [windows, cells].

    Returns:
        Not a number if it is too small for the sum over a threshold's noise.
    """
    carry: AdaptiveCarry | None = None
    total, held = 0.0, None
    support = _support(scales)
    for level, flag, value in zip(levels, flags, values, strict=True):
        window = _Window(rule=rule, scales=scales, over=over, carry=carry, level=level, value=value)
        found, asked = window.step(CERTAIN if flag else -CERTAIN)
        if (found.units > 0) != flag:
            return -math.inf
        if "threshold" in asked:
            held = _log_mass(support, scales.threshold or 1)
        if "distance" in asked:
            least = window.least()
            shift = support if held is not None else np.zeros(1, dtype=np.int64)
            above = _log_at_least(least + shift, scales.test or 1)
            below = _log_at_least(1 - least - shift, scales.test or 1)
            held = (0 if held is None else held) + (above if flag else below)
            if scales.threshold is None:
                total, held = total + float(held[0]), None
        if flag:
            total += float(_log_mass(value - level, scales.sample(found.units).scale).sum())
        carry = found.carry
        if held is not None and carry.rho is None:
            total, held = total + _log_sum(held), None
    return total if held is None else total + _log_sum(held)


def wrong_decisions(
    rule: Rule, scales: Scales, over: Sketcher, levels: tuple[Ints, Ints], flags: Sequence[bool], values: Ints
) -> Iterator[str]:
    """Yield what is wrong with single decisions between two neighbours that are published alike.

    A decision must depend on its own noise and move exactly with the threshold's noise, both of the stated scales. The
    distance must not move by more than the sensitivity.

    Args:
        rule, scales, over, flags, values: As of `log_chance`.
        levels: Exact levels of both neighbours, each int64 [windows, cells].
    """
    carry: AdaptiveCarry | None = None
    for one, two, flag, value in zip(*levels, flags, values, strict=True):
        window, other = (
            _Window(rule=rule, scales=scales, over=over, carry=carry, level=level, value=value) for level in (one, two)
        )
        found, asked = window.step(CERTAIN if flag else -CERTAIN)
        if (found.units > 0) != flag and "distance" not in asked:
            return  # the rule decides without the data
        wanted: dict[str, NoiseDistribution] = {
            **({"threshold": DiscreteLaplace(scales.threshold)} if scales.threshold is not None else {}),
            **({"distance": DiscreteLaplace(scales.test)} if scales.test is not None else {}),
            **({"sample": scales.sample(found.units)} if found.units else {}),
        }
        yield from (f"the noise of a {name} is {law}" for name, law in asked.items() if law != wanted.get(name))
        if "distance" in asked:
            if not window.step(CERTAIN)[0].units or window.step(-CERTAIN)[0].units:
                yield "a decision does not depend on its own noise"
                return
            least = window.least()
            if (apart := abs(other.least() - least)) > scales.sensitivity:
                yield f"a decision moves by {apart} between neighbours, and the plan allows {scales.sensitivity}"
            if "threshold" in asked and window.least(MOVED) != least + MOVED:
                yield "a decision does not move with the noise of its threshold"
        carry = found.carry


def work(scales: Scales) -> int:
    """Return the number of values of a threshold's noise over which `log_chance` adds up."""
    return 2 * REACH * math.ceil(max(scales.threshold or 0, scales.test or 0, 1)) + 1


def _support(scales: Scales) -> Ints:
    reach = work(scales) // 2
    return np.arange(-reach, reach + 1)


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
    """Return the logarithm of a sum over a threshold's noise; not a number if terms beyond `REACH` would matter.

    The terms are log-concave in the noise, so those beyond an end are negligible if the last one is.
    """
    top = float(logs.max())
    if max(float(logs[0]), float(logs[-1])) > top - NEGLIGIBLE:
        return math.nan
    return top + math.log(float(np.exp(logs - top).sum()))
