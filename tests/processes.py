"""Processes forked from one that has imported everything and has no threads.

A test's own process must not fork, since it has threads of Beam and Arrow. A child would wait without end for the locks
that these threads held at the fork.
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
"""Mark that keeps these tests on one worker. Otherwise each worker would import everything to fork from."""

CLEAN = multiprocessing.get_context("forkserver")
_AT_FIRST_USE = ("tests.every_command", "scipy.optimize", "apache_beam.runners.portability.fn_api_runner.fn_runner")
CLEAN.set_forkserver_preload(
    ["pipelines.cli", "tests.e2e.specs", "tests.beam_remembers", "tests.own_remembers", *_AT_FIRST_USE, "tests.frozen"]
)


def alone(work: Callable[..., T], *arguments: Any) -> T:
    """Return what `work` returns, or raise its error, after a call in such a process, which may fork others."""
    with ProcessPoolExecutor(1, mp_context=CLEAN) as pool:
        return pool.submit(work, *arguments).result()


def program(module: str, *arguments: str, folder: Path) -> tuple[int, str]:
    """Run `python -m module` in a folder without the time for imports.

    Args:
        module: Name of the module, which has a function `main`.
        *arguments: Its command line.
        folder: Working directory.

    Returns:
        The exit code and the text on standard output.
    """
    return alone(_program, module, arguments, folder)


def _program(module: str, arguments: tuple[str, ...], folder: Path) -> tuple[int, str]:
    os.chdir(folder)
    told = folder / "told.txt"
    os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT, 0o600), 1)  # processes that it forks write into separate files
    sys.argv = [module, *arguments]
    code: int = import_module(module).main()
    sys.stdout.flush()
    return code, told.read_text()
