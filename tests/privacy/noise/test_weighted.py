"""Half widths of weighted sums of noise, compared with exact convolutions and closed forms.

tests/statistical/test_coverage.py samples the noise itself.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.special import ndtri

from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace, NoiseDistribution
from privacy.noise.weighted import SMOOTH, half_width, minorant, spreads

PARTS = 20
"""Denominator of all weights here, so that a sum lies on a lattice."""

WEIGHTS = {
    "two": [1.0, 0.5],
    "two_alike": [1.0, 0.9],
    "one_heavy": [1.0, 0.25, 0.25, 0.1, 0.05],
    "tree": [1.0, 1.0, 1.0, 0.65, 0.65, 0.35, 0.35, 0.2, 0.1, 0.1, 0.05, 0.05],
    "many": [0.05 * (1 + place % 17) for place in range(40)],
    "above_one": [7.0, 3.0, 3.0, 0.5],
}


def distribution_of_sum(noise: NoiseDistribution, weights: list[float]) -> NDArray[np.float64]:
    """Return probabilities of |sum| = 0, 1, 2, ... times 1 / PARTS, exact to about 1e-12."""
    reach = math.ceil(40 * noise.scale) + 8
    values = np.arange(-reach, reach + 1)
    if isinstance(noise, DiscreteLaplace):
        single = np.exp(-np.abs(values) / noise.scale)
    else:
        single = np.exp(-((values / noise.scale) ** 2) / 2)
    total = np.ones(1)
    for weight in weights:
        step = round(weight * PARTS)
        spaced = np.zeros(2 * reach * step + 1)
        spaced[::step] = single / single.sum()
        total = fftconvolve(total, spaced)
        deviation = noise.scale * math.sqrt(2 * sum(w * w for w in weights)) * PARTS
        spare = (len(total) - 1) // 2 - math.ceil(40 * deviation)
        total = total[spare:-spare] if spare > 0 else total
    middle = len(total) // 2
    return np.concatenate([total[middle : middle + 1], 2 * total[middle + 1 :]])


def coverage(distribution: NDArray[np.float64], h: float) -> float:
    return math.fsum(distribution[: math.floor(h * PARTS * (1 + 1e-12)) + 1])


def smallest(distribution: NDArray[np.float64], confidence: float) -> float:
    return int(np.argmax(np.cumsum(distribution) >= confidence)) / PARTS


def variances(weights: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.array([sizes @ sizes for sizes in weights])


@pytest.mark.parametrize("degree", [1, 2, 5, 64, 301])
@pytest.mark.parametrize("h", [0.01, 0.8, 3.0, 4.99])
def test_the_minorant_is_nowhere_above_the_indicator(degree, h):
    """All other results depend on this; its mean, `constant`, is 1 / degree below the indicator's."""
    period, index = 10.0, np.arange(1, degree)
    places = np.concatenate([np.linspace(0, period, 4001), [h, h * (1 + 1e-9), h + period / degree]])

    constant, cosines = minorant(h, period=period, degree=degree, index=index)
    values = constant + np.cos(np.outer(places, 2 * math.pi / period * index)) @ cosines

    inside = np.minimum(places, period - places) <= h
    assert (values <= inside + 1e-9).all()
    assert constant == 2 * h / period - 1 / degree


@pytest.mark.slow
@pytest.mark.few(33)
@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS.keys())
@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 0.05 / 3, 0.9999])
def test_the_interval_has_the_stated_coverage_and_little_more(scale, weights, confidence):
    noise = DiscreteLaplace(scale)
    distribution = distribution_of_sum(noise, weights)

    h = half_width(noise, np.array(weights), confidence)

    assert coverage(distribution, h) >= confidence
    deviation = scale * math.sqrt(2 * sum(w * w for w in weights))
    # Very narrow noise has its mass in a few atoms; just before an atom the bound may jump to the next one.
    assert scale < 1 or h <= smallest(distribution, confidence) + 0.02 * deviation


@pytest.mark.slow
@pytest.mark.few(13)
@pytest.mark.parametrize("scale", [3.0, 10.0])
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS.keys())
@pytest.mark.parametrize("confidence", [0.95, 0.975, 1 - 0.05 / 3])
def test_published_intervals_are_within_a_hundredth_of_the_smallest(scale, weights, confidence):
    noise = DiscreteLaplace(scale)

    h = half_width(noise, np.array(weights), confidence)

    assert h <= 1.01 * smallest(distribution_of_sum(noise, weights), confidence)


@pytest.mark.parametrize("second", [0.9, 0.5, 0.01])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_two_wide_draws_agree_with_the_closed_form(second, confidence):
    scale = 2.0**30

    h = half_width(DiscreteLaplace(scale), np.array([second, 1.0]), confidence) / scale

    missed = (math.exp(-h) - second**2 * math.exp(-h / second)) / (1 - second**2)
    assert missed <= 1 - confidence
    assert missed == pytest.approx(1 - confidence, rel=0.02)


def test_the_continuous_distribution_is_not_a_bound():
    """With weights 1 and 0.9 there are lattice points within which the discrete sum has less mass."""
    distribution, h = distribution_of_sum(DiscreteLaplace(1.0), [1.0, 0.9]), 3.5
    continuous = 1 - (math.exp(-h) - 0.81 * math.exp(-h / 0.9)) / 0.19
    confidence = (coverage(distribution, h) + continuous) / 2

    assert coverage(distribution, h) < confidence < continuous
    assert half_width(DiscreteLaplace(1.0), np.array([1.0, 0.9]), confidence) > h


