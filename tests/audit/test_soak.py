"""The release of many epochs with failing runs; `python -m tests.audit.soak` runs it alone."""

from pathlib import Path

import pytest

from tests.processes import FORKED, program

pytestmark = FORKED


@pytest.mark.few(0)
@pytest.mark.timeout(7200)
def test_a_release_of_a_thousand_epochs_with_failing_runs_loses_and_repeats_nothing(tmp_path: Path) -> None:
    code, said = program("tests.audit.soak", "--epochs=1000", folder=tmp_path)

    assert code == 0
    assert said.startswith("1000 epochs, failed runs: ")
