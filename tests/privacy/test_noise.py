"""The samplers: what they refuse, that long draws are whole, and that workers share no stream."""

import multiprocessing
from multiprocessing.queues import SimpleQueue
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from privacy.noise.sampling import CHUNK, LARGEST_SCALE, discrete_gaussian, discrete_laplace
from tests.processes import alone

SAMPLERS = (discrete_laplace, discrete_gaussian)
LENGTH = 3_000
WORKERS = (2, 4, 8)


@pytest.mark.parametrize("sample", SAMPLERS)
def test_draws_are_int64_of_the_size_asked_for(sample):
    for size in (0, 1, 7):
        drawn = sample(scale=3.0, size=size)

        assert drawn.shape == (size,)
        assert drawn.dtype == np.int64


@pytest.mark.parametrize("sample", SAMPLERS)
def test_a_draw_longer_than_a_chunk_is_filled_to_its_end(sample):
    # A non-zero draw at this scale has probability below 1e-40.
    assert not sample(scale=0.01, size=CHUNK + 5).any()

    # Each number is zero with probability below 1e-15.
    assert np.count_nonzero(sample(scale=2.0**50, size=CHUNK + 5)) == CHUNK + 5


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


def _draw_both(results: "SimpleQueue[bytes]") -> None:
    results.put(_both().tobytes())


def _both() -> NDArray[np.int64]:
    return np.concatenate([s(scale=LARGEST_SCALE, size=LENGTH) for s in SAMPLERS])


def _streams(method: Literal["fork", "spawn"], workers: int, work, *args) -> list[NDArray[np.int64]]:
    context = multiprocessing.get_context(method)
    results = context.SimpleQueue()
    processes = [context.Process(target=work, args=(results, *args)) for _ in range(workers)]
    for process in processes:
        process.start()
    gathered = [results.get() for _ in processes]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return [np.frombuffer(drawn, np.int64) for drawn in gathered]


def _repeated(streams: list[NDArray[np.int64]]) -> int:
    """Numbers that occur more than once: streams that are equal or shifted repeat nearly all."""
    drawn = np.concatenate(streams)
    return len(drawn) - len(np.unique(drawn))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_no_two_workers_draw_the_same_noise(method, workers):
    # Both distributions give one number with probability below 1 / 2^55, so a correct sampler repeats any of
    # 60,000 numbers with probability below 60,000^2 / 2^56 = 5e-8.
    assert _repeated(alone(_family, method, workers)) == 0


def _family(method: Literal["fork", "spawn"], workers: int) -> list[NDArray[np.int64]]:
    """A process's noise before and after it starts workers, and theirs."""
    before = _both()
    return [before, *_streams(method, workers, _draw_both), _both()]


def _draw_from(results: "SimpleQueue[bytes]", generator: np.random.Generator) -> None:
    results.put(generator.integers(-(2**60), 2**60, size=LENGTH).tobytes())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_check_catches_a_generator_that_workers_copy(method):
    generator = np.random.default_rng()

    children = alone(_streams, method, 2, _draw_from, generator)

    assert _repeated(children) == LENGTH
