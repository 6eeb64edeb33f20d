"""`slackwater run`: release the windows that have closed, or, as a stream, window after window as they close."""

import argparse
import sys
import time
from contextlib import suppress
from dataclasses import replace

from apache_beam.io.filesystems import FileSystems

from pipelines.epochs.batch import run_release, submit_release
from pipelines.epochs.due import due
from pipelines.epochs.failures import failures_kept, winner_told
from pipelines.epochs.flags import is_rehearsal, is_streaming
from pipelines.epochs.input_quality import judge
from pipelines.epochs.job import job_of, timeline_of
from pipelines.epochs.results import Result, nothing_due, published, valid
from pipelines.epochs.settled import (
    files_of,
    goes_on,
    keep_settled,
    record_of,
    refuse_another,
    refuse_another_plan,
    settled_by,
    state_folder,
)
from pipelines.epochs.stream import Pace, run_stream, stream_job
from pipelines.spec.load import Spec, load
from pipelines.spec.times import now
from pipelines.store.attempt import Reading
from pipelines.store.commit import Commit
from pipelines.store.known_releases import known, remember
from pipelines.store.store import Release, Store
from transforms.aggregation.queries import Timeline
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
    spec, timeline = due(arguments, flags)
    store = Store(spec.output.public, spec.output.private)
    with failures_kept(spec):
        release = store.open()
        if release is not None:
            refuse_another(spec, release)
            store.show()  # if a run died after it had committed its draw: publish that, and draw no other
        elif not is_rehearsal(flags):
            _tell_others(spec)
    released = 0 if release is None else release.last.windows
    if timeline.windows <= released:
        if release is not None:
            _clean(store)  # if the run that released them died before it did
        return _nothing_new(spec, store, release, timeline)
    timeline = replace(timeline, released=released)
    if is_rehearsal(flags):
        return _rehearsed(spec, timeline, release, store, arguments.shards, flags)
    began = time.monotonic()
    with failures_kept(spec):
        commit = _draw(spec, timeline, store, release, arguments.shards, flags)
        store.show()
        _clean(store)
    return published(spec, store, commit, f"in {time.monotonic() - began:.1f} s")


def _tell_others(spec: Spec) -> None:
    """Before a release begins: which others about the same people are known, and what all cost together."""
    found = known(spec)
    if not found.others:
        return
    print("\n".join(f"slackwater: {line}" for line in found.text().splitlines()), file=sys.stderr, flush=True)
    for folder in remember(found):
        print(f"slackwater: {folder}: cannot be written, so this release is not noted there", file=sys.stderr)


def _rehearsed(
    spec: Spec, timeline: Timeline, release: Release | None, store: Store, shards: int | None, flags: list[str]
) -> Result:
    """Hand the job over to be checked or written down; nothing is drawn."""
    with failures_kept(spec):
        before = None if release is None else settled_by(spec, store, release)
        submit_release(
            job_of(spec, timeline, shards=shards, before=before),
            folder=FileSystems.join(store.private, "attempts", "none"),
            format_=spec.output.format,
            flags=flags,
            past=None if release is None else state_folder(store, release),
            keep=True,
        )
    return valid(spec)


def _stream(arguments: argparse.Namespace, flags: list[str]) -> Result:
    """Release what is due, and go on with the windows to come."""
    pace = Pace.of(arguments.poll, arguments.lag)
    end = arguments.until
    closed = now() - pace.lag
    arguments.until = closed if end is None else min(closed, end)
    _run(arguments, [flag for flag in flags if flag != "--streaming"])
    spec = load(arguments.spec)
    store = Store(spec.output.public, spec.output.private)
    ends = [moment for moment in (end, spec.schedule.until) if moment is not None]
    windows = timeline_of(spec, min(ends)).windows if ends else None
    with failures_kept(spec, done="what was published stays, and the next run goes on from there"):
        job = stream_job(spec, store, shards=arguments.shards)
        if windows is None or job.aggregation.timeline.released < windows:
            run_stream(spec, job, windows=windows, pace=pace, flags=flags)
        commits = store.commits()
    if is_rehearsal(flags):
        return valid(spec)
    done = commits[-1].windows if commits else 0
    document = {"release": spec.release, "windows": done, "public": spec.output.public}
    return document, f"{spec.release}: the stream has ended after {done} windows; {spec.output.public} holds them"


def _draw(
    spec: Spec, timeline: Timeline, store: Store, release: Release | None, shards: int | None, flags: list[str]
) -> Commit:
    """Make an epoch's draw and commit it.

    Raises:
        RefusedError: another run was first.
    """
    epoch = 1 if release is None else release.last.epoch + 1
    with winner_told(store, epoch):
        if release is not None:
            store.verify_state(release.last)
        before = None if release is None else settled_by(spec, store, release)
        job = job_of(spec, timeline, shards=shards, before=before)
        refuse_another_plan(job, before)
    attempt = store.begin(epoch)
    try:
        began = time.monotonic()
        with winner_told(store, epoch):
            diagnosis = run_release(
                job,
                folder=attempt.folder,
                format_=spec.output.format,
                flags=flags,
                past=None if release is None else state_folder(store, release),
                keep=goes_on(spec, job),
            )
        took = time.monotonic() - began
        if goes_on(spec, job):
            keep_settled(attempt, job)
        judge(spec, job, diagnosis, attempt.folder)
        store.note(attempt, Reading(rows=diagnosis.rows, dead=diagnosis.dead, seconds=took))
        return store.commit(attempt, record_of(spec, job, attempt), files_of(spec, job))
    except BaseException:
        with suppress(Exception):  # what is told is why the run ended
            store.discard(attempt)
        raise


def _nothing_new(spec: Spec, store: Store, release: Release | None, timeline: Timeline) -> Result:
    if release is None:
        return nothing_due(spec, "no window has closed yet")
    if release.shown < len(release.commits):
        return published(spec, store, release.last, "as an earlier run had drawn them")
    return nothing_due(spec, f"all {release.last.windows} windows that have closed are released already")


def _clean(store: Store) -> None:
    """Remove what nobody needs. What is published stays so, whether or not that succeeds."""
    try:
        store.clean()
    except Exception as error:
        why = type(error).__name__
        print(f"slackwater: {store.private}/attempts: cannot be cleaned ({why}); the next run will", file=sys.stderr)
