"""`slackwater run`: release the windows that have closed, or, as a stream, window after window as they close."""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import partial
from textwrap import wrap
from typing import Any

from apache_beam.io.filesystems import FileSystems

from pipelines.common.arguments import Moment, SpecLike, duration_of, moment_of, refuse_small
from pipelines.common.errors import ArgumentError
from pipelines.common.value import Value
from pipelines.epochs.batch import run_release, submit_release
from pipelines.epochs.calendar_bounds import moved
from pipelines.epochs.due import due
from pipelines.epochs.epoch import Start, fill_tables, publish_epoch, start_of
from pipelines.epochs.failures import failures_kept
from pipelines.epochs.flags import is_rehearsal, is_streaming
from pipelines.epochs.input_quality import judge
from pipelines.epochs.job import Job, job_of, timeline_of
from pipelines.epochs.killed import clean
from pipelines.epochs.others import note, show_others
from pipelines.epochs.plans import committed_plan
from pipelines.epochs.settled import refuse_another, warn_of_other_zones
from pipelines.epochs.source_progress import source_passed, waits
from pipelines.epochs.stream import Pace, run_stream, stream_job
from pipelines.run.written import write_again
from pipelines.sinks.epochs import refuse_unusable_tables
from pipelines.spec.load import Spec
from pipelines.spec.times import moment_text, now
from pipelines.store.attempt import RowsRead
from pipelines.store.commit import Commit
from pipelines.store.record import History
from pipelines.store.store import Store, store_of
from privacy.accounting.accounting import Budget
from privacy.counted import counted
from transforms.common.dates import utc_name
from transforms.sources.inspection import refuse_changed


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedEpoch:
    """An epoch as the public manifest shows it, without the sources and the state that its private record names.

    Attributes:
        epoch: 1, 2, ...
        start, until: Start of its first window and end of its last one; microseconds since 1970, UTC.
        loss: Epsilon and delta of the whole release.
        statement: The claim of the whole release in words, with its conditions.
        claim: The claim with its first condition: whether the data may react to published numbers.
    """

    epoch: int
    start: int
    until: int
    loss: Budget
    statement: str
    claim: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran(Value):
    """Result of a run.

    Attributes:
        release: Name of the release.
        windows: Number of windows that this run published; 0 if none was due. For a stream: of all published windows.
        public: The folder that is safe to publish.
        files: Paths of the published files of this epoch, nodes and estimates.
        epoch: The epoch; None if nothing was due, and for a stream.
        how: How the run ended, in words.
        read: Path of the private file with the number of rows read, by file; None if nothing was due, and for a stream.
    """

    release: str
    windows: int
    public: str
    read: str | None = None
    files: tuple[str, ...] = ()
    epoch: PublishedEpoch | None = None
    how: str

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater run --json`."""
        document = {"release": self.release, "windows": self.windows, "public": self.public, "files": [*self.files]}
        if self.epoch is None:
            return document
        epoch = {"epoch": self.epoch.epoch, "until": moment_text(self.epoch.until)}
        return {**document, **epoch, "loss": asdict(self.epoch.loss), "statement": self.epoch.statement}

    def text(self) -> str:
        """Return the text that `slackwater run` prints."""
        epoch = self.epoch
        if epoch is None:
            return f"{self.release}: {self.how}"
        head = (
            f"{self.release}: epoch {epoch.epoch}, {counted(self.windows, 'window')} released, "
            f"{utc_name(epoch.start)} to {utc_name(epoch.until)}, {self.how}"
        )
        conditions = "All conditions of the claim: manifest.json, slackwater plan --explain."
        files = [f"  {path}" for path in self.files]
        read = f"Number of rows that the run read from each file (keep it private): {self.read}"
        return "\n".join([head, *wrap(epoch.claim, 120), conditions, *files, read])


def run(
    spec: SpecLike,
    *,
    until: Moment = None,
    shards: int | None = None,
    poll: timedelta | None = None,
    lag: timedelta | None = None,
    assume_complete: bool = False,
    options: Sequence[str] = (),
) -> Ran:
    """Sample the noise of the windows that have closed, and publish them. Published numbers are final.

    The noise of a number is sampled once. A second call has nothing to do until the next window closes, and the next
    call completes a call that was killed.

    Args:
        spec: The path of a spec, or what `load` returns.
        until: Publish only windows that end at or before this moment. None: now.
        shards: Number of parts into which privacy units are split, in the first run. None: by the size of the input.
        poll: For a stream: time between two polls for new files. None: 10 seconds.
        lag: For a stream: how long after a window's end its files may still arrive. None: three polls.
        assume_complete: Publish windows that are over by the clock, even if `changelog.freshness` does not confirm it.
        options: Beam's pipeline options as on the command line, such as `--runner=FlinkRunner`. With `--streaming`
            windows are published as they close, and the call ends with the schedule.

    Raises:
        SpecError: The spec, an argument or an option is wrong.
        InputError: The data cannot be used.
        RefusedError: The folders hold another release, or another run was first.

    Example:
        `run("wards.yaml").windows` is the number of new windows.
    """
    end, flags, pace = moment_of("until", until), [*options], pace_of(shards, poll, lag, options)
    if pace is not None:
        return _stream(spec, end, pace, shards, assume_complete, flags)
    found, moment = due(spec, end, flags, assume_complete=assume_complete)
    return _once(found, moment, shards, flags)


def pace_of(shards: int | None, poll: timedelta | None, lag: timedelta | None, options: Sequence[str]) -> Pace | None:
    """Check arguments of a run, and return how its stream runs; None if it is not a stream.

    Args:
        shards, poll, lag, options: As of `run`.

    Raises:
        SpecError: An argument or an option is wrong, or an argument of streams is given to another run.
    """
    refuse_small("shards", shards)
    pace = Pace.of(duration_of("poll", poll), duration_of("lag", lag))
    if is_streaming(options):
        return pace
    if poll is not None or lag is not None:
        raise ArgumentError.of_problems([("poll", " and --lag are for streams: give --streaming too")])
    return None


def _once(spec: Spec, until: int, shards: int | None, flags: list[str]) -> Ran:
    store = store_of(spec.output)
    with failures_kept(spec):
        if not is_rehearsal(flags):
            refuse_unusable_tables(spec, store)
        history = store.open()
        if history is not None:
            refuse_another(spec, history.commits)
            store.show()  # publish what a killed run has committed, without sampling other noise
            if history.shown < len(history.commits):
                print(
                    f"slackwater: published epoch {history.last.epoch}, which an earlier run committed", file=sys.stderr
                )
        elif not is_rehearsal(flags):
            show_others(spec)
        if not is_rehearsal(flags):
            clean(store)  # remove rows of people that killed runs have left, even if this run publishes nothing
        commits = () if history is None else history.commits
        if other := moved(spec, commits):
            print(f"slackwater: {other}", file=sys.stderr, flush=True)
        released = 0 if history is None else history.last.windows
        waiting = None
        timeline = timeline_of(spec, until, commits)
        if timeline.windows > released and (passed := source_passed(spec)) is not None:
            over, timeline = timeline, timeline_of(spec, min(until, passed), commits)
            waiting = waits(spec, over, max(timeline.windows, released), passed)
        if timeline.windows <= released:
            if not is_rehearsal(flags):
                fill_tables(spec, store)  # in case a run was killed before it did
                if history is not None:
                    write_again(spec)
            return _nothing_new(spec, store, history, waiting)
        if waiting is not None:
            print(f"slackwater: {waiting}", file=sys.stderr, flush=True)
        began = time.monotonic()
        start = start_of(spec, store, commits)
        warn_of_other_zones(spec, start.before)
        job = job_of(spec, replace(timeline, released=start.released), shards=shards, before=start.before)
        if is_rehearsal(flags):
            return _rehearsed(spec, store, start, job, flags)
        note(spec, store)
        commit = publish_epoch(spec, store, start, job, partial(_make, spec, job, start, flags))
        note(spec, store)
        fill_tables(spec, store)
        write_again(spec)
    return _published(spec, store, commit, f"in {time.monotonic() - began:.1f} s")


def _rehearsed(spec: Spec, store: Store, start: Start, job: Job, flags: list[str]) -> Ran:
    """Submit the job only to be checked or written down; publish nothing."""
    submit_release(
        job,
        folder=FileSystems.join(store.private, "attempts", "none"),
        format_=spec.output.format,
        flags=flags,
        past=start.past,
        keep=True,
    )
    return _valid(spec)


def _stream(
    spec: SpecLike, end: int | None, pace: Pace, shards: int | None, assume_complete: bool, flags: list[str]
) -> Ran:
    """Release due windows, then each window as it closes."""
    closed, in_batch = now() - pace.lag, [flag for flag in flags if flag != "--streaming"]
    spec, until = due(spec, closed if end is None else min(closed, end), in_batch, assume_complete=assume_complete)
    ran = _once(spec, until, shards, in_batch)
    store = store_of(spec.output)
    commits = store.commits()
    windows = spec.schedule.windows if end is None else timeline_of(spec, end, commits).windows
    if windows is not None and windows <= (commits[-1].windows if commits else 0):
        return ran
    with failures_kept(spec, done="published windows stay, and the next run continues from there"):
        job = stream_job(spec, store, shards=shards)
        if not is_rehearsal(flags):
            note(spec, store)
        run_stream(spec, job, windows=windows, pace=pace, flags=flags)
        commits = store.commits()
        if commits and not is_rehearsal(flags):
            write_again(spec)
    if is_rehearsal(flags):
        return _valid(spec)
    done = commits[-1].windows if commits else 0
    how = f"the stream has ended; {spec.output.public} holds {counted(done, 'window')}"
    return Ran(release=spec.release, windows=done, public=spec.output.public, how=how)


def _make(spec: Spec, job: Job, start: Start, flags: list[str], folder: str, keep: bool) -> RowsRead:
    """Run the pipeline into an attempt's folder; raise if the input is not good enough to be published."""
    began = time.monotonic()
    diagnosis = run_release(job, folder=folder, format_=spec.output.format, flags=flags, past=start.past, keep=keep)
    took = time.monotonic() - began
    judge(spec, job, diagnosis, folder)
    refuse_changed(job.layout)
    return RowsRead(rows=diagnosis.rows, dead=diagnosis.dead, seconds=took)


def _nothing_new(spec: Spec, store: Store, history: History[Commit] | None, waiting: str | None) -> Ran:
    if history is not None and history.shown < len(history.commits):
        return _published(spec, store, history.last, "as an earlier run had committed them")
    if waiting is not None:
        return _nothing_due(spec, waiting)
    if history is None:
        return _nothing_due(spec, "no window has closed yet")
    windows = history.last.windows
    if windows == spec.schedule.windows:
        return _nothing_due(spec, f"all {counted(windows, 'window')} of the schedule are published")
    return _nothing_due(spec, f"{counted(windows, 'window')} closed so far, all are published")


def _published(spec: Spec, store: Store, commit: Commit, how: str) -> Ran:
    plan = committed_plan(spec, store.commits())
    return Ran(
        release=spec.release,
        windows=commit.windows - commit.released,
        public=spec.output.public,
        read=FileSystems.join(spec.output.private, "diagnostics", "read.json"),
        files=tuple(store.shown.paths(commit)),
        epoch=PublishedEpoch(
            epoch=commit.epoch,
            start=commit.start,
            until=commit.until,
            loss=commit.loss,
            statement=commit.statement,
            claim=f"{plan.claim} {plan.conditions[0]}",
        ),
        how=how,
    )


def _nothing_due(spec: Spec, why: str) -> Ran:
    return Ran(release=spec.release, windows=0, public=spec.output.public, how=f"nothing is due, {why}")


def _valid(spec: Spec) -> Ran:
    how = "the job is valid; nothing was run, and nothing published"
    return Ran(release=spec.release, windows=0, public=spec.output.public, how=how)
