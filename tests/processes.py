"""Processes forked from one that has imported everything and has no threads.

A test's own process must not fork: it has threads of Beam and Arrow, and a child would wait for ever for the locks that
they held when it was made.
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

CLEAN = multiprocessing.get_context("forkserver")
_AT_FIRST_USE = ("tests.every_command", "scipy.optimize", "apache_beam.runners.portability.fn_api_runner.fn_runner")
CLEAN.set_forkserver_preload(["pipelines.cli", "tests.e2e.specs", "tests.beam_remembers", *_AT_FIRST_USE])


def alone(work: Callable[..., T], *arguments: Any) -> T:
    """What work returns or raises in such a process, which may fork others."""
    with ProcessPoolExecutor(1, mp_context=CLEAN) as pool:
        return pool.submit(work, *arguments).result()
