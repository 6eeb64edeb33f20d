"""Distributions of noise: exact variances, and intervals compared with exact convolutions."""

import math
import pickle

import numpy as np
import pytest
from numpy.typing import NDArray

from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace

SCALES = (0.3, 0.9, 1.0, 2.5, 20.0)
DISTRIBUTIONS = (DiscreteLaplace, DiscreteGaussian)


def distribution(noise: DiscreteLaplace | DiscreteGaussian) -> NDArray[np.float64]:
    """Return probabilities of -m..m, without less than 1e-20."""
    reach = math.ceil(60 * noise.scale) + 12
    values = np.arange(-reach, reach + 1)
    if isinstance(noise, DiscreteLaplace):
        weights = np.exp(-np.abs(values) / noise.scale)
    else:
        weights = np.exp(-((values / noise.scale) ** 2) / 2)
    return weights / weights.sum()


def sum_distribution(noise: DiscreteLaplace | DiscreteGaussian, terms: int) -> NDArray[np.float64]:
    """Return the probabilities of the sum of independent draws, by repeated convolution."""
    single = total = distribution(noise)
    for _ in range(terms - 1):
        total = np.convolve(total, single)
        spare = (len(total) - 1) // 2 - math.ceil(60 * noise.scale * math.sqrt(terms)) - 12
        if spare > 0:
            total = total[spare:-spare]
    return total


def coverage(probabilities: NDArray[np.float64], half_width: float) -> float:
    middle, whole = len(probabilities) // 2, math.floor(half_width)
    return math.fsum(probabilities[max(0, middle - whole) : middle + whole + 1])


@pytest.mark.parametrize("make", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", [0.05, *SCALES])
def test_the_variance_is_that_of_the_distribution(make, scale):
    probabilities = distribution(make(scale))
    values = np.arange(len(probabilities)) - len(probabilities) // 2

    assert make(scale).variance == pytest.approx(float(probabilities @ values**2), rel=1e-9)


def test_wide_noise_has_the_variance_of_the_continuous_distribution():
    assert DiscreteLaplace(2.0**26).variance == pytest.approx(2 * 2.0**52, rel=1e-9)
    assert DiscreteGaussian(2.0**26).variance == pytest.approx(2.0**52, rel=1e-12)


@pytest.mark.parametrize("make", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", [20.0, 2.0**30])
def test_samples_have_the_variance_of_the_distribution(make, scale):
    """A quick check that `noise` samples this scale; tests/statistical compares all probabilities.

    The mean of 20,000 squares differs from the variance by a quarter, 15 of its standard deviations, with probability
    below 1e-9. Half of the scale has a quarter of the variance.
    """
    noise = make(scale)
    drawn = noise.noise(20_000).astype(np.float64)

    assert np.mean(drawn**2) == pytest.approx(noise.variance, rel=0.25)


@pytest.mark.few(19)
@pytest.mark.parametrize("make", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("terms", [1, 2, 3, 10, 60])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_interval_has_the_stated_coverage_and_little_more(make, scale, terms, confidence):
    noise = make(scale)
    probabilities = sum_distribution(noise, terms)

    half_width = noise.half_width(terms, confidence)

    assert coverage(probabilities, half_width) >= confidence
    # Narrow discrete noise varies less than the continuous distribution that sums are priced by.
    spare = 2 + 0.06 * half_width if scale < 2 else 2
    assert scale < 0.9 or half_width < spare or coverage(probabilities, half_width - spare) < confidence


@pytest.mark.parametrize("scale", SCALES)
def test_the_interval_of_one_laplace_draw_is_the_smallest(scale):
    half_width = DiscreteLaplace(scale).half_width(1)

    assert half_width == 0 or coverage(distribution(DiscreteLaplace(scale)), half_width - 1) < 0.95


def test_the_interval_of_two_laplace_draws_agrees_with_the_closed_form():
    # Pr[|L1 + L2| > h] = exp(-h) (1 + h / 2) for two Laplace(1) variables.
    for confidence in (0.5, 0.95, 0.999999):
        h = DiscreteLaplace(2.0**40).half_width(2, confidence) / 2.0**40

        assert math.exp(-h) * (1 + h / 2) == pytest.approx(1 - confidence, rel=1e-6)


@pytest.mark.parametrize("make", DISTRIBUTIONS)
def test_intervals_widen_with_terms_and_with_confidence(make):
    noise = make(1000.0)

    by_terms = [noise.half_width(terms) for terms in (1, 2, 3, 5, 10, 100, 1_000, 10_000)]
    by_confidence = [noise.half_width(5, c) for c in (0.5, 0.9, 0.99, 0.999999)]

    assert by_terms == sorted(set(by_terms))
    assert by_confidence == sorted(set(by_confidence))


@pytest.mark.parametrize("make", DISTRIBUTIONS)
def test_many_terms_are_nearly_normal(make):
    noise = make(1000.0)

    half_width = noise.half_width(10_000)

    assert half_width == pytest.approx(1.959964 * math.sqrt(10_000 * noise.variance), rel=1e-3)


@pytest.mark.parametrize("make", DISTRIBUTIONS)
def test_a_mechanism_is_a_value(make):
    noise = make(2.5)

    assert pickle.loads(pickle.dumps(noise)) == noise == make(2.5)  # noqa: S301 - our own
    assert noise.noise(4).shape == (4,)
    with pytest.raises(AttributeError):
        noise.scale = 1.0


@pytest.mark.parametrize("make", DISTRIBUTIONS)
def test_wrong_parameters_are_refused(make):
    with pytest.raises(ValueError, match=r"scale: expected a number above 0"):
        make(0)
    with pytest.raises(ValueError, match=r"terms: expected at least 1, not 0"):
        make(1.0).half_width(0)
    with pytest.raises(ValueError, match=r"confidence: expected a number below 1"):
        make(1.0).half_width(1, 1.0)
