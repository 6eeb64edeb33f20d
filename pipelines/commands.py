"""What the commands of `slackwater` do; `pipelines.cli` reads their arguments."""

import argparse
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems

from pipelines.changelog.command import changelog
from pipelines.epochs.batch import (
    is_rehearsal,
    options_of,
    refuse_local_paths,
    run_release,
    run_sums,
    submit_release,
)
from pipelines.epochs.failures import failures_kept, winner_told
from pipelines.epochs.input_quality import refuse_unusable
from pipelines.epochs.job import Job, job_of, plan_of, timeline_of
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
from pipelines.epochs.stream import Pace, is_streaming, run_stream, stream_job
from pipelines.reports import evaluate as evaluation
from pipelines.reports.ledger import ledger_document, ledger_text
from pipelines.reports.metrics import metrics
from pipelines.reports.new_release import tell_others, write_spec
from pipelines.reports.plan_report import plan_document, plan_text
from pipelines.spec.load import Spec, load
from pipelines.spec.models import within
from pipelines.spec.times import moment_text, now
from pipelines.store.attempt import Reading
from pipelines.store.commit import Commit
from pipelines.store.known_releases import known
from pipelines.store.store import Release, Store
from transforms.aggregation.queries import Timeline
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError
from transforms.common.sinks import make_folder, write_table
from transforms.sources.diagnostics import Diagnosis
from transforms.sources.snapshot_sizes import shrinks

Result = tuple[dict[str, Any], str]
"""What a command says: as a document and as text."""

__all__ = ["changelog", "evaluate", "ledger", "metrics", "plan", "run"]


def plan(arguments: argparse.Namespace, flags: list[str]) -> Result:
    if flags:
        raise SpecError(f"{flags[0]}: plan runs no pipeline and takes no pipeline options")
    spec = load(arguments.spec)
    made = plan_of(spec)
    ahead = now() if spec.schedule.until is None else spec.schedule.until
    until = ahead if arguments.until is None else arguments.until
    document = plan_document(spec, made, timeline_of(spec, until).windows)
    return document, plan_text(document)


def run(arguments: argparse.Namespace, flags: list[str]) -> Result:
    release = _stream if is_streaming(flags) else _run
    if release is _run and (arguments.poll is not None or arguments.lag is not None):
        raise SpecError("--poll and --lag are for streams: give --streaming too")
    if arguments.new_release is None:
        return release(arguments, flags)
    options_of(flags)
    refuse_unreachable(load(arguments.spec).output.folders)
    if release is _run:
        _start(arguments, flags)  # what is wrong with the command is told before anything is written
    arguments.spec = str(write_spec(arguments.spec, arguments.new_release))
    document, text = release(arguments, flags)
    together = known(load(arguments.spec))
    document = {**document, "spec": arguments.spec, "together": together.document(begun=True)}
    told = [text, *([together.text()] if together.others else []), f"run {arguments.spec} from now on"]
    return document, "\n".join(told)


def _run(arguments: argparse.Namespace, flags: list[str]) -> Result:
    spec, timeline = _start(arguments, flags)
    store = Store(spec.output.public, spec.output.private)
    with failures_kept(spec):
        release = store.open()
        if release is not None:
            refuse_another(spec, release)
            store.show()  # if a run died after it had committed its draw: publish that, and draw no other
        elif not is_rehearsal(flags):
            tell_others(spec)
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
    return _released(spec, store, commit, f"in {time.monotonic() - began:.1f} s")


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
    return _valid(spec)


def _valid(spec: Spec) -> Result:
    document = {"release": spec.release, "windows": 0, "public": spec.output.public, "files": []}
    return document, f"{spec.release}: the job is valid; nothing was run, and nothing published"


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
        return _valid(spec)
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
        shrunk = _shrunk(spec, job, attempt.folder)
        _keep_diagnostics(spec, attempt.folder)
        _judge(spec, diagnosis, shrunk)
        store.note(attempt, Reading(rows=diagnosis.rows, dead=diagnosis.dead, seconds=took))
        return store.commit(attempt, record_of(spec, job, attempt), files_of(spec, job))
    except BaseException:
        with suppress(Exception):  # what is told is why the run ended
            store.discard(attempt)
        raise


def ledger(arguments: argparse.Namespace, flags: list[str]) -> Result:
    if flags:
        raise SpecError(f"{flags[0]}: ledger runs no pipeline and takes no pipeline options")
    spec = load(arguments.spec)
    refuse_unreachable(spec.output.folders)
    with failures_kept(spec):
        release = Store(spec.output.public, spec.output.private).open()
    if release is not None:
        refuse_another(spec, release)
    plan = plan_of(spec)
    document = ledger_document([] if release is None else [asdict(c) for c in release.commits], spec, plan)
    together = known(spec)
    text = [
        ledger_text(document),
        f"The losses rest on what the statement says. {plan.conditions[0]}",
        *(["", together.text(begun=release is not None)] if together.others else []),
    ]
    return {
        **document,
        "statement": plan.statement,
        "together": together.document(begun=release is not None),
    }, "\n".join(text)


