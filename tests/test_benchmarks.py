"""Every module of the benchmarks and examples can be imported, and its doctests hold."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOREIGN = {"benchmarks.error.jaxprivacy_peer", "benchmarks.local.multifreq_peer", "benchmarks.throughput.pipelinedp"}
"""Modules that run in a separate environment without the project's packages."""


@pytest.mark.slow
def test_modules_can_be_imported_and_their_doctests_hold() -> None:
    paths = [path for folder in ("benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths if path.name != "__init__.py"}
    assert names > FOREIGN

    results = {name: doctest.testmod(importlib.import_module(name)) for name in sorted(names - FOREIGN)}

    assert {name: result for name, result in results.items() if result.failed} == {}
    assert any(result.attempted for result in results.values())
