"""No two workers draw the same noise, at the scales of a release: forked, spawned and as threads.

Those that Flink starts are in `tests/e2e/test_runners.py`.

At the largest scale a single repeated number tells; at those of a release numbers repeat by chance, and what tells is a
run of them: RUN draws in a row that occur twice, in two streams or in one, at any distance. So streams are caught that
are equal, that one worker is ahead of another in, or that go round.

At the largest scale either distribution gives one number with probability below 2^-55, so that a correct sampler
repeats any of 30,000 numbers with probability below 30,000^2 / 2^56 < 2e-8 in each of two tests. At those of a
release each of RUN draws equals a given number with probability at most LIKELIEST, whatever the draws before it, so
that one run of two is repeated with probability at most LIKELIEST^RUN < 1e-50, and any in this module, with less than
1e6 runs in a test and 20 tests, with probability below 20 * 1e12 * 1e-50 < 1e-36. That bound has a test of its own,
which fails by chance with probability below 1e-11.
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
    """One worker's noise, by the distributions that a plan holds and a release draws from."""
    return [distribution.noise(LENGTH) for distribution in (*DISTRIBUTIONS, *WIDEST)]


def wide(streams: Sequence[Stream]) -> list[Stream]:
    """Those of workers at the largest scale."""
    each = len(DISTRIBUTIONS) + len(WIDEST)
    return [stream for number, stream in enumerate(streams) if number % each >= len(DISTRIBUTIONS)]


def repeated_numbers(streams: Sequence[Stream]) -> int:
    """How many numbers occur again: streams that are equal or shifted repeat nearly all."""
    drawn = np.concatenate(streams)
    return len(drawn) - len(np.unique(drawn))


def repeated(streams: Iterable[Stream]) -> int:
    """How many runs occur again."""
    runs = np.concatenate([np.lib.stride_tricks.sliding_window_view(stream, RUN) for stream in streams])
    return len(runs) - len(np.unique(np.ascontiguousarray(runs).view(f"V{runs.itemsize * RUN}")))


def gather(method: str, workers: int, work: Callable[..., None], *arguments: object) -> list[Stream]:
    """What workers, each a process of its own, put into a queue."""
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
    """A generator made before the worker was, of which each has drawn another part."""
    generator.laplace(size=100 * number)
    narrow = np.rint(generator.laplace(scale=3.0, size=LENGTH)).astype(np.int64)
    results.put([narrow, generator.integers(-(2**60), 2**60, size=LENGTH)])


def test_no_number_is_likelier_than_the_bound_says() -> None:
    for stream in own()[: len(DISTRIBUTIONS)]:
        share = np.unique(stream, return_counts=True)[1].max() / len(stream)
        # By Hoeffding's inequality exceeded with probability below exp(-2 * 1500 * 0.1^2) < 1e-13, for each number.
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
    """A process's noise before, so that all a fork could copy is there, its workers', and its own after them."""
    return [*own(), *gather(method, workers, put_own), *own()]


def test_threads_of_one_worker_share_no_noise() -> None:
    with ThreadPoolExecutor(8) as threads:
        streams = [stream for drawn in threads.map(lambda _: own(), range(8)) for stream in drawn]

    assert repeated(streams) == 0


@FORKED
@pytest.mark.parametrize(("method", "workers"), [("fork", 8), ("spawn", 2)])
def test_the_check_catches_a_generator_that_workers_copy(method: str, workers: int) -> None:
    children = alone(gather, method, workers, put_copied, np.random.default_rng())

    # Each is 100 draws ahead of the one before it, and shares the rest with it.
    assert repeated(children[::2]) >= (workers - 1) * (LENGTH - 100 - RUN)
    assert repeated_numbers(children[1::2]) >= (workers - 1) * (LENGTH - 100)


def keep_own(_number: int, folder: str) -> None:
    """A step of a pipeline: noise in a file that is named after the process that drew it."""
    time.sleep(0.05)  # so that no worker does all of it
    Path(folder, f"{os.getpid()}-{uuid.uuid4()}").write_bytes(np.concatenate(own()).tobytes())