@pytest.mark.parametrize("confidence", [0.95, 1 - 0.05 / 3])
def test_with_few_terms_the_normal_distribution_is_not_a_bound(confidence):
    weights = np.array([1.0, 0.25, 0.1])
    noise = DiscreteLaplace(10.0)
    guess = float(ndtri((1 + confidence) / 2)) * math.sqrt(noise.variance * (weights @ weights))

    assert coverage(distribution_of_sum(noise, list(weights)), guess) < confidence
    assert half_width(noise, weights, confidence) > 1.04 * guess


@pytest.mark.parametrize("scale", [2.0, 1e6])
def test_many_terms_are_nearly_normal(scale):
    weights = 1 / np.sqrt(np.arange(50.0, 2050.0))

    h = half_width(DiscreteLaplace(scale), weights, 0.95)

    deviation = math.sqrt(DiscreteLaplace(scale).variance * (weights @ weights))
    assert 1.955 * deviation < h < 1.97 * deviation


def test_a_tail_bound_serves_confidences_near_one():
    distribution = distribution_of_sum(DiscreteLaplace(3.0), [1.0, 0.5])

    h = half_width(DiscreteLaplace(3.0), np.array([1.0, 0.5]), 1 - 1e-9)

    assert math.fsum(distribution[math.floor(h * PARTS) + 1 :]) <= 1e-9
    assert h < 3 * smallest(distribution, 1 - 1e-9)


@pytest.mark.parametrize("weight", [1.0, 0.25, 3.0])
@pytest.mark.parametrize("terms", [1, 2, 30])
def test_equal_weights_take_the_half_width_of_the_distribution(weight, terms):
    noise = DiscreteLaplace(4.0)

    expected = weight * noise.half_width(terms, 0.95)

    assert half_width(noise, np.full(terms, weight), 0.95) == expected
    assert half_width(noise, np.broadcast_to(weight, terms), 0.95) == expected


@pytest.mark.parametrize("noise", [DiscreteLaplace(5.0), DiscreteGaussian(50.0)])
def test_order_does_not_matter_and_units_do(noise):
    weights = np.random.default_rng(5).choice([0.125, 0.25, 0.5, 1.0], 25)

    h = half_width(noise, weights, 0.95)

    assert half_width(noise, np.sort(weights), 0.95) == pytest.approx(h, rel=1e-12)
    assert half_width(noise, 4 * weights, 0.95) == pytest.approx(4 * h, rel=1e-9)


@pytest.mark.slow
@pytest.mark.few(13)
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS.keys())
@pytest.mark.parametrize("scale", [0.4, 2.0, SMOOTH, 12.0])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 0.05 / 3, 0.9999])
def test_gaussian_intervals_have_the_stated_coverage(weights, scale, confidence):
    noise = DiscreteGaussian(scale)

    h = half_width(noise, np.array(weights), confidence)

    assert coverage(distribution_of_sum(noise, weights), h) >= confidence
    norm = math.sqrt(sum(w * w for w in weights))
    assert not (scale >= SMOOTH and confidence < 0.99) or h <= norm * (scale * float(ndtri((1 + confidence) / 2)) + 1.2)


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.05]], ids=len)
@pytest.mark.parametrize("scale", [0.4, 2.0, SMOOTH])
def test_gaussian_intervals_reach_over_the_gaps_of_the_lattice(weights, scale):
    """If the normal quantile lies just before a lattice point, it would not suffice: tested for many confidences."""
    distribution = distribution_of_sum(DiscreteGaussian(scale), weights)

    for confidence in np.linspace(0.9, 0.985, 300):
        assert (
            coverage(distribution, half_width(DiscreteGaussian(scale), np.array(weights), float(confidence)))
            >= confidence
        )


def test_wide_gaussian_intervals_are_the_normal_ones():
    h = half_width(DiscreteGaussian(2.0**24), np.array([3.0, 4.0]), 0.95)

    assert h == pytest.approx(5 * 2**24 * 1.959963985, rel=1e-4)


def test_spreads_are_deviations_and_half_widths_of_each_number():
    weights = [np.ones(3), np.array([1.0, 0.5, 0.25]), np.full(7, 0.5)]
    noise = DiscreteLaplace(6.0)

    deviations, widths = spreads(noise, variances=variances(weights), weights=lambda: weights, confidence=0.9)

    np.testing.assert_allclose(deviations**2, noise.variance * np.array([3, 1.3125, 1.75]))
    assert widths.tolist() == [half_width(noise, sizes, 0.9) for sizes in weights]


def test_gaussian_spreads_need_no_weights():
    def weights() -> list[NDArray[np.float64]]:
        raise AssertionError("weights may take long to list")

    noise = DiscreteGaussian(30.0)
    deviations, widths = spreads(noise, variances=np.array([1.0, 6.25]), weights=weights, confidence=0.95)

    assert deviations.tolist() == pytest.approx([30.0, 75.0])
    assert widths.tolist() == pytest.approx([half_width(noise, np.array([n]), 0.95) for n in (1.0, 2.5)])


def test_weights_of_any_kind_of_number_are_read_as_numbers():
    assert half_width(DiscreteLaplace(2.0), np.array([2, 1]), 0.95) == half_width(
        DiscreteLaplace(2.0), np.array([2.0, 1.0]), 0.95
    )


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_wrong_confidence_is_refused(confidence):
    with pytest.raises(ValueError, match=r"confidence: expected a number"):
        half_width(DiscreteLaplace(1.0), np.array([1.0, 2.0]), confidence)
