"""`slackwater local estimate`: how many people gave each answer, from the reports of their devices.

Reports are public once they are randomised. Nothing is sampled here: estimates are a function of the reports, computed
again each time. So no store keeps the results of a run (docs/decisions/local-reports.md).
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from pipelines.common.arguments import Moment, moment_of, refuse_ending
from pipelines.common.errors import ArgumentError
from pipelines.common.value import Value
from pipelines.epochs.failures import failure
from pipelines.epochs.flags import begin_pipeline, options_of
from pipelines.local import quality
from pipelines.local.survey import Survey, read_survey
from pipelines.spec.times import end_name, now
from privacy.counted import counted
from transforms.common.cloud import refuse_unreachable
from transforms.common.drafts import drafted, own_folder
from transforms.common.errors import InputError, RefusedError, SlackwaterError, SpecError
from transforms.common.ipc import from_bytes
from transforms.common.shown_tables import rows_of, text_of, write_shown
from transforms.common.sinks import is_there, make_folder, read_bytes, write_bytes
from transforms.local.collect import QUALITY, Collect, Collection, secret_of
from transforms.local.read import BROKEN, ReadReports, format_of_reports
from transforms.sources.files.listing import matching

_TABLE, _QUALITY, _BROKEN = "estimates.arrow", "quality.json", "broken.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyEstimates(Value):
    """Numbers of people by answer, from the reports of their devices.

    Attributes:
        release: Name of the survey.
        until: End of the last window.
        windows: Number of windows.
        table: Columns `kind`, `window_start`, `window_end` (UTC), `answer`, `value`, `ci_low`, `ci_high`.
        file: Path of the file that was written; None: no file.
        counts: Numbers of counted and left-out reports (`pipelines.local.quality`).
        warnings: Reports that contradict each other, and other reasons to doubt the numbers.
    """

    release: str
    until: str
    windows: int
    table: pa.Table = field(repr=False)
    file: str | None
    counts: quality.Told = field(repr=False)
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater local estimate --json`."""
        document = {
            "release": self.release,
            "until": self.until,
            "windows": self.windows,
            "file": self.file,
            "rows": self.table.num_rows,
            "without_reports": self.table["value"].null_count,
            **self.counts.to_json(),
            "warnings": [*self.warnings],
        }
        return document if self.file is not None else {**document, "estimates": rows_of(self.table)}

    def text(self) -> str:
        """Return the text that `slackwater local estimate` prints."""
        told = self.told()
        return told if self.file is not None else f"{text_of(self.table, local=_utc)}\n\n{told}"

    def told(self) -> str:
        """Return the lines about reports that were counted and left out."""
        where = "" if self.file is None else f" in {self.file}"
        head = f"{self.release}: {counted(self.table.num_rows, 'number')} up to {end_name(self.until)}"
        lines = [f"{head} from {counted(self.counts.counted, 'report')}{where}"]
        if empty := self.table["value"].null_count:
            lines.append(f"  {empty:,} of them are empty: there are no reports to compute them from")
        lines += [f"  {line}" for line in quality.lines(self.counts)]
        return "\n".join([*lines, *(f"  warning: {one}" for one in self.warnings)])


def estimate(
    design: str | Path,
    reports: Sequence[str | Path],
    *,
    output: str | Path | None = None,
    secret: str | Path | None = None,
    until: Moment = None,
    options: Sequence[str] = (),
) -> SurveyEstimates:
    """Estimate how many people gave each answer, from the reports of their devices.

    Args:
        design: Path of the file that `local.plan` has written.
        reports: Files of reports, or globs.
        output: Write the numbers to this file, which ends in .parquet, .csv, .jsonl, .md or .txt.
        secret: File with the collector's secret: count only reports that are signed with it.
        until: Estimate only windows that end at or before this moment. None: now.
        options: Beam's pipeline options as on the command line.

    Raises:
        SpecError: The design, an argument or an option is wrong.
        InputError: A file cannot be read as reports.
        RefusedError: The first window has not ended.
    """
    moment, flags, paths = moment_of("until", until), [*options], tuple(map(str, reports))
    options_of(flags)
    file, signed = (None if one is None else str(one) for one in (output, secret))
    refuse_ending("output", file)
    refuse_unreachable([*paths, file], files=[str(design)])
    survey = read_survey(str(design))
    _check_secret(signed)
    windows = survey.closed(now() if moment is None else moment)
    if windows == 0:
        raise RefusedError(f"{design}: the first window ends at {survey.until(1)}")
    table, told = _estimated(survey, windows, _files(paths, file), file or "", signed, flags)
    made = SurveyEstimates(
        release=survey.release,
        until=survey.until(windows),
        windows=windows,
        table=table,
        file=file,
        counts=told,
        warnings=tuple(quality.warnings(told)),
    )
    if file is not None:
        table = table.replace_schema_metadata({quality.METADATA: json.dumps(told.to_json())})
        with drafted(file) as draft:
            write_shown(table, draft, local=_utc, below=made.told())
    return made


