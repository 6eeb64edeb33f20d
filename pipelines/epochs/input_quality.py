"""Decide whether the input of a run is good enough to be used."""

from pathlib import Path

from apache_beam.io.filesystems import FileSystems

from pipelines.epochs.job import Job
from pipelines.spec.load import Spec
from privacy.counted import counted
from transforms.common.errors import InputError
from transforms.common.sinks import make_folder
from transforms.sources.diagnostics import Diagnosis
from transforms.sources.snapshot_sizes import shrinks

MOST_REASONS = 10


def judge(spec: Spec, job: Job, diagnosis: Diagnosis, folder: str) -> None:
    """Keep the diagnostics of an attempt in `folder`, and end the run if its input is not good enough.

    Args:
        spec: Spec of the release.
        job: The job.
        diagnosis: What was read.
        folder: Private folder for the diagnostics.

    Raises:
        InputError: As `refuse_unusable`.
    """
    share = spec.changelog.shrink
    shrunk = [] if share is None else shrinks(job.layout, FileSystems.join(folder, "diagnostics"), share)
    _keep_diagnostics(spec, folder)
    refuse_unusable(
        diagnosis,
        shrunk,
        share=spec.changelog.bad_rows,
        key="changelog.bad_rows",
        undone="nothing new was published",
        folder=f"{spec.output.private}/diagnostics",
    )


def refuse_unusable(
    diagnosis: Diagnosis, shrunk: list[str], *, share: float, key: str, undone: str, folder: str
) -> None:
    """End a run if more of its input is unusable than is allowed.

    Args:
        diagnosis: What was read.
        shrunk: A line for each snapshot that has lost too many rows.
        share: Largest share of rows that may be unusable.
        key: Name of the setting of this share.
        undone: Consequence for the command, in words, such as "nothing new was published".
        folder: Folder of the diagnostics.

    Raises:
        InputError: The input is not good enough; one line for each problem.
    """
    problems = [f"{file}: {reason}" for file, reason in diagnosis.files]
    if diagnosis.dead > share * diagnosis.rows:
        problems += [
            f"{file}: row {row}: {reason}" + (f" (and {counted(count - 1, 'more such row')})" if count > 1 else "")
            for file, reason, row, count in diagnosis.reasons[:MOST_REASONS]
        ]
        problems.append(
            f"{undone}: {diagnosis.dead} of {counted(diagnosis.rows, 'row')} cannot be used and {key} allows a "
            f"share of {share:g}; all of them are listed in {folder}/dead_letters.parquet"
        )
    elif problems:
        problems.append(f"{undone}: a file that cannot be read is never skipped")
    elif shrunk:
        problems = [*shrunk, f"{undone}: a snapshot that has lost this many rows may be incomplete"]
    if problems:
        raise InputError("\n".join(problems))


def _keep_diagnostics(spec: Spec, folder: str) -> None:
    """Move an attempt's diagnostics to the private folder, in place of those of the run before."""
    source = FileSystems.join(folder, "diagnostics")
    target = FileSystems.join(spec.output.private, "diagnostics")
    make_folder(target)
    for name in ("dead_letters.parquet", "read.json"):
        if "://" in target:
            FileSystems.copy([f"{source}/{name}"], [f"{target}/{name}"])
        else:
            Path(source, name).replace(Path(target, name))  # at once, since another run may do so too
