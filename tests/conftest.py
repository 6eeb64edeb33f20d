"""Settings for every test."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

import tests.beam_remembers  # noqa: F401

# Times are the machine's, not the code's: a busy one would fail a good property.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


LONG = ("flink", "live", "kafka", "job service")
"""Groups that begin first, or else one of them would be left when all else is done."""


def pytest_xdist_auto_num_workers() -> int:
    """Streams and clusters mostly wait: two workers more than there are cores."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Of the million objects that are imported none is garbage: to look for it takes a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(700, 10, 100)  # whole heaps seldom: what tests leave is little
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that share what their module makes once stay on one worker; long ones come first."""
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        made = getattr(item, "_fixtureinfo", None)
        shared = made is not None and any(one[-1].scope == "module" for one in made.name2fixturedefs.values() if one)
        if shared and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    if group is not None:
        return LONG.index(group.args[0]) if group.args[0] in LONG else len(LONG)
    return len(LONG) + 1 + ("/e2e/" not in item.nodeid)
