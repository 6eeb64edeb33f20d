"""Tests of noise pass for exact noise, and see each deviation; each fails by chance with probability at most 1e-6."""

import numpy as np
import pytest

from privacy.evidence.repeats import repeated, run_length
from privacy.evidence.uniforms import deviations, needed
from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace

FAILURE = 1e-6
SAMPLES = needed(0.05, FAILURE)
DISTRIBUTIONS = (DiscreteLaplace(0.7), DiscreteLaplace(500.0), DiscreteGaussian(3.0), DiscreteGaussian(2e6))


def failing(noise, distribution):
    uniform = np.random.default_rng().random(len(noise))
    return {one.name for one in deviations([noise], [distribution], uniform, failure=FAILURE / 10) if not one.passed}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_exact_noise_passes(distribution):
    assert failing(distribution.noise(SAMPLES), distribution) == set()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS[1:], ids=str)
def test_noise_that_is_six_percent_too_narrow_fails(distribution):
    narrow = type(distribution)(distribution.scale * 0.94).noise(2 * SAMPLES)

    assert "scale" in failing(narrow, distribution)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (np.abs, "signs"),
        (lambda noise: noise // 2 * 2, "bit 0"),
        (lambda noise: np.repeat(noise[::2], 2), "independence at lag 1"),
        (lambda noise: np.clip(noise, -1000, 1000), "scale"),
        (lambda noise: np.where(np.arange(len(noise)) % 15 == 0, 0, noise), "shape"),
    ],
)
def test_each_deviation_fails_its_test(change, name):
    distribution = DISTRIBUTIONS[1]

    assert name in failing(change(distribution.noise(SAMPLES)), distribution)


def test_streams_that_share_noise_repeat_and_others_do_not():
    distribution = DiscreteLaplace(3.0)
    streams = [distribution.noise(2000) for _ in range(4)]
    length = run_length(distribution, 10_000, FAILURE)

    assert repeated(streams, length) == 0
    assert repeated([*streams, streams[0][100:]], length) == 2000 - 100 - length + 1
