"""The samplers draw from their exact distributions, with fresh randomness in every run.

A correct sampler fails this module with probability at most FALSE_ALARM in all: each test divides
it among its cases. Distribution functions are compared by the Dvoretzky-Kiefer-Wolfowitz inequality
with Massart's constant, Pr[sup |F_n - F| > t] <= 2 exp(-2 n t^2), which holds for every n and every
distribution; signs by Azuma's inequality. What the tests would catch is tested too: noise 10 % too narrow
or of half the scale, noise with too few bits, and noise that repeats itself.

All tests look at one sample of each distribution: a union of failures needs no independence.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace, NoiseDistribution

FALSE_ALARM = 1e-6
TESTS = 3
N = 100_000
"""Number of draws. Noise of 0.9 times any scale has more than twice the allowed distance."""

WIDE = 2.0**26
SCALES = (0.6, 2.5, 40.0, WIDE)
DISTRIBUTIONS = (DiscreteLaplace, DiscreteGaussian)
CASES = len(SCALES) * len(DISTRIBUTIONS)

# On one worker, so that each sample is drawn once.
pytestmark = pytest.mark.xdist_group("samples of noise")

Integers = NDArray[np.int64]
Distribution = Callable[[Integers], NDArray[np.float64]]


@cache
def sample(make: Callable[[float], NoiseDistribution], scale: float) -> Integers:
    return make(scale).noise(N)


def dkw(n: int, failure: float) -> float:
    """Return a distance from the true distribution that n draws exceed with probability at most `failure`."""
    return math.sqrt(math.log(2 / failure) / (2 * n))


def laplace_distribution(scale: float) -> Distribution:
    """Pr[N <= y] = 1 - q^(y+1) / (1 + q) for y >= 0 and q^-y / (1 + q) below."""
    q = math.exp(-1 / scale)

    def distribution(y: Integers) -> NDArray[np.float64]:
        tail = np.exp(-np.where(y >= 0, y + 1, -y) / scale) / (1 + q)
        return np.where(y >= 0, 1 - tail, tail)

    return distribution


def gaussian_distribution(scale: float) -> Distribution:
    """Sums of exp(-y^2 / 2 scale^2), or the rounded normal distribution, within 1 / (42 scale^2) of it."""
    if scale > 1_000:
        return lambda y: ndtr((y + 0.5) / scale)
    reach = math.ceil(40 * scale)
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-((values / scale) ** 2) / 2)
    below = np.cumsum(weights) / weights.sum()
    return lambda y: below[np.clip(y, -reach, reach) + reach]


def distribution(noise: NoiseDistribution) -> Distribution:
    if isinstance(noise, DiscreteLaplace):
        return laplace_distribution(noise.scale)
    return gaussian_distribution(noise.scale)


def distance(drawn: Integers, expected: Distribution) -> float:
    """Return sup |F_n - F|, evaluated at every drawn value and just below it."""
    values, counts = np.unique(drawn, return_counts=True)
    empirical = np.cumsum(counts) / len(drawn)
    at = np.abs(empirical - expected(values)).max()
    below = np.abs(empirical - counts / len(drawn) - expected(values - 1)).max()
    return float(max(at, below))


@pytest.mark.parametrize("make", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", SCALES)
def test_noise_has_its_exact_distribution(make, scale):
    noise = make(scale)
    allowed = dkw(N, FALSE_ALARM / TESTS / CASES)

    assert distance(sample(make, scale), distribution(noise)) <= allowed


@pytest.mark.parametrize("make", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("narrowed", [0.5, 0.9])
def test_narrower_noise_is_detected(make, scale, narrowed):
    """The test draws noise of this scale, and expects 1 / narrowed times this scale."""
    expected = distribution(make(scale / narrowed))
    narrow = distribution(make(scale))
    allowed = dkw(N, FALSE_ALARM / TESTS / CASES)
    values = np.arange(-400, 401) * max(1, round(scale / 40))

    truly_apart = float(np.abs(narrow(values) - expected(values)).max())

    # Otherwise a run of this test could miss it with more than the same small probability.
    assert truly_apart > 2 * allowed
    assert distance(sample(make, scale), expected) > allowed


def worst_residue(drawn: Integers, modulus: int) -> float:
    return distance(drawn % modulus, lambda y: (np.clip(y, -1, modulus - 1) + 1) / modulus)


@pytest.mark.parametrize("make", DISTRIBUTIONS)
@pytest.mark.parametrize("modulus", [2, 1_000])
def test_wide_noise_is_uniform_in_its_low_digits(make, modulus):
    # Residues are uniform to within exp(-scale / modulus) by Poisson summation.
    allowed = dkw(N, FALSE_ALARM / TESTS / (2 * len(DISTRIBUTIONS)))

    assert worst_residue(sample(make, WIDE), modulus) <= allowed


def test_noise_with_too_few_bits_is_detected():
    assert worst_residue(2 * sample(DiscreteLaplace, WIDE), 2) > dkw(N, FALSE_ALARM / TESTS / (2 * len(DISTRIBUTIONS)))


def sign_agreement(drawn: Integers, lag: int) -> float:
    """Mean product of the signs of draws `lag` apart: a martingale difference in [-1, 1]."""
    signs = np.sign(drawn)
    return float(abs(np.mean(signs[lag:] * signs[:-lag])))


def agreement_allowed(n: int, failure: float) -> float:
    return math.sqrt(2 * math.log(2 / failure) / n)


LAGS = (1, 2, 8)


@pytest.mark.parametrize("make", DISTRIBUTIONS)
def test_samples_are_not_correlated_with_later_samples(make):
    drawn = sample(make, WIDE)

    for lag in LAGS:
        allowed = agreement_allowed(N - lag, FALSE_ALARM / TESTS / len(DISTRIBUTIONS) / len(LAGS))
        assert sign_agreement(drawn, lag) <= allowed


def test_repeated_samples_are_detected():
    repeated = np.repeat(sample(DiscreteGaussian, WIDE)[: N // 2], 2)

    allowed = agreement_allowed(N - 1, FALSE_ALARM / TESTS / len(DISTRIBUTIONS) / len(LAGS))
    assert sign_agreement(repeated, 1) > allowed
