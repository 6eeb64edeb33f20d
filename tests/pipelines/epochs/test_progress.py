"""What a person sees of a long run: a bar on a terminal, plain lines elsewhere, nothing for a short run."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.epochs import progress as display
from pipelines.epochs.progress import Display
from tests.transforms.writing import NOON, NOON_US, UTC, look, write_jsonl, write_parquet
from transforms.common import progress
from transforms.sources.columns.layout import Layout

ROWS = 1_000


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A Parquet changelog of 1000 rows."""
    columns = {
        "id": list(range(ROWS)),
        "at": pa.array([NOON_US] * ROWS, UTC),
        "before_x": [1] * ROWS,
        "after_x": [2] * ROWS,
    }
    return look(write_parquet(tmp_path / "a.parquet", columns), numbers="x")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "PATIENCE", 0.1)
    monkeypatch.setattr(display, "LINE_EVERY", 0.1)


def work(layout: Layout, seconds: float = 0.7) -> None:
    """Half of the rows are read and none is bounded: a quarter of the work."""
    with Display(layout):
        progress.advance("read", ROWS // 2)
        time.sleep(seconds)


def all_of(reader: int) -> str:
    """What a terminal was given, which the kernel hands over piece by piece, until half a second brings no more."""
    shown = b""
    while select.select([reader], [], [], 0.5)[0]:
        shown += os.read(reader, 1 << 16)
    return shown.decode()


@pytest.mark.slow
def test_a_terminal_shows_a_bar_with_the_rate_and_the_time_left(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    with os.fdopen(terminal, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        work(layout)
        stderr.flush()
        shown = all_of(reader)
    os.close(reader)

    assert re.search(r"25%\|.+\| 250\.0/1000\.0 \[00:0\d<00:\d\d, +[\d.]+ rows/s\]", shown), shown
    assert shown.endswith("\r")  # the bar is gone when the work is done


@pytest.mark.slow
def test_elsewhere_there_are_plain_lines(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    work(layout)

    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) >= 2
    assert all(re.fullmatch(r"working: 25 %, [\d,]+ rows/s, \d+ s left", line) for line in lines), lines


@pytest.mark.slow
def test_text_files_have_a_rate_and_no_guess_of_the_time_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": 1, "at": NOON, "before_x": 1, "after_x": 2}]
    work(look(write_jsonl(tmp_path / "a.jsonl", rows), "jsonl", numbers="x"))

    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(re.fullmatch(r"working: \d+ s, [\d,]+ rows/s", line) for line in lines), lines


@pytest.mark.slow
def test_a_short_run_shows_nothing(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(display, "PATIENCE", 60.0)
    began = time.monotonic()

    work(layout, seconds=0.2)

    assert capsys.readouterr().err == ""
    assert time.monotonic() - began < 30  # nor does it wait


def test_a_person_waits_two_seconds_at_most_for_the_first_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    assert display.PATIENCE == 2.0


@pytest.mark.slow
def test_a_failure_passes_through_and_ends_the_display(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="of the engine"), Display(layout):
        raise ValueError("of the engine")
    capsys.readouterr()
    time.sleep(0.3)

    assert capsys.readouterr().err == ""
