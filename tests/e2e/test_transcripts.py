"""Streams written down (tests/streams): what lands, how far time is, and the sums of each window, on every runner.

A transcript is replayed as scheduled runs, and as a stream with the clock of a TestStream on the runners that know it.
`faults.yaml` lists known faults of runners.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.flink.live import exact_sums
from pipelines.store.store import Store
from templates.flink.local import Cluster
from tests.e2e import prism
from tests.e2e.flink import ON_FLINK, one_at_a_time
from tests.e2e.played import LAG, Steps, move, play
from tests.e2e.specs import DAY, NO_NOISE, START, CommandLine, Row, mutation, write, write_spec
from tests.searches import TIMES

FOLDER = Path(__file__).resolve().parents[1] / "streams"
FAULTS = yaml.safe_load((FOLDER / "faults.yaml").read_text()) or []
TRANSCRIPTS = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "faults")
WARDS = ("a", "b", "other")
PATHS = {"path": "data/", "public": "public", "private": "private"}

RUNNERS: dict[str, list[Any]] = {
    "scheduled runs": [],
    "BundleBasedDirectRunner": [],
    "PrismRunner": [prism.WITH_GO, pytest.mark.xdist_group("live")],
    "FlinkRunner": ON_FLINK,
}
"""With the marks of their tests."""


def rows_of(step: Sequence[Sequence[Any]]) -> list[Row]:
    """[entry, time, ward before, ward after]; every state is of the same age."""
    return [mutation(entry, at, before and (before, 1), after and (after, 1)) for entry, at, before, after in step]


def scheduled(folder: Path, steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    """A run wherever the time has passed a window's end, one for each window."""
    closed = 0
    for step in steps:
        if isinstance(step, str):
            move(folder, step)
            continue
        while START + (closed + 1) * DAY + LAG <= step:
            closed += 1
            until = START + closed * DAY
            said = CommandLine(folder, capsys)("run", "spec.yaml", f"--until={until:%Y-%m-%dT%H:%M:%SZ}")
            assert said.code == 0, said.err


def cases() -> list[Any]:
    found = []
    for runner, marks in RUNNERS.items():
        # Other tests have many scheduled runs.
        for name in TRANSCRIPTS[:: 2 if TIMES == 1 and runner == "scheduled runs" else 1]:
            skipped = [pytest.mark.skip(reason=f"{runner}: {why}") for why in faults(runner, name)]
            found.append(pytest.param(runner, name, marks=[*marks, *skipped], id=f"{name} on {runner}"))
    return found


def faults(runner: str, name: str) -> list[str]:
    """Why a transcript tells nothing on a runner, if it does not."""
    return [fault["why"] for fault in FAULTS if (fault["runner"], fault["transcript"]) == (runner, name)]


def transcript(name: str) -> tuple[list[dict[str, Any]], list[dict[str, int]]]:
    """Return the steps of a transcript, and the sums of each window."""
    *steps, last = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return steps, last["expect"]


def prepare(name: str, folder: Path) -> tuple[Path, Steps]:
    """The spec's path, and the steps; the files that will land are in `coming`."""
    (folder / "data").mkdir(parents=True)
    paths = [(f"{key}: {name}", f"{key}: {folder}/{name}") for key, name in PATHS.items()]
    steps: list[str | datetime] = []
    for number, step in enumerate(transcript(name)[0]):
        if "land" in step:
            write(folder / f"coming/{number:02}.parquet", rows_of(step["land"]))
            steps.append(f"{number:02}.parquet")
        else:
            steps.append(step["watermark"])
    return write_spec(folder, ("  until: 2026-01-06T00:00:00Z\n", ""), NO_NOISE, *paths), steps


@pytest.fixture(scope="module")
def on_flink(flink: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the folder of each transcript, which one job has played."""
    folder = tmp_path_factory.mktemp("transcripts")
    names = [name for name in TRANSCRIPTS if not faults("FlinkRunner", name)]
    play(dict(prepare(name, folder / name) for name in names), shards=2, flags=one_at_a_time(flink))
    return folder


@pytest.mark.parametrize(("runner", "name"), cases())
def test_a_transcript(runner, name, tmp_path, capsys, request):
    folder = tmp_path
    if runner == "FlinkRunner":
        folder = request.getfixturevalue("on_flink") / name
    elif runner == "scheduled runs":
        scheduled(folder, prepare(name, folder)[1], capsys)
    else:
        flags = prism.flags() if runner == "PrismRunner" else [f"--runner={runner}"]
        play(dict([prepare(name, folder)]), shards=2, flags=flags)

    found: dict[datetime, dict[str, float]] = {}
    for (*_, end, ward), value in exact_sums(folder).items():
        found.setdefault(end, {})[ward] = value
    expected = [{ward: window.get(ward, 0) for ward in WARDS} for window in transcript(name)[1]]
    assert [found[end] for end in sorted(found)] == expected
    commits = Store(str(folder / "public"), str(folder / "private")).commits()
    assert [commit.windows for commit in commits] == list(range(1, len(expected)))
