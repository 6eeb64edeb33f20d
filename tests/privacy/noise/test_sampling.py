"""Samplers: which arguments they refuse, and that long draws are complete; tests/statistical tests distributions."""

import numpy as np
import pytest

from privacy.noise.exact import sampler
from privacy.noise.sampling import LARGEST_SCALE, discrete_gaussian, discrete_laplace

SAMPLERS = (discrete_laplace, discrete_gaussian)


@pytest.mark.parametrize("sample", SAMPLERS)
def test_samples_are_int64_of_the_requested_size(sample):
    for size in (0, 1, 7):
        drawn = sample(scale=3.0, size=size)

        assert drawn.shape == (size,)
        assert drawn.dtype == np.int64


@pytest.mark.parametrize("sample", SAMPLERS)
def test_a_draw_longer_than_a_chunk_is_filled_to_its_end(sample, monkeypatch):
    monkeypatch.setattr(sampler, "AT_ONCE", 100)

    # A non-zero draw at this scale has probability below 1e-40.
    assert not sample(scale=0.01, size=305).any()

    # Each number is zero with probability below 1e-15.
    assert np.count_nonzero(sample(scale=2.0**50, size=305)) == 305


@pytest.mark.parametrize("sample", SAMPLERS)
@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_not_positive_and_finite_is_refused(sample, scale):
    with pytest.raises(ValueError, match=r"scale=.* must be positive and finite"):
        sample(scale=scale, size=1)


@pytest.mark.parametrize("sample", SAMPLERS)
def test_a_scale_that_could_overflow_is_refused(sample):
    with pytest.raises(ValueError, match=r"at most 2\^55 steps"):
        sample(scale=LARGEST_SCALE * 1.001, size=1)


@pytest.mark.parametrize("sample", SAMPLERS)
def test_the_largest_scale_does_not_saturate(sample):
    drawn = sample(scale=LARGEST_SCALE, size=1_000)

    ends = np.iinfo(np.int64)
    assert ends.min < drawn.min() < 0 < drawn.max() < ends.max


def test_a_negative_size_is_refused():
    with pytest.raises(ValueError, match="size=-1 must be at least 0"):
        discrete_laplace(scale=1.0, size=-1)
