"""Live streams on Prism, which `--runner=DirectRunner` prefers if it is available."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.utils.timestamp import Timestamp

import pipelines.epochs.stream
from benchmarks.flink.live import exact_sums
from pipelines.epochs.stream import Pace, run_stream, stream_job
from pipelines.spec.load import load
from pipelines.store.store import Store
from tests.e2e.prism import WITH_GO, flags
from tests.e2e.specs import NO_NOISE, SPEC, CommandLine, changelog, contents, mutation, write, write_spec
from tests.pipelines.spec_text import changed
from transforms.common.errors import SlackwaterError

pytestmark = [WITH_GO, pytest.mark.xdist_group("live")]

ROOT = Path(__file__).resolve().parents[2]
EVERY = timedelta(seconds=2)
MORE = 4
"""Windows, after the kill."""

A_FILE = 1.0
"""Seconds; a slow machine gets no more work for the same time."""

PATIENCE = 300.0
"""Seconds, for a machine that does much else."""


def prepare(folder: Path) -> datetime:
    """The spec of a release that starts now and has no end, and its first file; the start."""
    start = datetime.fromtimestamp(int(time.time()) + 2, UTC)
    text = changed(
        "2026-01-01T00:00:00Z", f"{start:%Y-%m-%dT%H:%M:%SZ}", changed("every: 1d", f"every: {EVERY.seconds}s", SPEC)
    )
    (folder / "data").mkdir(parents=True)
    (folder / "spec.yaml").write_text(changed("  until: 2026-01-06T00:00:00Z\n", "", changed(*NO_NOISE, text)))
    write(folder / "data/000.parquet", [mutation(0, start - EVERY, None, ("a", 30))])
    return start


@pytest.fixture
def live() -> Iterator[Callable[[Path, Sequence[str]], subprocess.Popen[bytes]]]:
    """Yield a function that starts streams; all end with the test."""
    begun: list[subprocess.Popen[bytes]] = []

    def begin(folder: Path, options: Sequence[str]) -> subprocess.Popen[bytes]:
        begun.append(_live(folder, options))
        return begun[-1]

    yield begin
    for stream in begun:
        kill(stream)


def kill(stream: subprocess.Popen[bytes]) -> None:
    """Kill a stream and its Prism, which would outlive it."""
    with suppress(ProcessLookupError):
        os.killpg(stream.pid, signal.SIGKILL)
    stream.wait()


def _live(folder: Path, options: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pipelines", "run", "spec.yaml", "--streaming", "--poll=1s", "--lag=4s", *options]
    with (folder / "stream.log").open("ab") as log:
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True)


def test_a_killed_live_stream_continues_and_publishes_each_row_once(tmp_path, capsys, live):
    """Files land while windows close; the stream is killed between, and started again, until some windows later."""
    folder, other, options = tmp_path / "stream", tmp_path / "runs", flags()
    start, end, entry = prepare(folder), datetime.max.replace(tzinfo=UTC), 1
    before: dict[str, bytes] = {}
    lands = time.monotonic()
    deadline = lands + PATIENCE
    stream = live(folder, options)
    while stream.poll() is None:
        assert time.monotonic() < deadline, (folder / "stream.log").read_text()
        now = datetime.now(UTC)
        if now < end and time.monotonic() >= lands:
            lands = time.monotonic() + A_FILE
            rows = [mutation(entry, now, None, ("a", 30))]
            if entry > 3:
                rows.append(mutation(entry - 3, now, ("a", 30), ("b", 31)))
            write(folder / f"{entry:03}.parquet", rows).rename(folder / f"data/{entry:03}.parquet")
            entry += 1
        if not before and len(list((folder / "private/commits").glob("*.json"))) >= 2:
            kill(stream)
            before = contents(folder / "public")
            end = start + ((now - start) // EVERY + MORE) * EVERY
            options.append(f"--until={end:%Y-%m-%dT%H:%M:%SZ}")
            stream = live(folder, options)
        time.sleep(0.2)

    assert stream.returncode == 0, (folder / "stream.log").read_text()
    # What was being written when the stream was killed is a draft, in any folder.
    whole = {name: content for name, content in before.items() if not name.endswith(("manifest.json", ".draft"))}
    assert whole.items() <= contents(folder / "public").items()
    commits = Store(str(folder / "public"), str(folder / "private")).commits()
    # What closed while nothing ran is one epoch of the batch run that a stream begins with.
    windows = [commit.windows for commit in commits]
    assert windows[-1] == (end - start) // EVERY
    assert [commit.released for commit in commits] == [0, *windows[:-1]]
    assert len({source.path for commit in commits for source in commit.sources}) == entry
    # Nothing was late, so one run over all files sums the same.
    shutil.copytree(folder / "data", other / "data")
    shutil.copy(folder / "spec.yaml", other)
    said = CommandLine(other, capsys)("run", "spec.yaml", f"--until={end:%Y-%m-%dT%H:%M:%SZ}")
    assert said.code == 0, said.err
    assert exact_sums(folder) == exact_sums(other)
    assert any(exact_sums(folder).values())


def test_a_bad_file_ends_a_stream_with_one_line_about_the_file(tmp_path, live):
    """A second line states the consequence if a poll finds the file, and not the start of the stream."""
    prepare(tmp_path)
    (tmp_path / "data/bad.parquet").write_bytes(b"PAR1 and nothing of the kind")

    stream = live(tmp_path, flags())

    assert stream.wait(120) == 3, (tmp_path / "stream.log").read_text()
    told = [line for line in (tmp_path / "stream.log").read_text().splitlines() if line.startswith("slackwater: ")]
    assert told[0].startswith("slackwater: data/bad.parquet: the file cannot be read")
    assert told[1:] in ([], ["slackwater: nothing new was published: a file that cannot be read is never skipped"])


def test_a_stream_whose_polls_stop_ends_instead_of_waiting(tmp_path, monkeypatch):
    """All its windows are long over, and its only tick is the first."""
    write_spec(tmp_path)
    write(tmp_path / "data/0.parquet", changelog())
    monkeypatch.chdir(tmp_path)
    only_tick = PeriodicImpulse(start_timestamp=Timestamp.now(), fire_interval=1_000_000)
    monkeypatch.setattr(pipelines.epochs.stream, "_ticks", lambda *_: only_tick)
    spec = load("spec.yaml")
    job = stream_job(spec, Store(spec.output.public, spec.output.private))
    pace = Pace(poll=100_000, lag=0, patience=2_000_000)

    with pytest.raises(SlackwaterError, match=r"^window 1, which ended at .*, has been due for more than 2 s, and"):
        run_stream(spec, job, windows=None, pace=pace, flags=[*flags(), "--streaming"])
