"""Adaptive publication with chosen noise: the cost of a run is computed, not sampled."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from privacy.adaptive.base import Rule
from privacy.adaptive.carry import AdaptiveCarry, Ints
from privacy.adaptive.samples import Sample
from privacy.adaptive.scales import Scales
from privacy.adaptive.spending import offered
from privacy.cells.base import Reading
from privacy.cells.each import Each
from privacy.noise.distributions import DiscreteLaplace
from privacy.noise.kinds import NOISE

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CERTAIN = 1 << 50
"""Noise that decides any test."""


@dataclass
class Chosen:
    """Chosen noise that records the requests: `threshold`, `test`, or the scale of a sample."""

    scales: Scales
    rho: int = 0
    nu: int = 0
    cells: Ints | None = None
    asked: list[str | float] = field(default_factory=list)

    def __call__(self, distribution: DiscreteLaplace, size: int) -> Ints:
        if distribution.scale in (self.scales.threshold, self.scales.test):
            assert size == 1
            role = "threshold" if distribution.scale == self.scales.threshold else "test"
            self.asked.append(role)
            return np.array([self.rho if role == "threshold" else self.nu])
        self.asked.append(distribution.scale)
        return np.zeros(size, dtype=np.int64) if self.cells is None else self.cells


def step(
    rule: Rule, scales: Scales, carry: AdaptiveCarry | None, levels: Ints, sample: Sample
) -> tuple[Flags, Ints, AdaptiveCarry]:
    """Return what some windows publish if each cell has separate noise: flags, values and the carry."""
    flags, values = np.zeros(len(levels), dtype=np.bool_), np.empty_like(levels)
    for row, level in enumerate(levels):
        found = rule.publication.step(scales, Each(cells=levels.shape[1]), carry, level, sample)
        flags[row], values[row], carry = found.units > 0, found.reading.cells, found.carry
    assert carry is not None
    return flags, values, carry


def offset(
    rule: Rule,
    scales: Scales,
    carry: AdaptiveCarry,
    *,
    units: int,
    cells: int,
    reading: Reading | None = None,
) -> int:
    """Return the value with which a noisy distance is compared in the next window."""
    noise = scales.sample(units)
    if reading is not None:
        return rule.publication.offset(scales, carry, reading.mean_norm * noise.variance**0.5, reading.root)
    floor = cells * NOISE[scales.noise].mean_size(noise.scale)
    return rule.publication.offset(scales, carry, floor, math.sqrt(cells))


def at_or_above(k: Floats | float, scale: float) -> Floats:
    """Return ln Pr[N >= k] of discrete Laplace noise, for an integer k."""
    k = np.asarray(k, dtype=float)
    lost = -math.log1p(math.exp(-1 / scale))
    return np.where(k >= 1, lost - k / scale, np.log1p(-np.exp(lost - (1 - np.minimum(k, 1)) / scale)))


def mass(n: Floats | float, scale: float) -> Floats:
    """Return ln Pr[N = n]."""
    return math.log(math.tanh(1 / (2 * scale))) - np.abs(np.asarray(n, dtype=float)) / scale


def log_chance(
    rule: Rule,
    scales: Scales,
    stream: Ints,
    flags: Sequence[bool],
    values: Ints,
    *,
    resampled: bool = True,
    samples: bool = True,
) -> float:
    """Return ln of the exact probability that a stream [windows, 1] is published as these flags and values.

    Every decision comes from `step` itself: the least noise with which it is 'above'. The sum runs over the threshold's
    noise, which only moves this least noise.

    Args:
        resampled: False for a mechanism that never samples the threshold's noise again.
        samples: False for the loss of decisions alone.
    """
    reach = 150 * math.ceil(max(scales.threshold or 0, scales.test or 0))
    support = np.arange(-reach, reach + 1.0)
    carry: AdaptiveCarry | None = None
    total, weights = 0.0, None
    for window, level in enumerate(stream):

        def tried(
            nu: int, before: AdaptiveCarry | None = carry, now: Ints = level, at: int = window
        ) -> tuple[bool, AdaptiveCarry, list]:
            noise = Chosen(scales, nu=nu, cells=values[at] - now)
            found, _, left = step(rule, scales, before, now[None, :], noise)
            return bool(found[0]), left, noise.asked

        flag, left, asked = tried(CERTAIN if flags[window] else -CERTAIN)
        if flag != flags[window]:
            return -math.inf
        if "test" in asked and carry is not None:
            assert scales.test is not None
            if "threshold" in asked:
                assert scales.threshold is not None
                total += added_up(weights)
                weights = mass(support, scales.threshold)
            least = offset(rule, scales, carry, units=offered(rule, carry), cells=1)
            least -= int(abs(level - carry.published).sum())
            assert (tried(least - 1)[0], tried(least)[0]) == (False, True)
            shift = support if scales.threshold is not None else np.zeros(1)
            if carry.rho is not None and scales.threshold is not None:
                for more in (7, -CERTAIN // 8):
                    other = replace(carry, rho=carry.rho + more)
                    assert (tried(least + more - 1, other)[0], tried(least + more, other)[0]) == (False, True)
            answer = at_or_above(least + shift, scales.test)
            if not flag:
                answer = at_or_above(1 - (least + shift), scales.test)
            if scales.threshold is None:
                total += float(answer[0])
            elif weights is not None:
                weights = weights + answer
        if flag and samples:
            assert scales.noise == "laplace"
            total += float(mass(values[window] - level, float(asked[-1])).sum())
        carry = left if resampled or left.rho is not None or carry is None else replace(left, rho=carry.rho)
    return total + added_up(weights)


def added_up(weights: Floats | None) -> float:
    """Return ln of the sum over the noise of a threshold; values beyond the ends are negligible."""
    if weights is None:
        return 0.0
    assert max(weights[0], weights[-1]) < weights.max() - 30
    return float(logsumexp(weights))


def played(rule: Rule, scales: Scales, answers: Sequence[tuple[bool, int, int]]) -> tuple[Ints, Ints, list[bool], Ints]:
    """Return two streams of one cell, and how both are published, with flags as close to `answers` as possible.

    Args:
        answers: by window: whether it is sampled, the distance beyond the offset, the distance of the two streams.
    """
    carry, one, other, flags, values = None, [], [], [], []
    for sampled, beyond, apart in answers:
        at = 0
        if carry is not None:
            units = offered(rule, carry)
            compared = offset(rule, scales, carry, units=units, cells=1) if units else 0
            at = int(carry.published[0]) + max(compared + beyond, 10 * scales.sensitivity)
        noise = Chosen(scales, nu=CERTAIN if sampled else -CERTAIN)
        found, told, carry = step(rule, scales, carry, np.array([[at]]), noise)
        # More distance makes 'below' less likely, less makes 'above' less likely, and samples hit the first stream.
        one.append([at])
        other.append([at - apart if found[0] else at + apart])
        flags.append(bool(found[0]))
        values.append(told[0])
    return np.array(one), np.array(other), flags, np.array(values)


def chances(scores: list[int], scale: float) -> list[float]:
    """Return the probability of each place by permute and flip, from all orders of the places."""
    coins = [math.exp((score - max(scores)) / scale) for score in scores]
    found = [0.0] * len(scores)
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for place in order:
            found[place] += left * coins[place]
            left *= 1 - coins[place]
    return [chance / math.factorial(len(scores)) for chance in found]