def _files(reports: tuple[str, ...], output: str | None) -> list[str]:
    """Return the paths of the files of reports.

    Raises:
        SpecError: No file matches, or a file has another ending or is the output.
    """
    paths = [file.path for file in matching(reports)]
    if not paths:
        raise SpecError(f"{reports[0]}: no file matches; give files of reports")
    for path in paths:
        if format_of_reports(path) is None:
            raise SpecError(f"{path}: the names of files of reports must end in .parquet, .csv, .jsonl")
        if output is not None and _whole(path) == _whole(output):
            raise ArgumentError("output", "is one of the files of reports; give another name", output)
    return paths


def _estimated(
    survey: Survey, windows: int, paths: list[str], output: str, secret: str | None, flags: list[str]
) -> tuple[pa.Table, quality.Told]:
    """Return the estimates, and the numbers of counted and left-out reports."""
    with _work_folder(output) as folder:
        try:
            _run(survey, windows, paths, folder, secret, flags)
            table, found = from_bytes(read_bytes(f"{folder}/{_TABLE}")), json.loads(read_bytes(f"{folder}/{_QUALITY}"))
            broken = json.loads(read_bytes(f"{folder}/{_BROKEN}"))
        except SlackwaterError:
            raise
        except Exception as error:
            raise failure(error, "local estimate", "no estimates were written", None) from error
    if broken:
        path, why = min(broken)
        raise InputError(
            f"{path}: not a file of reports ({why}); correct it, or leave it out; no estimates were written"
        )
    counts = Counter({(name, file): rows for name, file, rows in found})
    return table, quality.told(survey.design, counts, verified=secret is not None)


@contextmanager
def _work_folder(output: str) -> Iterator[str]:
    """Yield a folder next to the output, which all workers can reach; refuse one that is not writable."""
    above, name = FileSystems.split(output)
    if "://" not in output:
        with own_folder(Path(above or ".") / f".{name}.estimate") as folder:
            yield str(folder)
        return
    remote = f"{above}/.{name}.{uuid4().hex}"
    make_folder(remote)
    try:
        yield remote
    finally:
        if is_there(remote):
            FileSystems.delete([remote])


def _utc(moment: int) -> int:
    return moment


def _check_secret(path: str | None) -> None:
    try:
        if path is not None:
            secret_of(read_bytes(path))
    except (OSError, ValueError) as error:
        why = error if isinstance(error, ValueError) else f"cannot be read ({type(error).__name__})"
        raise ArgumentError("secret", str(why), path) from None


def _run(survey: Survey, windows: int, paths: list[str], folder: str, secret: str | None, flags: list[str]) -> None:
    collection = Collection(
        design=survey.design,
        people=survey.people,
        names=survey.names,
        publish=survey.publish,
        start=survey.start,
        every=survey.every,
        windows=windows,
        secret=secret,
    )
    signed = secret is not None
    with begin_pipeline(flags) as pipeline:
        spread = pipeline | "Files" >> beam.Create(paths) | "Spread" >> beam.Reshuffle()
        read = spread | "Read" >> ReadReports(signed=signed)
        found = read.batches | "Collect" >> Collect(collection)
        found["estimates"] | "NameTable" >> beam.Map(lambda it: (_TABLE, it)) | "Table" >> beam.Map(write_bytes, folder)
        (
            found[QUALITY]
            | "AsJson" >> beam.Map(lambda it: (_QUALITY, json.dumps([(*key, n) for key, n in it.items()]).encode()))
            | "Quality" >> beam.Map(write_bytes, folder)
        )
        (
            read[BROKEN]
            | "List" >> beam.combiners.ToList()
            | "ListAsJson" >> beam.Map(lambda it: (_BROKEN, json.dumps(it).encode()))
            | "Broken" >> beam.Map(write_bytes, folder)
        )


def _whole(path: str) -> str:
    return path if "://" in path else os.path.realpath(path)
