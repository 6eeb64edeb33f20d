"""Bounds of tails, compared with exact convolutions."""

import numpy as np
import pytest

from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace

FAR = 400
VALUES = np.arange(-FAR, FAR + 1)


def chances(distribution: DiscreteLaplace | DiscreteGaussian) -> np.ndarray:
    """Return the probability of each of `VALUES`."""
    scale = distribution.scale
    laplace = distribution.name == "discrete_laplace"
    weights = np.exp(-np.abs(VALUES) / scale if laplace else -(VALUES**2) / (2 * scale**2))
    return weights / weights.sum()


def exact_tail(distribution: DiscreteLaplace | DiscreteGaussian, terms: int, reach: int) -> float:
    once = chances(distribution)
    found = once
    for _ in range(terms - 1):
        found = np.convolve(found, once)
    return float(found[len(found) // 2 + reach :].sum())


@pytest.mark.slow
@pytest.mark.parametrize("terms", [1, 2, 5])
@pytest.mark.parametrize("distribution", [DiscreteLaplace(1.5), DiscreteLaplace(9.0), DiscreteGaussian(0.8)])
def test_no_sum_of_noise_is_large_with_more_than_the_stated_probability(distribution, terms) -> None:
    reach = np.arange(1, 60)

    bound = distribution.tail(terms, reach.astype(float), summed=True)

    exact = np.array([exact_tail(distribution, terms, at) for at in reach.tolist()])
    known = exact > 1e-14  # below, the convolution is rounding
    assert (bound[known] >= exact[known]).all()
    assert (bound[known] <= 60 * exact[known]).all()
    if distribution.name == "discrete_laplace" and terms == 1:
        np.testing.assert_allclose(bound[known], exact[known], rtol=1e-8)


def test_weighted_sums_of_gaussian_noise_are_bounded_by_their_variance() -> None:
    noise = DiscreteGaussian(1.2)
    weights = np.array([1, 2, 2])
    found = np.array([1.0])
    for weight in weights.tolist():
        spread = np.zeros(2 * weight * FAR + 1)
        spread[::weight] = chances(noise)
        found = np.convolve(found, spread)
    middle = len(found) // 2

    bound = noise.tail(9.0, np.arange(1.0, 30.0), summed=False)

    assert all(bound[at - 1] >= found[middle + at :].sum() for at in range(1, 30))
    assert bound[9] < 0.1
