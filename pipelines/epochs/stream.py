"""A release as a stream: windows are published as they close, from files as they arrive.

    ticks -> PollFiles -> CloseWindows -> Publish
    (clock)  (files)  (by shard)     (release store)

Windows that are due when the stream begins are released in batch. The stream continues from the state in the store, and
a restarted stream continues from what was published. The stream uses the clock of the machine that polls for files: a
window closes with all files that existed `lag` after its end. Later rows count in the next window, by the rule for
late rows that all runs have.
"""

import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.flink.flink_streaming_impulse_source import FlinkStreamingImpulseSource
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineState
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.utils.timestamp import Timestamp

from pipelines.epochs.calendar_bounds import bounds_of
from pipelines.epochs.epoch import fill_tables, start_of
from pipelines.epochs.flags import begin_pipeline, is_rehearsal
from pipelines.epochs.job import Job, job_of
from pipelines.epochs.killed import clean
from pipelines.epochs.plans import committed_plan
from pipelines.epochs.settled import refuse_another, refuse_another_plan, warn_of_other_zones
from pipelines.epochs.stream_publish import Committed, Publish
from pipelines.epochs.stream_watch import Watch
from pipelines.spec.load import Spec
from pipelines.spec.times import now
from pipelines.store.store import Store, store_of
from privacy.counted import counted
from transforms.aggregation.queries import Timeline
from transforms.common.errors import InputError, RefusedError, SlackwaterError, SpecError
from transforms.sources.formats.table import FORMATS
from transforms.streams.close_windows import CloseWindows
from transforms.streams.file_batches import PollFiles

_LAST_POLLS = 5
"""Polls after the end of the last window and its lag; two or three are enough."""

_CANCELLED = "state FAILED: org.apache.flink.runtime.client.JobCancellationException"
"""Message of Beam's job server about a cancelled Flink job."""

_ENDS_WITH_US = "PrismRunner"
"""Runner whose server is our process. Jobs of other runners continue without us, so starting a second is no remedy."""

_PATIENT_POLLS = 60
_LEAST_PATIENCE = 600_000_000

ENDLESS = 2**40
"""Windows of a schedule without an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a stream runs; microseconds.

    Attributes:
        poll: Time between two polls for new files.
        lag: How long after a window's end files with its rows may arrive. The window closes up to two polls later,
            since a file is read after the second poll that finds it.
        patience: How long a window may be due without being published; 60 polls, at least 10 minutes.
    """

    poll: int
    lag: int
    patience: int

    @staticmethod
    def of(poll: int | None, lag: int | None) -> "Pace":
        poll = 10_000_000 if poll is None else poll
        patience = max(_PATIENT_POLLS * poll, _LEAST_PATIENCE)
        return Pace(poll=poll, lag=3 * poll if lag is None else lag, patience=patience)


def stream_job(spec: Spec, store: Store, *, shards: int | None = None) -> Job:
    """Return the job of a stream that continues after the last published epoch.

    Args:
        spec: Spec of the release.
        store: Its store.
        shards: Number of shards in the first run; None: by the size of the input.

    Raises:
        SpecError, InputError: As `job_of`.
        RefusedError: The state of the last epoch is missing.
    """
    if FORMATS[spec.changelog.source.format].snapshots:
        raise SpecError("changelog.format: snapshots have no streams; start `slackwater run` after each of them")
    history = store.open()
    start = start_of(spec, store, () if history is None else history.commits)
    before, released = start.before, start.released
    warn_of_other_zones(spec, before)
    bounds = bounds_of(spec, () if history is None else history.commits)
    timeline = Timeline(start=bounds.start, every=bounds.every, ends=bounds.ends, windows=released, released=released)
    job = job_of(spec, timeline, shards=shards, before=before)
    store.show()  # publish what a killed run has committed, and make the private folder, closed to others
    # The stream itself finds files that are there and not read yet.
    return replace(job, layout=replace(job.layout, files=() if before is None else before.read))


