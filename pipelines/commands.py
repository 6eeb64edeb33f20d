"""What the commands of `slackwater` do; `pipelines.cli` reads their arguments."""

import argparse
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems

from pipelines import evaluate as evaluation
from pipelines.epochs import (
    keep_settled,
    record_of,
    refuse_another,
    refuse_another_plan,
    settled_by,
    state_folder,
)
from pipelines.job import job_of, plan_of, timeline_of
from pipelines.ledger import ledger_document, ledger_text
from pipelines.new_release import cost, write_spec
from pipelines.pipeline import options_of, run_release, run_sums
from pipelines.plan_report import plan_document, plan_text
from pipelines.spec import Spec, load
from pipelines.spec_models import within
from pipelines.store import Release, Store
from pipelines.store_commit import Commit
from pipelines.times import microseconds, time_text
from transforms.diagnostics import Diagnosis
from transforms.errors import InputError, SlackwaterError, SpecError
from transforms.queries import Timeline
from transforms.sinks import make_folder, write_table

Result = tuple[dict[str, Any], str]
"""What a command says: as a document and as text."""


def plan(arguments: argparse.Namespace, flags: list[str]) -> Result:
    if flags:
        raise SpecError(f"{flags[0]}: plan runs no pipeline and takes no pipeline options")
    spec = load(arguments.spec)
    made = plan_of(spec)
    until = spec.schedule.until if arguments.until is None and spec.schedule.until is not None else _now(arguments)
    document = plan_document(spec, made, timeline_of(spec, until).windows)
    return document, plan_text(document)


def run(arguments: argparse.Namespace, flags: list[str]) -> Result:
    if arguments.new_release is None:
        return _run(arguments, flags)
    old = load(arguments.spec)
    options_of(flags)
    arguments.spec = str(write_spec(arguments.spec, arguments.new_release))
    told = cost(old)
    document, text = _run(arguments, flags)
    return {**document, "spec": arguments.spec}, f"{told}\n{text}\nrun {arguments.spec} from now on"


def _run(arguments: argparse.Namespace, flags: list[str]) -> Result:
    spec, timeline = _start(arguments, flags)
    store = Store(spec.output.public, spec.output.private)
    with _failures_kept(spec):
        release = store.open()
        if release is not None:
            refuse_another(spec, release)
            store.show()  # if a run died after it had committed its draw: publish that, and draw no other
    released = 0 if release is None else release.last.windows
    if timeline.windows <= released:
        return _nothing_new(spec, store, release, timeline)
    timeline = replace(timeline, released=released)
    began = time.monotonic()
    with _failures_kept(spec):
        before = None if release is None else settled_by(spec, store, release)
        job = job_of(spec, timeline, shards=arguments.shards, before=before)
        refuse_another_plan(job, before)
        attempt = store.begin(1 if release is None else release.last.epoch + 1)
        try:
            goes_on = spec.schedule.until is None or timeline.until < spec.schedule.until
            diagnosis = run_release(
                job,
                folder=attempt.folder,
                format_=spec.output.format,
                flags=flags,
                past=None if release is None else state_folder(store, release),
                keep=goes_on,
            )
            if goes_on:
                keep_settled(attempt, job)
            _keep_diagnostics(spec, attempt.folder)
            _judge(spec, diagnosis)
            commit = store.commit(attempt, record_of(spec, job, attempt))
        except BaseException:
            with suppress(Exception):  # what is told is why the run ended
                store.discard(attempt)
            raise
        store.show()
        _clean(store)
    return _released(spec, store, commit, f"in {time.monotonic() - began:.1f} s")


def ledger(arguments: argparse.Namespace, flags: list[str]) -> Result:
    if flags:
        raise SpecError(f"{flags[0]}: ledger runs no pipeline and takes no pipeline options")
    spec = load(arguments.spec)
    with _failures_kept(spec):
        release = Store(spec.output.public, spec.output.private).open()
    if release is not None:
        refuse_another(spec, release)
    document = ledger_document([] if release is None else [asdict(c) for c in release.commits], spec, plan_of(spec))
    return document, ledger_text(document)


