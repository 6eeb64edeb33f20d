"""Tests of fine structure pass for exact noise, and see what hardly changes a distribution.

Each fails by chance with probability at most 1e-6.
"""

import numpy as np
import pytest

from privacy.evidence.fine_structure import NEAR, FineStructure
from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace
from privacy.noise.exact.sampler import Sampler

FAILURE = 1e-7
SAMPLES = 2**20
DISTRIBUTIONS = (DiscreteLaplace(0.7), DiscreteLaplace(33.0), DiscreteLaplace(70_000.0), DiscreteGaussian(50.0))


def failing(distribution, sample=None, samples=SAMPLES):
    fine = FineStructure(distribution)
    found = fine.deviations(sample or distribution.noise, samples, failure=FAILURE)
    return {one.name for one in found if not one.passed}


@pytest.mark.slow
@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_exact_noise_passes(distribution):
    assert failing(distribution) == set()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS[1:2], ids=str)
def test_a_zero_that_is_sampled_twice_as_often_fails(distribution):
    def sample(size):
        noise = distribution.noise(size)
        return np.where((noise == 1) & (np.arange(size) % 2 == 0), 0, noise)

    assert "frequency of 0" in failing(distribution, sample)


@pytest.mark.slow
@pytest.mark.parametrize("distribution", DISTRIBUTIONS[2:], ids=str)
def test_blocks_without_weights_fail(distribution, monkeypatch):
    monkeypatch.setattr(Sampler, "_kept", lambda self, block, place: np.ones(len(block), dtype=bool))

    assert any(name.startswith("places in blocks") for name in failing(distribution, samples=4 * SAMPLES))
    assert FineStructure(distribution).sees(4 * SAMPLES, failure=FAILURE)[1]


def test_probabilities_are_those_of_the_definition():
    laplace, gaussian = FineStructure(DiscreteLaplace(40.0)), FineStructure(DiscreteGaussian(40.0))
    integers, q = np.arange(-5000, 5001), np.exp(-1 / 40.0)
    exact = [(1 - q) / (1 + q) * q ** np.abs(integers), np.exp(-((integers / 40.0) ** 2) / 2)]

    for fine, weights in zip((laplace, gaussian), exact, strict=True):
        chances = weights / weights.sum()
        assert np.allclose(fine.near, chances[5000 : 5001 + NEAR], rtol=1e-9)
        for block, (mean, variance) in fine.places.items():
            place = np.abs(integers) % block / block
            assert mean == pytest.approx(float(chances @ place), rel=1e-9)
            assert variance == pytest.approx(float(chances @ (place - mean) ** 2), rel=1e-9)