def evaluate(arguments: argparse.Namespace, flags: list[str]) -> Result:
    spec, timeline = _start(arguments, flags)
    if timeline.windows == 0:
        return _nothing_due(spec, "no window has closed yet")
    with failures_kept(spec):
        job = job_of(spec, timeline, shards=arguments.shards, exact=True)
        store = Store(spec.output.public, spec.output.private)
        attempt = store.begin(0)
        try:
            sums, diagnosis = run_sums(job, folder=attempt.folder, flags=flags)
            shrunk = _shrunk(spec, job, attempt.folder)
            _keep_diagnostics(spec, attempt.folder)
        finally:
            store.discard(attempt)
        _judge(spec, diagnosis, shrunk)
        if arguments.truth is not None:
            _write_private(arguments.truth, spec, evaluation.truth(job, sums))
        document = {
            "notice": evaluation.NOTICE,
            "release": spec.release,
            "windows": timeline.windows,
            "runs": arguments.runs,
            "queries": evaluation.evaluate(job, sums, runs=arguments.runs),
        }
    return document, evaluation.evaluate_text(document)


def _start(arguments: argparse.Namespace, flags: list[str]) -> tuple[Spec, Timeline]:
    options_of(flags)  # a wrong flag is told before any work
    spec = load(arguments.spec)
    refuse_local_paths(spec, flags)
    clock = now()
    until = clock if arguments.until is None else arguments.until
    timeline = timeline_of(spec, until)
    if timeline.windows > timeline_of(spec, clock).windows:
        raise SpecError(
            f"--until {moment_text(until)}: windows up to then are not over, since it is {moment_text(clock)} by this "
            "machine's clock; what is told of a window is final, so give a time that has passed, or leave --until out"
        )
    truth = getattr(arguments, "truth", None)  # of `evaluate`
    refuse_unreachable([*spec.changelog.paths, *spec.output.folders, truth], files=[spec.changelog.kafka])
    return spec, timeline


def _released(spec: Spec, store: Store, commit: Commit, how: str) -> Result:
    paths = store.public_paths(commit)
    document = {
        "release": spec.release,
        "epoch": commit.epoch,
        "until": moment_text(commit.until),
        "windows": commit.windows - commit.released,
        "loss": commit.loss,
        "statement": commit.statement,
        "public": spec.output.public,
        "files": paths,
    }
    lines = [
        f"{spec.release}: epoch {commit.epoch}, {commit.windows - commit.released} windows released, "
        f"{moment_text(commit.start)} to {moment_text(commit.until)}, {how}",
        *wrap(commit.statement, 120),
        *(f"  {path}" for path in paths),
    ]
    return document, "\n".join(lines)


def _nothing_new(spec: Spec, store: Store, release: Release | None, timeline: Timeline) -> Result:
    if release is None:
        return _nothing_due(spec, "no window has closed yet")
    if release.shown < len(release.commits):
        return _released(spec, store, release.last, "as an earlier run had drawn them")
    return _nothing_due(spec, f"all {release.last.windows} windows that have closed are released already")


def _nothing_due(spec: Spec, why: str) -> Result:
    document = {"release": spec.release, "windows": 0, "public": spec.output.public, "files": []}
    return document, f"{spec.release}: nothing is due, {why}"


def _clean(store: Store) -> None:
    """Remove what nobody needs. What is published stays so, whether or not that succeeds."""
    try:
        store.clean()
    except Exception as error:
        why = type(error).__name__
        print(f"slackwater: {store.private}/attempts: cannot be cleaned ({why}); the next run will", file=sys.stderr)


def _shrunk(spec: Spec, job: Job, folder: str) -> list[str]:
    """What an attempt found of snapshots that have lost too many rows."""
    share = spec.changelog.shrink
    return [] if share is None else shrinks(job.layout, FileSystems.join(folder, "diagnostics"), share)


def _judge(spec: Spec, diagnosis: Diagnosis, shrunk: list[str]) -> None:
    refuse_unusable(
        diagnosis,
        shrunk,
        share=spec.changelog.bad_rows,
        key="changelog.bad_rows",
        undone="nothing was published",
        folder=f"{spec.output.private}/diagnostics",
    )


def _keep_diagnostics(spec: Spec, folder: str) -> None:
    """Move an attempt's diagnostics to the private side's own folder, over those of the run before."""
    source = FileSystems.join(folder, "diagnostics")
    target = FileSystems.join(spec.output.private, "diagnostics")
    make_folder(target)
    for name in ("dead_letters.parquet", "read.json"):
        if "://" in target:
            FileSystems.copy([f"{source}/{name}"], [f"{target}/{name}"])
        else:
            Path(source, name).replace(Path(target, name))  # at once, since another run may do so too


def _write_private(path: str, spec: Spec, table: pa.Table) -> None:
    if within(path, spec.output.public):
        raise SpecError(f"--truth {path}: lies inside output.public; exact values never go there")
    if "://" in path:
        write_table(table, path, format_="parquet")
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    Path(path).chmod(0o600)
