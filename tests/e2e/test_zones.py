"""Another version of `tzdata` between two runs: it may change how later rows are read and where later windows end."""

from pathlib import Path

import pytest

from pipelines.epochs import settled
from tests.e2e.specs import CommandLine, changelog, write, write_spec

DATES = [("start: 2026-01-01T00:00:00Z", "start: 2026-01-01"), ("until: 2026-01-06T00:00:00Z", "until: 2026-01-06")]
OF_WINDOWS = [*DATES, ("  every: 1d", "  every: 1d\n  timezone: Europe/Berlin")]
OF_ROWS = [("  time: at", "  time: at\n  timezone: Europe/Berlin")]


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    write(tmp_path / "data/rows.parquet", changelog())
    return CommandLine(tmp_path, capsys)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("changes", "warned"), [([], False), (OF_WINDOWS, True), (OF_ROWS, True)], ids=["none", "windows", "rows"]
)
def test_a_run_warns_once_if_tzdata_was_upgraded_and_the_spec_names_a_zone(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch, changes: list[tuple[str, str]], warned: bool
) -> None:
    write_spec(slackwater.folder, *changes)
    monkeypatch.setattr(settled, "tzdata", lambda: "tzdata 2020.1")
    assert slackwater("run", "spec.yaml", "--until", "2026-01-02T00:00:00Z").code == 0
    monkeypatch.setattr(settled, "tzdata", lambda: "tzdata 2020.2")

    said = [slackwater("run", "spec.yaml", "--until", f"2026-01-0{day}T00:00:00Z") for day in (3, 4)]

    line = "the last epoch was made with tzdata 2020.1, and this run uses tzdata 2020.2"
    assert [one.code for one in said] == [0, 0]
    assert [one.err.count(line) for one in said] == [int(warned), 0]
