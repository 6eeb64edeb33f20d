"""`slackwater run`: release the windows that have closed, or, as a stream, window after window as they close."""

import argparse
import sys
import time
from dataclasses import replace
from functools import partial

from apache_beam.io.filesystems import FileSystems

from pipelines.epochs.batch import run_release, submit_release
from pipelines.epochs.calendar_bounds import moved
from pipelines.epochs.due import due
from pipelines.epochs.epoch import Start, clean, fill_tables, publish_epoch, start_of
from pipelines.epochs.failures import failures_kept
from pipelines.epochs.flags import is_rehearsal, is_streaming
from pipelines.epochs.input_quality import judge
from pipelines.epochs.job import Job, job_of, timeline_of
from pipelines.epochs.results import Result, nothing_due, published, valid
from pipelines.epochs.settled import refuse_another
from pipelines.epochs.source_progress import complete, source_passed, waits
from pipelines.epochs.stream import Pace, run_stream, stream_job
from pipelines.sinks.epochs import refuse_unusable_tables
from pipelines.spec.load import Spec, load
from pipelines.spec.times import now
from pipelines.store.attempt import Reading
from pipelines.store.commit import History
from pipelines.store.known_releases import keep_note, known, refuse_second, write_down
from pipelines.store.store import Store
from privacy.counted import counted
from transforms.common.errors import SpecError


def run(arguments: argparse.Namespace, flags: list[str]) -> Result:
    return _stream(arguments, flags) if is_stream(arguments, flags) else _run(arguments, flags)


def is_stream(arguments: argparse.Namespace, flags: list[str]) -> bool:
    """
    Raises:
        SpecError: a flag of streams is given to a run that is none.
    """
    streaming = is_streaming(flags)
    if not streaming and (arguments.poll is not None or arguments.lag is not None):
        raise SpecError("--poll and --lag are for streams: give --streaming too")
    return streaming


def _run(arguments: argparse.Namespace, flags: list[str]) -> Result:
    spec, until = due(arguments, flags)
    store = Store(spec.output.public, spec.output.private)
    with failures_kept(spec):
        if not is_rehearsal(flags):
            refuse_unusable_tables(spec, store)
        history = store.open()
        if history is not None:
            refuse_another(spec, history.commits)
            store.show()  # if a run died after it had committed: publish that, and sample no other noise
            if history.shown < len(history.commits):
                print(
                    f"slackwater: published epoch {history.last.epoch}, which an earlier run committed", file=sys.stderr
                )
        elif not is_rehearsal(flags):
            show_others(spec)
        if not is_rehearsal(flags):
            clean(store)  # what runs that died have left holds rows of people, whether or not this one publishes
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
                fill_tables(spec, store)  # if a run died before it had
            return _nothing_new(spec, store, history, waiting)
        if waiting is not None:
            print(f"slackwater: {waiting}", file=sys.stderr, flush=True)
        began = time.monotonic()
        start = start_of(spec, store, commits)
        job = job_of(spec, replace(timeline, released=start.released), shards=arguments.shards, before=start.before)
        if is_rehearsal(flags):
            return _rehearsed(spec, store, start, job, flags)
        note(spec, store)
        commit = publish_epoch(spec, store, start, job, partial(_make, spec, job, start, flags))
        note(spec, store)
        fill_tables(spec, store)
    return published(spec, store, commit, f"in {time.monotonic() - began:.1f} s")


def show_others(spec: Spec) -> None:
    """Before a release begins: show which others about the same people are known.

    Raises:
        RefusedError: the spec has begun another release of the same data.
    """
    found = known(spec)
    refuse_second(spec, found)
    if found.others or found.unread:
        print("\n".join(f"slackwater: {line}" for line in found.text().splitlines()), file=sys.stderr, flush=True)
    for folder in write_down(found) if found.others else ():
        print(f"slackwater: {folder}: cannot be written, so this release is not noted there", file=sys.stderr)


def note(spec: Spec, store: Store) -> None:
    """Keep a note of the release in the folder of its spec, or say why that is not possible."""
    store.refuse_unwritable()
    if problem := keep_note(spec, store):
        print(f"slackwater: {problem}", file=sys.stderr, flush=True)


def _rehearsed(spec: Spec, store: Store, start: Start, job: Job, flags: list[str]) -> Result:
    """Hand the job over to be checked or written down; nothing is published."""
    submit_release(
        job,
        folder=FileSystems.join(store.private, "attempts", "none"),
        format_=spec.output.format,
        flags=flags,
        past=start.past,
        keep=True,
    )
    return valid(spec)


def _stream(arguments: argparse.Namespace, flags: list[str]) -> Result:
    """Release what is due, and go on with the windows to come."""
    pace = Pace.of(arguments.poll, arguments.lag)
    end = arguments.until
    closed = now() - pace.lag
    arguments.until = closed if end is None else min(closed, end)
    result = _run(arguments, [flag for flag in flags if flag != "--streaming"])
    spec = load(arguments.spec)
    if arguments.assume_complete:
        spec = complete(spec)
    store = Store(spec.output.public, spec.output.private)
    commits = store.commits()
    windows = spec.schedule.windows if end is None else timeline_of(spec, end, commits).windows
    if windows is not None and windows <= (commits[-1].windows if commits else 0):
        return result
    with failures_kept(spec, done="what was published stays, and the next run goes on from there"):
        job = stream_job(spec, store, shards=arguments.shards)
        if not is_rehearsal(flags):
            note(spec, store)
        run_stream(spec, job, windows=windows, pace=pace, flags=flags)
        commits = store.commits()
    if is_rehearsal(flags):
        return valid(spec)
    done = commits[-1].windows if commits else 0
    document = {"release": spec.release, "windows": done, "public": spec.output.public}
    return document, f"{spec.release}: the stream has ended; {spec.output.public} holds {counted(done, 'window')}"


def _make(spec: Spec, job: Job, start: Start, flags: list[str], folder: str, keep: bool) -> Reading:
    """Run the pipeline into an attempt's folder; what is not good enough to be published ends the run."""
    began = time.monotonic()
    diagnosis = run_release(job, folder=folder, format_=spec.output.format, flags=flags, past=start.past, keep=keep)
    took = time.monotonic() - began
    judge(spec, job, diagnosis, folder)
    return Reading(rows=diagnosis.rows, dead=diagnosis.dead, seconds=took)


def _nothing_new(spec: Spec, store: Store, history: History | None, waiting: str | None) -> Result:
    if history is not None and history.shown < len(history.commits):
        return published(spec, store, history.last, "as an earlier run had committed them")
    if waiting is not None:
        return nothing_due(spec, waiting)
    if history is None:
        return nothing_due(spec, "no window has closed yet")
    windows = history.last.windows
    if windows == spec.schedule.windows:
        return nothing_due(spec, f"the schedule has {counted(windows, 'window')}, all published already")
    return nothing_due(spec, f"{counted(windows, 'window')} closed so far, all released already")
