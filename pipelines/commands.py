"""What the commands of `slackwater` do; `pipelines.cli` reads their arguments."""

import argparse
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems

from pipelines import evaluate as evaluation
from pipelines.job import job_of, plan_of, timeline_of
from pipelines.pipeline import options_of, run_release, run_sums
from pipelines.plan_report import plan_document, plan_text
from pipelines.publish import COMMITTED, Attempt, manifest_of, publish, show
from pipelines.spec import Spec, load
from pipelines.spec_models import within
from pipelines.times import microseconds, time_text
from transforms.diagnostics import Diagnosis
from transforms.errors import InputError, RefusedError, SlackwaterError, SpecError
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
    spec, timeline = _start(arguments, flags)
    manifest = manifest_of(spec.output.public)
    if manifest is not None:
        return _already(spec, manifest, timeline)
    committed = manifest_of(spec.output.private, COMMITTED)
    if committed is not None:
        return _finish(spec, committed)
    if timeline.windows == 0:
        return _nothing_due(spec, "no window has closed yet")
    began = time.monotonic()
    with _failures_kept(spec):
        job = job_of(spec, timeline, shards=arguments.shards)
        attempt = Attempt.begin(spec.output.private)
        try:
            diagnosis = run_release(job, folder=attempt.folder, format_=spec.output.format, flags=flags)
            _keep_diagnostics(spec, attempt)
            _judge(spec, diagnosis)
            paths = publish(spec, job.plan, timeline, attempt)
        finally:
            if not _awaits_publication(spec, attempt):
                _end(attempt)
    document = {
        "release": spec.release,
        "until": _text(timeline.until),
        "windows": timeline.windows,
        "loss": {"epsilon": job.plan.loss.epsilon, "delta": job.plan.loss.delta},
        "statement": job.plan.sentence,
        "public": spec.output.public,
        "files": paths,
    }
    lines = [
        f"{spec.release}: {timeline.windows} windows released, {_text(timeline.start)} to {_text(timeline.until)}, "
        f"in {time.monotonic() - began:.1f} s",
        job.plan.sentence,
        *(f"  {path}" for path in paths),
    ]
    return document, "\n".join(lines)


def evaluate(arguments: argparse.Namespace, flags: list[str]) -> Result:
    spec, timeline = _start(arguments, flags)
    if timeline.windows == 0:
        return _nothing_due(spec, "no window has closed yet")
    with _failures_kept(spec):
        job = job_of(spec, timeline, shards=arguments.shards, exact=True)
        attempt = Attempt.begin(spec.output.private)
        try:
            sums, diagnosis = run_sums(job, folder=attempt.folder, flags=flags)
            _keep_diagnostics(spec, attempt)
        finally:
            _end(attempt)
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


def _already(spec: Spec, manifest: dict[str, Any], timeline: Timeline) -> Result:
    """A release exists: say that nothing is due, or refuse."""
    where = spec.output.public
    if manifest["spec_sha256"] != spec.sha256:
        raise RefusedError(
            f"{where}: holds release {manifest['release']!r} made from another spec, and a second release spends a "
            "second budget; restore that spec, or choose another output.public and add up both losses"
        )
    if timeline.windows > manifest["windows"]:
        raise RefusedError(
            f"{where}: {manifest['windows']} windows are released and {timeline.windows} have closed; this version "
            "makes a release in one run, and a second one would draw new noise for the same windows"
        )
    return _nothing_due(spec, f"all {manifest['windows']} windows are released already")


def _finish(spec: Spec, committed: dict[str, Any]) -> Result:
    """A run died after it had committed its draw: publish that, and draw no other."""
    if committed["spec_sha256"] != spec.sha256:
        raise RefusedError(
            f"{spec.output.private}: holds release {committed['release']!r} made from another spec, drawn but not yet "
            "published; run that spec, or choose other output folders and add up both losses"
        )
    with _failures_kept(spec):
        paths = show(spec, committed)
        _end(Attempt.of(spec.output.private, committed["attempt"]))
    document = {
        "release": spec.release,
        "until": _text(committed["until"]),
        "windows": committed["windows"],
        "loss": committed["loss"],
        "statement": committed["statement"],
        "public": spec.output.public,
        "files": paths,
    }
    lines = [f"{spec.release}: published what an earlier run had drawn", *(f"  {path}" for path in paths)]
    return document, "\n".join(lines)


def _awaits_publication(spec: Spec, attempt: Attempt) -> bool:
    """Whether an attempt is committed and not yet published, so that a later run needs its files."""
    committed = manifest_of(spec.output.private, COMMITTED)
    return committed is not None and committed["attempt"] == attempt.name and manifest_of(spec.output.public) is None


def _nothing_due(spec: Spec, why: str) -> Result:
    document = {"release": spec.release, "windows": 0, "public": spec.output.public, "files": []}
    return document, f"{spec.release}: nothing is due, {why}"


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


def _keep_diagnostics(spec: Spec, attempt: Attempt) -> None:
    """Move the attempt's diagnostics to the private side's own folder, over those of the run before."""
    source = FileSystems.join(attempt.folder, "diagnostics")
    target = FileSystems.join(spec.output.private, "diagnostics")
    make_folder(target)
    for name in ("dead_letters.parquet", "read.json"):
        if "://" in target:
            FileSystems.copy([f"{source}/{name}"], [f"{target}/{name}"])
        else:
            Path(source, name).replace(Path(target, name))  # at once, since another run may do so too


def _end(attempt: Attempt) -> None:
    """Remove the attempt's folder. What is published by now stays so, whether or not that succeeds."""
    try:
        attempt.end()
    except Exception as error:
        why = type(error).__name__
        print(f"slackwater: {attempt.folder}: cannot be removed ({why}); it is private, remove it", file=sys.stderr)


@contextmanager
def _failures_kept(spec: Spec) -> Iterator[None]:
    """Tell a failure that nobody foresaw in one line; the rest, which may quote data, is kept on the private side."""
    try:
        yield
    except SlackwaterError:
        raise
    except Exception as error:
        stands = "nothing was published" if manifest_of(spec.output.public) is None else "the release stands published"
        raise SlackwaterError(
            f"the run failed with {type(error).__name__}; {stands}; {_keep_trace(spec, error)}"
        ) from None


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
