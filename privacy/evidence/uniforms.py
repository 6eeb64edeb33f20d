"""Tests of noise: scale, shape, signs, low bits and independence, for samples of any mixture of scales.

A sample N of a symmetric distribution becomes T = Pr[|M| > |N|] + (1 - V) Pr[|M| = |N|], with M of the stated
distribution and V uniform on [0, 1). If N has exactly this distribution, T is exactly uniform, so samples of
different scales are tested together. If noise is too narrow, -log T is too small: in proportion for Laplace noise.

    scale           mean of -log T, which is 1         Chernoff's bound for exponential variables
    shape           distribution of T                  Dvoretzky, Kiefer, Wolfowitz with Massart's constant
    signs           mean of the signs                  Hoeffding's inequality
    low bits        means of the last bits             Hoeffding's inequality, for scales of at least `WIDE`
    independence    products of signs at some lags     Azuma's inequality

All bounds hold for each number of samples.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privacy.bisection import last_holding
from privacy.noise.distributions import NoiseDistribution
from privacy.series import Ints
from privacy.strategies.base import Floats

WIDE = 64.0
"""Least scale, in steps, whose low bits are tested: each is fair to within 0.002."""

BITS = 3
LAGS = (1, 2, 7)
TESTS = 4 + BITS + len(LAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """Result of one test.

    Attributes:
        name: what was tested.
        samples: number of samples.
        found: deviation that was found.
        allowed: deviation that correct noise exceeds with at most the stated probability.
    """

    name: str
    samples: int
    found: float
    allowed: float

    @property
    def passed(self) -> bool:
        """Whether the deviation is one of correct noise."""
        return self.found <= self.allowed


def tails(noise: Ints, distribution: NoiseDistribution, uniform: Floats) -> Floats:
    """Return T of the module's docstring, float64 [samples], each above 0.

    Args:
        noise: samples, int64 [samples].
        distribution: the distribution that the plan states.
        uniform: V, independent and uniform on [0, 1), float64 [samples].

    >>> from privacy.noise.distributions import DiscreteLaplace
    >>> tails(np.array([0, 1]), DiscreteLaplace(1.0), np.array([0.0, 0.0])).round(3).tolist()
    [1.0, 0.538]
    """
    size = np.abs(noise)
    if distribution.stable:
        above, here = _gaussian(size, distribution.scale)
    else:
        q = math.exp(-1 / distribution.scale)
        powers = np.exp(-size / distribution.scale) / (1 + q)
        above = 2 * q * powers
        here = powers * -math.expm1(-1 / distribution.scale) * np.where(size == 0, 1, 2)
    return np.maximum(above + (1 - uniform) * here, 1e-300)


def _gaussian(size: Ints, scale: float) -> tuple[Floats, Floats]:
    """Return Pr[|M| > size] and Pr[|M| = size] of the discrete Gaussian distribution."""
    from scipy.special import erfc  # slow to import

    if scale > 1000:  # within 1 / (40 scale^2) of the rounded normal distribution
        above = erfc((size + 0.5) / (scale * math.sqrt(2)))
        up_to = np.where(size == 0, 1.0, erfc((size - 0.5) / (scale * math.sqrt(2))))
        return above, up_to - above
    reach = max(math.ceil(40 * scale), int(size.max(initial=0))) + 1
    weights = np.exp(-((np.arange(reach + 1) / scale) ** 2) / 2)
    weights[1:] *= 2
    beyond = weights[::-1].cumsum()[::-1] / weights.sum()
    return beyond[size + 1], weights[size] / weights.sum()


def deviations(
    noise: Sequence[Ints], distributions: Sequence[NoiseDistribution], uniform: Floats, *, failure: float
) -> Iterator[Deviation]:
    """Yield the results of all tests of some arrays of noise.

    Args:
        noise: arrays of samples, each int64 [samples].
        distributions: the distribution of each array.
        uniform: as many independent uniform numbers as there are samples.
        failure: probability of a false alarm of any of these tests.
    """
    each = failure / TESTS
    cuts = np.cumsum([len(part) for part in noise])[:-1]
    parts = zip(noise, distributions, np.split(uniform, cuts), strict=True)
    found = np.concatenate([tails(part, of, v) for part, of, v in parts])
    samples = len(found)
    if samples == 0:
        return
    mean = float(-np.log(found).mean())
    yield Deviation(name="scale", samples=samples, found=abs(mean - 1), allowed=_exponential(samples, each))
    yield Deviation(name="shape", samples=samples, found=_distance(found), allowed=_dkw(samples, each))
    signs = np.sign(np.concatenate(noise)).astype(np.float64)
    yield Deviation(name="signs", samples=samples, found=abs(float(signs.mean())), allowed=_hoeffding(samples, each))
    for lag in LAGS:
        if samples > lag:
            product = abs(float((signs[lag:] * signs[:-lag]).mean()))
            yield Deviation(
                name=f"independence at lag {lag}",
                samples=samples - lag,
                found=product,
                allowed=_hoeffding(samples - lag, each),
            )
    wide = [part for part, of in zip(noise, distributions, strict=True) if of.scale >= WIDE]
    whole = np.concatenate([*wide, np.zeros(0, dtype=np.int64)])
    if len(whole):
        mixed = abs(float((np.sign(whole) * (1 - 2 * (whole & 1))).mean()))
        allowed = _hoeffding(len(whole), each) + 0.002
        yield Deviation(name="sign and bit 0", samples=len(whole), found=mixed, allowed=allowed)
    for bit in range(BITS if len(whole) else 0):
        share = abs(float(((whole >> bit) & 1).mean()) - 0.5)
        allowed = _hoeffding(len(whole), each) / 2 + 0.002
        yield Deviation(name=f"bit {bit}", samples=len(whole), found=share, allowed=allowed)


def seen(samples: int, failure: float) -> float:
    """Return the relative error of a scale that `deviations` misses with at most this probability, at most 1."""
    return min(1.0, 2 * _exponential(samples, failure / TESTS)) if samples else 1.0


def needed(error: float, failure: float) -> int:
    """Return the number of samples with which `deviations` sees a relative error of a scale.

    >>> 50_000 < needed(0.05, 1e-6) < 80_000
    True
    """
    half = error / 2
    return math.ceil(math.log(2 * TESTS / failure) / (half - math.log1p(half)))


def _exponential(samples: int, failure: float) -> float:
    """Return t with Pr[|mean - 1| > t] <= failure, for the mean of independent exponential variables of mean 1.

    Pr[mean > 1 + t] <= exp(-n (t - log(1 + t))), and Pr[mean < 1 - t] is less.
    """
    wanted = math.log(2 / failure) / samples

    def within(t: float) -> bool:
        return t - math.log1p(t) >= wanted

    return last_holding(within, 2 * wanted + 2 * math.sqrt(wanted) + 1, 0.0, near=lambda good, bad: good - bad < 1e-9)


def _dkw(samples: int, failure: float) -> float:
    return math.sqrt(math.log(2 / failure) / (2 * samples))


def _hoeffding(samples: int, failure: float) -> float:
    return math.sqrt(2 * math.log(2 / failure) / samples)


def _distance(uniform: Floats) -> float:
    """Return sup |F_n - F| for the uniform distribution."""
    ordered, places = np.sort(uniform), np.arange(len(uniform) + 1) / len(uniform)
    return float(max(np.abs(places[1:] - ordered).max(), np.abs(ordered - places[:-1]).max()))
