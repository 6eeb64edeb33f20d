"""Settings for every test."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from hypothesis import settings
from hypothesis.internal.conjecture import providers

import tests.beam_remembers
import tests.own_remembers  # noqa: F401
from privacy.planning.planner import options
from tests.programs import not_run, require
from tests.searches import TIMES

# Times are the machine's, not the code's: a busy one would fail a good property. On a build server Hypothesis itself
# would try the same examples in every run.
settings.register_profile("untimed", deadline=None, derandomize=False, max_examples=10 if TIMES == 1 else 15 * TIMES)
settings.load_profile("untimed")
if TIMES == 1:  # it would parse all modules for their constants, and try some of them
    providers._get_local_constants = lambda: providers._local_constants


LONG = ("flink", "live")
"""Groups that begin first. Otherwise one of them would still run after all other tests have ended."""

WAITING = ("kafka", "job service")
"""Groups that begin after those in `LONG`, since they too mostly wait."""

BUNDLE = 20
"""Number of short tests that a worker receives at once: sending a short test takes longer than running it."""


def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are cores, since tests of streams and clusters mostly wait."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip or fail a test whose programs are missing, before any fixture starts them."""
    for mark in item.iter_markers("needs"):
        require(*mark.args)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = not_run(report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    if lines:
        terminalreporter.section("programs that are missing", yellow=True)
        terminalreporter.write("".join(f"{line}\n" for line in lines))


def pytest_configure(config: pytest.Config) -> None:
    """Compile a share of the test files, if they are new, so that not every worker compiles all of them."""
    worker = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    for file in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        compiled = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if not compiled.exists() and rewrite.try_makedirs(compiled.parent):
            read, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, read, compiled)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without garbage collection, which takes a third of the time and finds nothing in the imports."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(700, 10, 100)  # full collections are rare: tests leave little garbage
        gc.enable()


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect cases of tests that are marked `few`, unless `make search` asks for all of them."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few") is not None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = set()
    for each in cases.values():
        mark = each[0].get_closest_marker("few")
        number = min(mark.args[0], len(each)) if mark else 0
        left_out |= set(each) - {each[place * len(each) // number] for place in range(number)}
    if TIMES == 1 and left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that share what their module makes once stay on one worker; long ones come first, short ones in bundles."""
    leave_out(config, items)
    if not getattr(config.option, "loadgroup", False):
        return
    turns: dict[pytest.Item, int] = {}
    short: Counter[str] = Counter()
    for item in items:
        module = item.nodeid.partition("::")[0]
        made = getattr(item, "_fixtureinfo", None)
        shared = made is not None and any(one[-1].scope == "module" for one in made.name2fixturedefs.values() if one)
        group = item.get_closest_marker("xdist_group")
        if group is not None:
            name = group.args[0]
            turns[item] = LONG.index(name) if name in LONG else len(LONG) + (name in WAITING)
        elif shared:
            turns[item] = len(LONG)
            item.add_marker(pytest.mark.xdist_group(module))
        elif "/e2e/" in module or item.get_closest_marker("slow") is not None:
            turns[item] = len(LONG) + 2
        else:
            turns[item] = len(LONG) + 3
            item.add_marker(pytest.mark.xdist_group(f"{module}-{short[module] // BUNDLE}"))
            short[module] += 1
    items.sort(key=turns.__getitem__)


@pytest.fixture(scope="session", autouse=True)
def _own_state_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the notes of releases that tests make out of the user's own state folder."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture
def plan_again() -> Iterator[Callable[[], None]]:
    """Yield a function that forgets found options, for tests that change a table that the planner reads."""
    options.cache_clear()
    yield options.cache_clear
    options.cache_clear()
