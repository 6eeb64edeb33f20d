"""Releases as streams whose clock is a test's: files land and time passes as a list says, wherever TestStream runs.

Flink takes its steps before what came before is done. So a file lands only when all windows are published that close
before it does.
"""

import json
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.testing import test_stream
from apache_beam.utils.timestamp import Timestamp

from pipelines.epochs.stream import StreamRelease, stream_job
from pipelines.spec.load import Spec, load
from pipelines.spec.times import microseconds
from pipelines.store.store import Store

LAG = timedelta(minutes=1)
TICK = b""
PATIENCE = 120.0
"""Seconds; more than windows take to be published on a busy machine."""


Steps = Sequence[str | datetime]
"""Each step is the name of a file that moves from `coming` to `data`, or a time of the clock."""


def play(streams: Mapping[Path, Steps], *, shards: int, flags: Sequence[str], waits: bool = True) -> None:
    """Run streams, all in one pipeline, until each has published all windows that close within its steps.

    Args:
        streams: Steps of each stream. The path of its spec identifies a stream; all paths in a spec are absolute.
        waits: Whether a file waits for the windows before it; not on a runner that takes one step after another.
    """
    options = PipelineOptions([*flags])
    options.view_as(StandardOptions).streaming = True
    with beam.Pipeline(options=options) as pipeline:
        for number, (spec_path, steps) in enumerate(streams.items()):
            move(spec_path.parent, str(steps[0]))  # columns are read from the first files
            spec = load(str(spec_path))
            clock, windows = _clock(spec, spec_path.parent, steps, waits=waits)
            job = stream_job(spec, Store(spec.output.public, spec.output.private), shards=shards)
            release = StreamRelease(spec, job, windows=windows, lag=LAG // timedelta(microseconds=1))
            pipeline | f"Clock{number}" >> clock | f"Land{number}" >> beam.Map(_land) | f"Stream{number}" >> release


def _clock(spec: Spec, folder: Path, steps: Steps, *, waits: bool) -> tuple[beam.PTransform, int]:
    """The steps as what a runner plays, and how many windows close within them."""
    start, every = spec.schedule.start, spec.schedule.every
    clock = test_stream.TestStream(coder=BytesCoder()).advance_watermark_to(Timestamp(start / 1_000_000))
    windows = 0
    for step in steps:
        if isinstance(step, str):
            told = [str(folder), step, spec.output.public, spec.output.private, windows if waits else 0]
            clock.add_elements([json.dumps(told).encode()])
            clock.add_elements([TICK])  # a file is taken at the second poll
        else:
            windows = max(windows, (microseconds(step - LAG) - start) // every)
            clock.advance_watermark_to(Timestamp(step.timestamp()))
            clock.add_elements([TICK])  # the files of this poll
            clock.add_elements([TICK])  # are known to be complete at this one
    return clock.advance_watermark_to_infinity().with_output_types(bytes), windows


def _land(step: bytes) -> None:
    """Let a file land when its time has come, or only tick."""
    if step == TICK:
        return
    folder, name, public, private, windows = json.loads(step)
    end = time.monotonic() + PATIENCE
    while published(Store(public, private)) < windows:
        if time.monotonic() > end:
            raise TimeoutError(f"{name}: window {windows} was not published before it")
        time.sleep(0.02)
    move(Path(folder), name)


def move(folder: Path, name: str) -> None:
    """Move a file from `coming` to `data` unless this was done; a runner may try again."""
    if (folder / "coming" / name).exists():
        (folder / "coming" / name).rename(folder / "data" / name)


def published(store: Store) -> int:
    """Return the number of published windows."""
    commits = store.commits()
    return commits[-1].windows if commits else 0
