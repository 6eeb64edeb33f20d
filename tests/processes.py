"""Processes forked from one that has imported everything and has no threads.

A test's own process must not fork: it has threads of Beam and Arrow, and a child would wait for ever for the locks that
they held when it was made.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

FORKED = pytest.mark.xdist_group("forked")
"""On one worker, or else each would import everything once more for processes to be forked from."""

CLEAN = multiprocessing.get_context("forkserver")
_AT_FIRST_USE = ("tests.every_command", "scipy.optimize", "apache_beam.runners.portability.fn_api_runner.fn_runner")
CLEAN.set_forkserver_preload(
    ["pipelines.cli", "tests.e2e.specs", "tests.beam_remembers", "tests.own_remembers", *_AT_FIRST_USE, "tests.frozen"]
)


def alone(work: Callable[..., T], *arguments: Any) -> T:
    """What work returns or raises in such a process, which may fork others."""
    with ProcessPoolExecutor(1, mp_context=CLEAN) as pool:
        return pool.submit(work, *arguments).result()


def program(module: str, *arguments: str, folder: Path) -> tuple[int, str]:
    """What `python -m module` returns and prints, without its imports; it works in the folder."""
    return alone(_program, module, arguments, folder)


def _program(module: str, arguments: tuple[str, ...], folder: Path) -> tuple[int, str]:
    os.chdir(folder)
    told = folder / "told.txt"
    os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT, 0o600), 1)  # processes that it forks write into files of their own
    sys.argv = [module, *arguments]
    code: int = import_module(module).main()
    sys.stdout.flush()
    return code, told.read_text()
