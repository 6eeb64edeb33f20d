"""Two of the seeded faults; `make audit` tries all. Every fault still applies to the code."""

import shutil
from pathlib import Path

import pytest

from pipelines.audit.attack import DEVICES, LAYERS
from tests.audit.seeded import FAULTS, PACKAGES, ROOT, SPECS, audited, patched

SUBSET = {
    "sensitivity": "one change too many counts",
    "noise": "noise is 6 % too narrow",
}


def test_there_are_at_least_sixty_faults_and_each_layer_has_one_that_it_alone_sees():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 60
    assert {fault.layer for fault in FAULTS} == {fault.layer for fault in FAULTS if fault.only} == {*LAYERS, DEVICES}
    assert {fault.spec for fault in FAULTS} <= {path.stem for path in SPECS.glob("*.yaml")}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_applies(fault):
    assert (ROOT / fault.file).read_text(encoding="utf-8").count(fault.old) == 1
    assert fault.old != fault.new


@pytest.mark.slow
def test_two_layers_see_a_fault_each(tmp_path: Path):
    copy = tmp_path / "program"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name)
    for fault in FAULTS:
        if fault.name in SUBSET.values():
            patched(copy, fault)

    layers = audited(copy, "wards", [*SUBSET], tmp_path / "result")

    assert [layer["layer"] for layer in layers if layer["faults"]] == [*SUBSET]
