"""No two workers draw the same noise, at the scales of a release: forked, spawned and as threads.

Tests of workers that Flink starts are in `tests/e2e/test_runners.py`.

At the largest scale a single repeated number shows a shared stream. At scales of a release numbers repeat by chance,
and a repeated run shows a shared stream: RUN consecutive draws that occur twice, in two streams or in one, at any
distance. This detects equal streams, streams that are shifted against each other, and streams that repeat
themselves.

At the largest scale either distribution gives one number with probability below 2^-55, so that a correct sampler
repeats any of 30,000 numbers with probability below 30,000^2 / 2^56 < 2e-8 in each of two tests. At scales of a release
each of RUN draws equals a given number with probability at most LIKELIEST, given any earlier draws. Two given runs are
therefore equal with probability at most LIKELIEST^RUN < 1e-50. A test has less than 1e6 runs, and there are at most 20
tests, so any run repeats with probability below 20 * 1e12 * 1e-50 < 1e-36. A separate test checks LIKELIEST. It fails
by chance with probability below 1e-11.
"""

import multiprocessing
import os
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace
from privacy.noise.sampling import LARGEST_SCALE
from tests.processes import FORKED, alone

RUN = 64
LIKELIEST = 0.1653
LENGTH = 1_500
DISTRIBUTIONS = (DiscreteLaplace(scale=3.0), DiscreteGaussian(scale=3.0))
WIDEST = (DiscreteLaplace(scale=LARGEST_SCALE), DiscreteGaussian(scale=LARGEST_SCALE))

Stream = NDArray[np.int64]


def own() -> list[Stream]:
    """Return one worker's noise, from the distributions of a plan, as a release draws it."""
    return [distribution.noise(LENGTH) for distribution in (*DISTRIBUTIONS, *WIDEST)]


def wide(streams: Sequence[Stream]) -> list[Stream]:
    """Return the workers' streams at the largest scale."""
    each = len(DISTRIBUTIONS) + len(WIDEST)
    return [stream for number, stream in enumerate(streams) if number % each >= len(DISTRIBUTIONS)]


def repeated_numbers(streams: Sequence[Stream]) -> int:
    """Return how many numbers repeat earlier ones: equal or shifted streams repeat nearly all."""
    drawn = np.concatenate(streams)
    return len(drawn) - len(np.unique(drawn))


def repeated(streams: Iterable[Stream]) -> int:
    """Return how many runs repeat earlier ones."""
    runs = np.concatenate([np.lib.stride_tricks.sliding_window_view(stream, RUN) for stream in streams])
    return len(runs) - len(np.unique(np.ascontiguousarray(runs).view(f"V{runs.itemsize * RUN}")))


def gather(method: str, workers: int, work: Callable[..., None], *arguments: object) -> list[Stream]:
    """Run workers in separate processes, and return the streams that they put into a queue.

    Args:
        method: Start method of the processes.
        workers: Number of processes.
        work: Function of the queue, the worker's number and `arguments`.
        *arguments: Further arguments of `work`.
    """
    context = multiprocessing.get_context(method)
    results = context.SimpleQueue()
    processes = [context.Process(target=work, args=(results, number, *arguments)) for number in range(workers)]
    for process in processes:
        process.start()
    gathered = [stream for _ in processes for stream in results.get()]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return gathered


def put_own(results: "SimpleQueue[list[Stream]]", _number: int) -> None:
    results.put(own())


def put_copied(results: "SimpleQueue[list[Stream]]", number: int, generator: np.random.Generator) -> None:
    """Put noise of a generator that is older than the worker; each worker first draws a different number of values."""
    generator.laplace(size=100 * number)
    narrow = np.rint(generator.laplace(scale=3.0, size=LENGTH)).astype(np.int64)
    results.put([narrow, generator.integers(-(2**60), 2**60, size=LENGTH)])


def test_no_number_has_a_higher_probability_than_the_bound() -> None:
    for stream in own()[: len(DISTRIBUTIONS)]:
        share = np.unique(stream, return_counts=True)[1].max() / len(stream)
        # By Hoeffding's inequality a number exceeds it with probability below exp(-2 * 1500 * 0.1^2) < 1e-13.
        assert share < LIKELIEST + 0.1
    assert LIKELIEST**RUN < 1e-49


@FORKED
@pytest.mark.parametrize(("method", "workers"), [("fork", 8), ("spawn", 3)])
def test_worker_processes_share_no_noise(method: str, workers: int) -> None:
    streams = alone(family, method, workers)

    assert len(streams) == (workers + 2) * len(own())
    assert repeated(streams) == 0
    assert repeated_numbers(wide(streams)) == 0


def family(method: str, workers: int) -> list[Stream]:
    """Return noise of a process before its workers start, so that a state to copy exists, of them, and of it after."""
    return [*own(), *gather(method, workers, put_own), *own()]


def test_threads_of_one_worker_share_no_noise() -> None:
    with ThreadPoolExecutor(8) as threads:
        streams = [stream for drawn in threads.map(lambda _: own(), range(8)) for stream in drawn]

    assert repeated(streams) == 0


@FORKED
@pytest.mark.parametrize(("method", "workers"), [("fork", 8), ("spawn", 2)])
def test_the_check_detects_a_generator_that_workers_copy(method: str, workers: int) -> None:
    children = alone(gather, method, workers, put_copied, np.random.default_rng())

    # Each stream is 100 draws ahead of the previous one, and shares the rest with it.
    assert repeated(children[::2]) >= (workers - 1) * (LENGTH - 100 - RUN)
    assert repeated_numbers(children[1::2]) >= (workers - 1) * (LENGTH - 100)


def keep_own(_number: int, folder: str) -> None:
    """Write noise into a file named after the process that drew it, as a step of a pipeline."""
    time.sleep(0.05)  # so that one worker does not process all elements
    Path(folder, f"{os.getpid()}-{uuid.uuid4()}").write_bytes(np.concatenate(own()).tobytes())
