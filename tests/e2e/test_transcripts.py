"""Streams written down (tests/streams): what lands, how far time is, and the sums of each window, on every runner.

A transcript is replayed as scheduled runs, and as a stream with the clock of a TestStream on the runners that know it.
`faults.yaml` lists what is known to be wrong of a runner.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
import yaml
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.testing import test_stream
from apache_beam.utils.timestamp import Timestamp

from benchmarks.flink.live import leaves
from pipelines.spec import load
from pipelines.store import Store
from pipelines.streaming import StreamRelease, stream_job
from tests.e2e import prism
from tests.e2e.specs import DAY, START, CommandLine, Row, mutation, write, write_spec
from tests.e2e.test_streaming import land

FOLDER = Path(__file__).resolve().parents[1] / "streams"
FAULTS = yaml.safe_load((FOLDER / "faults.yaml").read_text())
TRANSCRIPTS = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "faults")
LAG = timedelta(minutes=1)
WARDS = ("a", "b", "other")
TICK: tuple[str, list[Row]] = ("", [])


def rows_of(step: Sequence[Sequence[Any]]) -> list[Row]:
    """[entry, time, ward before, ward after]; every state is of the same age."""
    return [mutation(entry, at, before and (before, 1), after and (after, 1)) for entry, at, before, after in step]


def scheduled(steps: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    """A run wherever the time has passed a window's end, one for each window."""
    closed = 0
    for number, step in enumerate(steps):
        if "land" in step:
            write(Path(f"data/{number:02}.parquet"), rows_of(step["land"]))
        while "watermark" in step and START + (closed + 1) * DAY + LAG <= step["watermark"]:
            closed += 1
            until = START + closed * DAY
            said = CommandLine(Path.cwd(), capsys)("run", "spec.yaml", f"--until={until:%Y-%m-%dT%H:%M:%SZ}")
            assert said.code == 0, said.err


def streamed(steps: list[dict[str, Any]], flags: list[str]) -> None:
    first, clock = rows_of(steps[0]["land"]), test_stream.TestStream()
    write(Path("data/00.parquet"), first)  # columns are told by what is there at the start
    clock.advance_watermark_to(Timestamp(START.timestamp()))
    moments: list[datetime] = []
    for number, step in enumerate(steps):
        if "land" in step:
            clock.add_elements([(f"data/{number:02}.parquet", rows_of(step["land"]))])
            clock.add_elements([TICK])  # a file is taken at the second look
        if "watermark" in step:
            moments.append(step["watermark"])
            clock.advance_watermark_to(Timestamp(step["watermark"].timestamp()))
            clock.add_elements([TICK])  # what is there at this look
            clock.add_elements([TICK])  # is known to be all at this one
    clock.advance_watermark_to_infinity()
    spec = load("spec.yaml")
    job = stream_job(spec, Store(spec.output.public, spec.output.private), shards=2)
    options = PipelineOptions(flags)
    options.view_as(StandardOptions).streaming = True
    windows = (moments[-1] - LAG - START) // DAY
    with beam.Pipeline(options=options) as pipeline:
        release = StreamRelease(spec, job, windows=windows, lag=LAG // timedelta(microseconds=1))
        pipeline | clock | beam.Map(land) | release


RUNNERS = {
    "runs": None,
    "BundleBasedDirectRunner": lambda: ["--runner=BundleBasedDirectRunner"],
    "PrismRunner": prism.flags,
}


def cases() -> list[Any]:
    found = []
    for runner in RUNNERS:
        for name in TRANSCRIPTS:
            why = [fault["why"] for fault in FAULTS if (fault["runner"], fault["transcript"]) == (runner, name)]
            marks = [pytest.mark.skip(reason=f"{runner}: {why[0]}")] if why else []
            marks += [prism.NO_GO, pytest.mark.xdist_group("live")] if runner == "PrismRunner" else []
            found.append(pytest.param(runner, name, marks=marks, id=f"{name} on {runner}"))
    return found


@pytest.mark.parametrize(("runner", "name"), cases())
def test_a_transcript(runner, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    write_spec(tmp_path, ("  until: 2026-01-06T00:00:00Z\n", ""))
    *steps, last = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    flags = RUNNERS[runner]

    if flags is None:
        scheduled(steps, capsys)
    else:
        streamed(steps, flags())

    (sums,) = leaves(tmp_path).values()
    expected = [[window.get(ward, 0) for ward in WARDS] for window in last["expect"]]
    assert [sums[place : place + 3] for place in range(0, len(sums), 3)] == expected
    commits = Store("public", "private").commits()
    assert [commit.windows for commit in commits] == list(range(1, len(expected)))
