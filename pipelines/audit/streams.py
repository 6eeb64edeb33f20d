"""Layer: a stream publishes what scheduled runs publish from the same files.

The sensitivity layer attacks the stages of a scheduled run. Here one file arrives in each of some windows, and the same
release is made twice with the same noise: by a run after each window, and by a stream, on a runner that plays the
clock. Their nodes must be equal, so that what holds for runs holds for streams: late and repeated rows, bounds from
window to window, rows of one unit in several files.
"""

import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from random import Random

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.testing import test_stream
from apache_beam.utils.timestamp import Timestamp

from pipelines.audit.files import write
from pipelines.audit.findings import LayerResult
from pipelines.audit.kills import NodeRows, rows_of, run_until
from pipelines.audit.lives import Life, neighbours
from pipelines.audit.mutations import corpus
from pipelines.audit.prepared import Prepared
from pipelines.audit.shared_noise import SharedNoise, wide
from pipelines.audit.stages import Epochs
from pipelines.audit.whole import emptied
from pipelines.epochs.stream import StreamRelease, stream_job
from pipelines.store.store import store_of
from transforms.common.errors import SlackwaterError

WINDOWS = 5
LAG = 60_000_000
KINDS = ("one change in each epoch", "late and repeated rows", "twice the span", "a span", "at a distance")
"""Kinds of lives that a stream is tried with: their rows come with several files."""


def check_streams(ready: Prepared, choose: Random) -> LayerResult:
    """Release some lives by runs and by a stream, and compare their nodes.

    Args:
        ready: The copy of a spec.
        choose: Source of random choices.
    """
    windows = min(WINDOWS, ready.setting.timeline.windows)
    lives = {kind: life for kind, life in corpus(ready.setting, choose) if kind in KINDS}
    faults, nodes = dict[str, None](), 0
    for kind, life in lives.items():
        epochs = _delivered(life, ready, windows)
        try:
            one, two = (_released(ready, epochs, made) for made in (_by_runs, _by_stream))
        except SlackwaterError as error:
            faults[f"a release fails: {error}"] = None
            continue
        nodes += len(one)
        if sorted(one) != sorted(two):
            faults[f"{kind}: a stream publishes other nodes than runs"] = None
    return LayerResult(
        name="streams",
        question="Does a stream publish what runs publish from the same files?",
        tried={"lives": len(lives), "nodes compared": nodes},
        faults=(*faults,),
    )


def _delivered(life: Life, ready: Prepared, windows: int) -> Epochs:
    """Return the rows of the life and of other units, one file for each window."""
    left, _ = neighbours(replace(life, cuts=tuple(range(1, windows + 1))), ready.setting)
    return left


def _released(ready: Prepared, epochs: Epochs, made: Callable[[Prepared, list[tuple[str, str]]], None]) -> NodeRows:
    """Release files of some epochs with noise that depends on the node alone; return the published nodes."""
    data = emptied(ready.spec)
    staged = ready.spec.base / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir()
    suffix = Path(ready.spec.changelog.source.paths[0]).suffix
    files = []
    for number, (rows, _) in enumerate(epochs):
        write(ready.spec, ready.stages.columns, rows, staged / f"{number:02d}{suffix}")
        files.append((str(staged / f"{number:02d}{suffix}"), str(data / f"{number:02d}{suffix}")))
    said = StringIO()
    shared = SharedNoise(universe=ready.stages.universe, reach=wide(ready.stages.thresholds))
    with shared.used(), redirect_stdout(said), redirect_stderr(said):
        made(ready, files)
    return rows_of(ready)


def _by_runs(ready: Prepared, files: list[tuple[str, str]]) -> None:
    for number, file in enumerate(files):
        land(file)
        run_until(ready, number + 1)


def _by_stream(ready: Prepared, files: list[tuple[str, str]]) -> None:
    """Release by a stream: each file is found twice before its window closes, as by two polls."""
    spec, bounds = ready.spec, ready.setting.timeline.bounds
    store = store_of(spec.output)
    land(files[0])  # the job is planned with a first file
    job = stream_job(spec, store, shards=2)
    clock = test_stream.TestStream().advance_watermark_to(_moment(bounds.start))
    for number, file in enumerate(files):
        clock.add_elements([file])
        clock.add_elements([("", "")])
        clock.advance_watermark_to(_moment(bounds.end(number + 1) + LAG + 1_000_000))
        clock.add_elements([("", "")])
        clock.add_elements([("", "")])
    clock.advance_watermark_to_infinity()
    options = PipelineOptions(["--runner=BundleBasedDirectRunner"])
    options.view_as(StandardOptions).streaming = True
    with beam.Pipeline(options=options) as pipeline:
        pipeline | clock | beam.Map(land) | StreamRelease(spec, job, windows=len(files), lag=LAG)
    store.show()


def land(file: tuple[str, str]) -> str:
    """Move a file to its place, unless it is there."""
    staged, path = file
    if staged and Path(staged).exists():
        Path(staged).rename(path)
    return path


def _moment(microseconds: int) -> Timestamp:
    return Timestamp(micros=microseconds)