def run_stream(spec: Spec, job: Job, *, windows: int | None, pace: Pace, flags: Sequence[str]) -> None:
    """Publish window after window; return when `windows` are published, or never.

    Args:
        spec: Spec of the release.
        job: The job, whose timeline has the published windows and whose layout has the files that they have read.
        windows: Number of windows; None: all windows of the schedule.
        pace: Times of the stream.
        flags: Beam's pipeline options.

    Raises:
        SlackwaterError: Why the stream ended, if a person can correct it.
    """
    store = store_of(spec.output)
    pipeline = begin_pipeline(flags)
    release = StreamRelease(spec, job, windows=windows, lag=pace.lag, poll=pace.poll)
    timeline = job.aggregation.timeline
    end = None if windows is None else timeline.bounds.end(windows) + pace.lag
    pipeline | "Ticks" >> _ticks(pipeline.options, pace.poll, end) | release
    # Running the pipeline removes the option.
    ends_with_us = pipeline.options.view_as(StandardOptions).runner == _ENDS_WITH_US
    result = pipeline.run()
    if is_rehearsal(flags):
        return
    watch = Watch(spec, timeline.bounds, windows=windows, lag=pace.lag, patience=pace.patience)
    while not _all_published(store, windows) and not PipelineState.is_terminal(result.state):
        told = watch.overdue(partial(_published, store))
        if told is not None and ends_with_us:
            result.cancel()
            raise SlackwaterError(f"{told}: the stream is ended; start it again to continue from there")
        if told is not None:
            print(f"slackwater: {told}; check its job on the runner", file=sys.stderr, flush=True)
        time.sleep(pace.poll / 1_000_000)
    if not _all_published(store, windows):
        try:
            result.wait_until_finish()  # raises what ended it
        except RuntimeError as error:
            if result.state != PipelineState.CANCELLED and _CANCELLED not in str(error):
                raise _own_error(str(error)) or error from None
        if windows is None:  # somebody has stopped it
            return
        raise SlackwaterError(
            f"the stream ended before the last of {counted(windows, 'window')} was published; run again to continue "
            "from there"
        )
    if not PipelineState.is_terminal(result.state):
        result.cancel()  # the ticks would continue; on Flink they end by themselves
    store.show()  # in case the worker that committed the last window did not
    clean(store)
    fill_tables(spec, store)


def _all_published(store: Store, windows: int | None) -> bool:
    """Return whether all windows are published; never true for windows without an end."""
    return windows is not None and _published(store) >= windows


def _published(store: Store) -> int:
    return max((commit.windows for commit in store.commits()[-1:]), default=0)


def _ticks(options: PipelineOptions, poll: int, end: int | None) -> beam.PTransform:
    """Return a source with about one tick for each poll; on Flink it ends some polls after the last window.

    On Flink, Flink itself makes the ticks: PeriodicImpulse would add to every checkpoint with each tick, and Beam's job
    server cannot cancel a job that it waits for.
    """
    if options.view_as(StandardOptions).runner != "FlinkRunner":
        return PeriodicImpulse(start_timestamp=Timestamp(micros=now()), fire_interval=poll / 1_000_000)
    # Each worker makes its share of the ticks; if the number of workers is unknown, the ticks have no end.
    sources = int(options.get_all_options(retain_unknown_options=True).get("parallelism") or 0)
    polls = 0 if end is None else max(0, end - now()) // poll + _LAST_POLLS
    return FlinkStreamingImpulseSource().set_interval_ms(max(poll // 1000, 1)).set_message_count(sources * polls)


def _own_error(error: str) -> SlackwaterError | None:
    """Return the error that a worker raised for a person to correct, from the message of the runner; None if none."""
    for kind in (InputError, RefusedError, SpecError):
        raised = re.search(rf"^(?:\S*\s)*?{kind.__module__}\.{kind.__name__}: (.+)$", error, re.MULTILINE)
        if raised:
            return kind(raised[1])
    return None


class StreamRelease(beam.PTransform):
    """Transform from ticks to the numbers of published windows, for other pipelines or a test's clock.

    Raises:
        RefusedError: The release has begun with another spec or plan.
    """

    def __init__(self, spec: Spec, job: Job, *, windows: int | None, lag: int, poll: int = 0) -> None:
        super().__init__()
        self._poll = poll
        self._spec = spec
        self._job = job
        self._lag = lag
        self._windows = ENDLESS if windows is None else windows

    def expand(self, ticks: beam.PCollection[Any]) -> beam.PCollection[int]:
        spec, job = self._spec, self._job
        store = store_of(spec.output)
        if commits := store.commits():
            refuse_another(spec, commits)
            refuse_another_plan(job, committed_plan(spec, commits))
        timeline = job.aggregation.timeline
        known = self._windows if timeline.ends is None else min(self._windows, len(timeline.ends))
        aggregation = replace(job.aggregation, timeline=replace(timeline, windows=known))
        committed = Committed(store)
        polled = PollFiles(
            job.layout,
            job.aggregation.projection,
            bad_rows=spec.changelog.bad_rows,
            diagnostics=FileSystems.join(spec.output.private, "diagnostics", "stream"),
            shards=job.shards,
            poll=self._poll,
            freshness=spec.changelog.freshness,
            lag=self._lag,
        )
        close = CloseWindows(aggregation, lag=self._lag, last_state=committed)
        # After years the files are many, and a step that does not poll for new ones needs none of them.
        return ticks | polled | close | Publish(spec, replace(job, layout=replace(job.layout, files=())))
