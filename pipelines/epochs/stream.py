"""A release that goes on by itself: windows are published as they close, from files as they come.

    ticks -> PollFiles -> CloseWindows -> Publish
    (clock)  (files)  (by shard)     (release store)

What is due when the stream begins is released in batch; the stream takes over the store's state from there, and a
stream that is started again takes over from what was published. The clock of the stream is that of the machine that
polls for files: a window closes with all files that were there `lag` after its end, and rows that come later count in
the next one, by the rule for late rows that all runs have.
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
from pipelines.epochs.epoch import clean, fill_tables, start_of
from pipelines.epochs.flags import begin_pipeline, is_rehearsal
from pipelines.epochs.job import Job, job_of
from pipelines.epochs.plans import committed_plan
from pipelines.epochs.settled import refuse_another, refuse_another_plan
from pipelines.epochs.stream_publish import Committed, Publish
from pipelines.epochs.stream_watch import Watch
from pipelines.spec.load import Spec
from pipelines.spec.times import now
from pipelines.store.store import Store
from privacy.counted import counted
from transforms.aggregation.queries import Timeline
from transforms.common.errors import InputError, RefusedError, SlackwaterError, SpecError
from transforms.sources.formats.table import FORMATS
from transforms.streams.close_windows import CloseWindows
from transforms.streams.file_batches import PollFiles

_LAST_POLLS = 5
"""After the end of the last window and its lag; two or three are enough."""

_CANCELLED = "state FAILED: org.apache.flink.runtime.client.JobCancellationException"
"""What Beam's job server says of a job of Flink's that somebody has cancelled."""

_ENDS_WITH_US = "PrismRunner"
"""Its server is a process of ours. The jobs of others go on without us, and a second one would not mend the first."""

_PATIENT_POLLS = 60
_LEAST_PATIENCE = 600_000_000

ENDLESS = 2**40
"""Windows of a schedule without an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a stream runs; microseconds.

    Attributes:
        poll: how far apart the polls for new files are.
        lag: after a window's end, how long files may land that hold its rows. The window closes up to two polls later,
            since a file is taken by the second poll that finds it.
        patience: how long a window may be due and not come; 60 polls, but 10 minutes at least.
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
    """The job of a stream that goes on from what is published.

    Raises:
        SpecError, InputError: as `job_of`.
        RefusedError: the state that is needed is not there.
    """
    if FORMATS[spec.changelog.source.format].snapshots:
        raise SpecError("changelog.format: snapshots have no streams; start `slackwater run` after each of them")
    history = store.open()
    start = start_of(spec, store, () if history is None else history.commits)
    before, released = start.before, start.released
    bounds = bounds_of(spec, () if history is None else history.commits)
    timeline = Timeline(start=bounds.start, every=bounds.every, ends=bounds.ends, windows=released, released=released)
    job = job_of(spec, timeline, shards=shards, before=before)
    store.show()  # what was committed by a run that died; and the private folder is there, closed to others
    # What is there and not read yet is found by the stream itself.
    return replace(job, layout=replace(job.layout, files=() if before is None else before.read))


def run_stream(spec: Spec, job: Job, *, windows: int | None, pace: Pace, flags: Sequence[str]) -> None:
    """Publish window after window; returns when `windows` are published, or never.

    Args:
        job: its timeline's `released` windows are done, and its layout's files are those they have read.
        windows: None for all that the schedule has.

    Raises:
        SlackwaterError: what ended the stream, if that is something that a person can mend.
    """
    store = Store(spec.output.public, spec.output.private)
    pipeline = begin_pipeline(flags)
    release = StreamRelease(spec, job, windows=windows, lag=pace.lag, poll=pace.poll)
    timeline = job.aggregation.timeline
    end = None if windows is None else timeline.bounds.end(windows) + pace.lag
    pipeline | "Ticks" >> _ticks(pipeline.options, pace.poll, end) | release
    ends_with_us = pipeline.options.view_as(StandardOptions).runner == _ENDS_WITH_US  # a run takes that away
    result = pipeline.run()
    if is_rehearsal(flags):
        return
    watch = Watch(spec, timeline.bounds, windows=windows, lag=pace.lag, patience=pace.patience)
    while not _all_published(store, windows) and not PipelineState.is_terminal(result.state):
        told = watch.overdue(partial(_published, store))
        if told is not None and ends_with_us:
            result.cancel()
            raise SlackwaterError(f"{told}: the stream is ended; start it again, and it goes on from there")
        if told is not None:
            print(f"slackwater: {told}; see how its job fares there", file=sys.stderr, flush=True)
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
            f"the stream ended before the last of {counted(windows, 'window')} was published; run again, and it goes "
            "on from there"
        )
    if not PipelineState.is_terminal(result.state):
        result.cancel()  # the ticks would go on; Flink's end by themselves
    store.show()  # if the worker that committed the last window did not come to that
    clean(store)
    fill_tables(spec, store)


def _all_published(store: Store, windows: int | None) -> bool:
    """Never, for windows without an end."""
    return windows is not None and _published(store) >= windows


def _published(store: Store) -> int:
    return max((commit.windows for commit in store.commits()[-1:]), default=0)


def _ticks(options: PipelineOptions, poll: int, end: int | None) -> beam.PTransform:
    """One for each poll, or some more; on Flink some polls beyond the end, if there is one.

    On Flink they come from Flink itself: PeriodicImpulse leaves something in every checkpoint there with each tick.
    And Beam's job server cannot cancel a job that it waits for.
    """
    if options.view_as(StandardOptions).runner != "FlinkRunner":
        return PeriodicImpulse(start_timestamp=Timestamp(micros=now()), fire_interval=poll / 1_000_000)
    # Each of so many workers makes its share of the ticks; where that is not known they are without end.
    sources = int(options.get_all_options(retain_unknown_options=True).get("parallelism") or 0)
    polls = 0 if end is None else max(0, end - now()) // poll + _LAST_POLLS
    return FlinkStreamingImpulseSource().set_interval_ms(max(poll // 1000, 1)).set_message_count(sources * polls)


def _own_error(error: str) -> SlackwaterError | None:
    """The error that a worker raised for a person to mend, from what the runner says of it."""
    for kind in (InputError, RefusedError, SpecError):
        raised = re.search(rf"^(?:\S*\s)*?{kind.__module__}\.{kind.__name__}: (.+)$", error, re.MULTILINE)
        if raised:
            return kind(raised[1])
    return None


class StreamRelease(beam.PTransform):
    """Ticks in, the numbers of published windows out; what a pipeline of one's own, or a test's clock, takes.

    Raises:
        RefusedError: the release has begun, with another spec or plan than these.
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
        store = Store(spec.output.public, spec.output.private)
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