def evaluate(arguments: argparse.Namespace, flags: list[str]) -> Result:
    spec, timeline = _start(arguments, flags)
    if timeline.windows == 0:
        return _nothing_due(spec, "no window has closed yet")
    with _failures_kept(spec):
        job = job_of(spec, timeline, shards=arguments.shards, exact=True)
        store = Store(spec.output.public, spec.output.private)
        attempt = store.begin(0)
        try:
            sums, diagnosis = run_sums(job, folder=attempt.folder, flags=flags)
            _keep_diagnostics(spec, attempt.folder)
        finally:
            store.discard(attempt)
        _judge(spec, diagnosis)
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
    return spec, timeline_of(spec, _now(arguments))


def _released(spec: Spec, store: Store, commit: Commit, how: str) -> Result:
    paths = store.public_paths(commit)
    document = {
        "release": spec.release,
        "epoch": commit.epoch,
        "until": _text(commit.until),
        "windows": commit.windows - commit.released,
        "loss": commit.loss,
        "statement": commit.statement,
        "public": spec.output.public,
        "files": paths,
    }
    lines = [
        f"{spec.release}: epoch {commit.epoch}, {commit.windows - commit.released} windows released, "
        f"{_text(commit.start)} to {_text(commit.until)}, {how}",
        commit.statement,
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


def _judge(spec: Spec, diagnosis: Diagnosis) -> None:
    """End the run if more of the input is unusable than the spec allows."""
    problems = [f"{file}: {reason}" for file, reason in diagnosis.files]
    if diagnosis.dead > spec.changelog.bad_rows * diagnosis.rows:
        problems += [
            f"{file}: row {row}: {reason}" + (f" (and {count - 1} more such rows)" if count > 1 else "")
            for file, reason, row, count in diagnosis.reasons[:10]
        ]
        folder = f"{spec.output.private}/diagnostics"
        problems.append(
            f"nothing was published: {diagnosis.dead} of {diagnosis.rows} rows cannot be used and changelog.bad_rows "
            f"allows a share of {spec.changelog.bad_rows:g}; all of them are listed in {folder}/dead_letters.parquet"
        )
    elif problems:
        problems.append("nothing was published: a file that cannot be read is never skipped")
    if problems:
        raise InputError("\n".join(problems))


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


@contextmanager
def _failures_kept(spec: Spec) -> Iterator[None]:
    """Tell a failure that nobody foresaw in one line; the rest, which may quote data, is kept on the private side."""
    try:
        yield
    except SlackwaterError:
        raise
    except Exception as error:
        stands = "its draw is committed, and the next run publishes it" if _awaits(spec) else "nothing was published"
        raise SlackwaterError(
            f"the run failed with {type(error).__name__}; {stands}; {_keep_trace(spec, error)}"
        ) from None


def _awaits(spec: Spec) -> bool:
    """Whether something is committed and not yet shown, as far as that can be seen."""
    try:
        release = Store(spec.output.public, spec.output.private).open()
    except Exception:  # what ended the run may be in the way here too
        return False
    return release is not None and release.shown < len(release.commits)


def _keep_trace(spec: Spec, error: Exception) -> str:
    """Where the details are."""
    folder = Path(spec.output.private if "://" not in spec.output.private else ".")
    trace = folder / "failure.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trace.touch(mode=0o600)
        trace.chmod(0o600)
        trace.write_text("".join(traceback.format_exception(error)))
    except OSError as refused:
        return f"no details are kept, since output.private: {folder} cannot be written ({type(refused).__name__})"
    return f"details (private): {trace}"


def _write_private(path: str, spec: Spec, table: pa.Table) -> None:
    if within(path, spec.output.public):
        raise SpecError(f"--truth {path}: lies inside output.public; exact values never go there")
    if "://" in path:
        write_table(table, path, format_="parquet")
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    Path(path).chmod(0o600)


def _now(arguments: argparse.Namespace) -> int:
    return microseconds(datetime.now(UTC)) if arguments.until is None else arguments.until


def _text(moment: int) -> str:
    return time_text(datetime.fromtimestamp(moment / 1_000_000, UTC))
