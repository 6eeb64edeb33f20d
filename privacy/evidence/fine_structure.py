"""Tests of the fine structure of noise: single values near zero, and places within blocks of integers.

`uniforms` sees errors of a whole distribution. A sampler can be wrong in few values, or give all integers of a small
block the same probability, and hardly change the distribution: these tests see that.

    near zero    number of samples of each value n, |n| <= `NEAR`            Chernoff's bound for binomial numbers
    places       mean of (|N| mod m) / m for two powers m of two, of which
                 the smaller one is between scale / 32 and scale / 16        Bernstein's inequality

All bounds hold for each number of samples.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from privacy.evidence.uniforms import Deviation
from privacy.noise.distributions import NoiseDistribution
from privacy.series import Ints
from privacy.strategies.base import Floats

NEAR = 8
TESTS = 2 * NEAR + 3

AT_ONCE = 2**19
"""Samples that are made and counted together."""

_FINE_BITS = 12
"""Distributions beyond this scale, as a power of two, are summed in steps of several integers."""


@dataclass(frozen=True, slots=True)
class FineStructure:
    """Exact fine structure of a distribution.

    Attributes:
        distribution: The distribution.
        near: Pr[N = 0], ..., Pr[N = NEAR]; empty if all of these are negligible.
        places: Mean and variance of (|N| mod m) / m, by m.
    """

    distribution: NoiseDistribution
    near: tuple[float, ...] = field(init=False)
    places: dict[int, tuple[float, float]] = field(init=False)

    def __post_init__(self) -> None:
        scale = self.distribution.scale
        exponent = math.frexp(scale)[1]
        dropped = max(0, exponent - _FINE_BITS)
        weights = _weights(self.distribution, dropped)
        whole = float(weights.sum())
        near = (weights[: NEAR + 1] / whole / np.where(np.arange(NEAR + 1) == 0, 1, 2)).tolist()
        object.__setattr__(self, "near", () if dropped or len(near) <= NEAR else tuple(near))
        places = {}
        for bits in (exponent - 5, exponent - 4):
            if bits > 0:
                cells = 1 << (bits - dropped)
                of_cell = (np.arange(len(weights)) % cells + 0.5) / cells - 0.5 / 2**bits
                mean = float(weights @ of_cell) / whole
                within = 1 / (12 * cells**2) if dropped else 0.0
                places[2**bits] = mean, float(weights @ (of_cell - mean) ** 2) / whole + within
        object.__setattr__(self, "places", places)

    def deviations(self, sample: Callable[[int], Ints], samples: int, *, failure: float) -> list[Deviation]:
        """Return the results of all tests of fresh noise.

        Args:
            sample: Returns a number of fresh samples, int64 [samples].
            samples: Number of samples.
            failure: Probability of a false alarm of any of these tests.

        >>> from privacy.noise.distributions import DiscreteLaplace
        >>> fine = FineStructure(DiscreteLaplace(40.0))
        >>> all(one.passed for one in fine.deviations(DiscreteLaplace(40.0).noise, 1000, failure=1e-9))
        True
        """
        allowed, done = math.log(2 * TESTS / failure), 0
        counts, sums = np.zeros(2 * NEAR + 1, dtype=np.int64), dict.fromkeys(self.places, 0)
        while done < samples:
            noise = sample(min(AT_ONCE, samples - done))
            done += len(noise)
            near = noise[np.abs(noise) <= NEAR]
            counts += np.bincount(near + NEAR, minlength=2 * NEAR + 1)
            for block in sums:
                sums[block] += int((np.abs(noise) & (block - 1)).sum())
        found = [
            Deviation(
                name=f"frequency of {value}",
                samples=done,
                found=done * _divergence(count / done, self.near[abs(value)]),
                allowed=allowed,
            )
            for value, count in zip(range(-NEAR, NEAR + 1), counts.tolist(), strict=True)
            if self.near
        ]
        return found + [
            Deviation(
                name=f"places in blocks of {block}",
                samples=done,
                found=abs(sums[block] / block / done - mean),
                allowed=_bernstein(variance, done, allowed),
            )
            for block, (mean, variance) in self.places.items()
        ]

    def sees(self, samples: int, *, failure: float) -> tuple[float, bool]:
        """Return the power of `deviations`, for errors that it misses with at most its failure probability.

        Returns:
            The relative error of the probability of zero that it sees; and whether it sees blocks whose places are
            equally likely.
        """
        limit = math.log(2 * TESTS / failure)
        expected = samples * self.near[0] if self.near else 0.0
        zero = 2 * (math.sqrt(2 * limit / expected) + limit / expected) if expected else math.inf
        rare = 1 - (self.near[0] if self.near else 0.0)  # zero has one sign, so its place is rarer than the others
        moved = [
            abs(mean - (block - 1) / (2 * block) / rare) > 2 * _bernstein(variance, samples, limit)
            for block, (mean, variance) in self.places.items()
        ]
        return zero, any(moved)


def _weights(distribution: NoiseDistribution, dropped: int) -> Floats:
    """Return unnormalised probabilities of |N| in steps of 2^dropped integers, from 0 up."""
    width = 2.0**dropped
    reach = math.ceil((12 if distribution.stable else 45) * distribution.scale / width) + 2
    middle = (np.arange(reach) * width + (width - 1) / 2) / distribution.scale
    weights: Floats = np.exp(-(middle**2) / 2 if distribution.stable else -middle)
    weights[1:] *= 2
    weights[0] *= 2 - 1 / width  # zero has one sign
    return weights


def _bernstein(variance: float, samples: int, limit: float) -> float:
    """Return the deviation of a mean that numbers within [0, 1] exceed with probability at most 2 exp(-limit)."""
    return math.sqrt(2 * variance * limit / samples) + limit / (3 * samples)


def _divergence(found: float, expected: float) -> float:
    """Return the relative entropy of two binomial distributions."""
    parts = ((found, expected), (1 - found, 1 - expected))
    return sum(one * math.log(one / of) for one, of in parts if one > 0)
