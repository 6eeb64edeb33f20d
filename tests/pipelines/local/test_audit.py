"""The layer of surveys passes for each method, and sees each way to break the promise of a device."""

from random import Random

import numpy as np
import pytest

from pipelines.local.audit import check_devices
from privacy.local import client
from privacy.local.bound import LocalBound
from privacy.local.candidates import candidates
from privacy.local.design import Design
from privacy.local.mutation_space import MutationSpace

DESIGNS = {
    one.name: one.design
    for one in candidates(MutationSpace(answers=3), LocalBound(at_most=2), windows=8, epsilon=1.0)
    if one.name in ("signs", "mutations", "once, a sign", "signs, tree of 2 layers, 2 to a node")
}
SIGNS = next(design for name, design in DESIGNS.items() if name == "signs")


def faults(design: Design, devices: int = 10_000) -> str:
    return " ".join(check_devices(design, Random(1), devices=devices).faults)


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_devices_of_each_method_pass_and_reach_a_part_of_the_claim(name: str) -> None:
    """The bound of each is more than seven of its standard deviations above zero, so it fails in less than 1e-6."""
    found = check_devices(DESIGNS[name], Random(1), devices=40_000)

    assert found.faults == ()
    assert 0 < found.measures["lower"] <= found.measures["claim"]


def test_a_report_that_is_sampled_twice_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "Keyed", lambda key: np.random.default_rng().bytes)

    assert "samples its report again" in faults(SIGNS)


def test_a_change_beyond_the_bound_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalBound, "counts", lambda self, used, first, window: np.ones(len(used), dtype=bool))

    assert "changes that do not count" in faults(SIGNS)
