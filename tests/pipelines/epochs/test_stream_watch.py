"""An overdue window is reported; a window that still has time is not."""

import os
from pathlib import Path

import pytest

from pipelines.epochs import stream_watch
from pipelines.epochs.job import timeline_of
from pipelines.epochs.stream_watch import Watch
from pipelines.spec.load import Spec, load
from pipelines.spec.times import now
from tests.e2e.specs import DAY, START, changelog, write, write_spec


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spec:
    """Of a release whose windows are long over, and whose source says how far it is by its files."""
    monkeypatch.chdir(tmp_path)
    write_spec(tmp_path, ("  time: at\n", "  time: at\n  freshness: newer_file\n"))
    write(tmp_path / "data/0.parquet", changelog())
    return load("spec.yaml")


def watch(spec: Spec, *, windows: int, lag: int = 0) -> Watch:
    return Watch(spec, timeline_of(spec, now()).bounds, windows=windows, lag=lag, patience=1)


def test_a_window_is_overdue_once_the_source_has_passed_it(spec: Spec) -> None:
    stream = watch(spec, windows=2)
    for end, late in ((START + DAY, True), (START, False)):
        moment = end.timestamp()
        os.utime("data/0.parquet", (moment, moment))
        assert (stream.overdue(lambda: 0) is not None) == late

    assert stream.overdue(lambda: 0) is None


def test_no_window_is_overdue_that_the_lag_keeps_open_or_that_is_beyond_the_last(spec: Spec) -> None:
    assert watch(spec, windows=2, lag=now()).overdue(lambda: 0) is None
    assert watch(spec, windows=2).overdue(lambda: 2) is None


def test_windows_that_come_are_not_overdue(spec: Spec) -> None:
    stream = watch(spec, windows=2)

    assert stream.overdue(lambda: 1) is None
    assert "window 2, which ended at 2026-01-03T00:00:00Z, has been due" in (stream.overdue(lambda: 1) or "")


def test_a_clock_that_is_set_back_hides_no_silence(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, before = watch(spec, windows=2), now()
    monkeypatch.setattr(stream_watch, "now", lambda: before - 86_400_000_000)

    assert "window 1" in (stream.overdue(lambda: 0) or "")


def test_a_source_that_cannot_be_asked_ends_no_stream_and_hides_no_silence(tmp_path: Path, spec: Spec) -> None:
    text = (tmp_path / "spec.yaml").read_text().replace("freshness: newer_file", "freshness: {file: progress}")
    (tmp_path / "spec.yaml").write_text(text)
    (tmp_path / "progress").write_text("2026-01-0")  # half of a line

    assert "window 1" in (watch(load("spec.yaml"), windows=2).overdue(lambda: 0) or "")
