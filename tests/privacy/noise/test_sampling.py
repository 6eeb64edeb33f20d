"""Samplers: which arguments they refuse, and that long draws are complete; tests/statistical tests distributions."""

import hashlib

import numpy as np
import pytest

from privacy.noise import sampling
from privacy.noise.exact import sampler
from privacy.noise.exact.bounds import gaussian, laplace
from privacy.noise.exact.sampler import make_sampler
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
    with pytest.raises(ValueError, match=r"scale: expected a (finite )?number"):
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
    with pytest.raises(ValueError, match="size: expected at least 0, not -1"):
        discrete_laplace(scale=1.0, size=-1)


KNOWN = {1: "fb3e121c2a40764b7553bcac39097ea6dd47a03797d5a5aefc55302f2ee6898e"}
"""Digest of the noise that one sequence of words gives, by version of the samplers."""


def test_another_use_of_random_words_needs_another_version_of_the_samplers():
    """The manifest states the version, so it must change with them: add an entry, and raise `SAMPLERS`."""
    calls = 0

    def words(bits, size):
        nonlocal calls
        calls += 1
        kind = np.dtype(f"<u{next(size for size in (1, 2, 4, 8) if 8 * size >= bits)}")
        stream = hashlib.shake_256(calls.to_bytes(8, "big")).digest(size * kind.itemsize)
        return np.frombuffer(stream, kind) >> kind.type(8 * kind.itemsize - bits)

    made = [
        make_sampler(law, scale, words=words).sample(2000) for law in (laplace, gaussian) for scale in (0.7, 9, 1e6)
    ]

    assert hashlib.sha256(np.concatenate(made).astype("<i8").tobytes()).hexdigest() == KNOWN[sampling.SAMPLERS]
