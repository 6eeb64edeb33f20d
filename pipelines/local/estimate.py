"""`slackwater local estimate`: how many people gave each answer, from the reports of their devices.

Reports are public once they are randomised, and nothing is sampled here: estimates are a function of reports, made anew
each time, and the same from the same reports. So no store keeps what a run has done (docs/decisions/local-reports.md).
"""

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from pipelines.epochs.flags import begin_pipeline, options_of
from pipelines.epochs.results import Result
from pipelines.local import quality
from pipelines.local.survey import Survey, read_survey
from pipelines.spec.times import now
from privacy.counted import counted
from privacy.exact import Json
from transforms.common.cloud import refuse_unreachable
from transforms.common.drafts import drafted, own_folder
from transforms.common.errors import InputError, RefusedError, SlackwaterError, SpecError
from transforms.common.ipc import from_bytes
from transforms.common.shown_tables import refuse_ending, rows_of, text_of, write_shown
from transforms.common.sinks import is_there, make_folder, read_bytes, write_bytes
from transforms.local.collect import QUALITY, Collect, Collection, secret_of
from transforms.local.read import BROKEN, ReadReports, format_of
from transforms.sources.files.listing import matching

_TABLE, _QUALITY, _BROKEN = "estimates.arrow", "quality.json", "broken.json"


def estimate_local(arguments: argparse.Namespace, flags: list[str]) -> Result:
    options_of(flags)
    output: str | None = arguments.output
    if output is not None:
        refuse_ending(output)
    refuse_unreachable([*arguments.reports, output], files=[arguments.design])
    survey = read_survey(arguments.design)
    _check_secret(arguments.secret)
    until = now() if arguments.until is None else arguments.until
    windows = survey.closed(until)
    if windows == 0:
        raise RefusedError(f"{arguments.design}: the first window ends at {survey.until(1)}")
    paths = [file.path for file in matching(tuple(arguments.reports))]
    if not paths:
        raise SpecError(f"{arguments.reports[0]}: no file matches; give files of reports")
    for path in paths:
        if format_of(path) is None:
            raise SpecError(f"{path}: the names of files of reports must end in .parquet, .csv, .jsonl")
        if output is not None and _whole(path) == _whole(output):
            raise SpecError(f"-o {output}: is one of the files of reports; give another name")
    with _work_folder(output or "") as folder:
        try:
            _run(survey, windows, paths, folder, arguments.secret, flags)
            table, found = from_bytes(read_bytes(f"{folder}/{_TABLE}")), json.loads(read_bytes(f"{folder}/{_QUALITY}"))
            broken = json.loads(read_bytes(f"{folder}/{_BROKEN}"))
        except SlackwaterError:
            raise
        except Exception as error:
            raise SlackwaterError(
                f"local estimate failed with {type(error).__name__}; no estimates were written"
            ) from error
    if broken:
        path, why = min(broken)
        raise InputError(f"{path}: not a file of reports ({why}); mend it, or leave it out; no estimates were written")
    said = quality.told(
        survey.design,
        Counter({(name, file): rows for name, file, rows in found}),
        verified=arguments.secret is not None,
    )
    document = _document(survey, windows, table, said, output)
    if output is not None:
        table = table.replace_schema_metadata({quality.METADATA: json.dumps(said)})
        with drafted(output) as draft:
            write_shown(table, draft, local=_utc, below=_text(document))
        return document, _text(document)
    if arguments.json:
        return {**document, "estimates": rows_of(table)}, ""
    return document, f"{text_of(table, local=_utc)}\n\n{_text(document)}"


@contextmanager
def _work_folder(output: str) -> Iterator[str]:
    """A folder beside the output, which all workers reach: a place that cannot be written is named before any work."""
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
        raise SpecError(f"--secret {path}: {why}") from None


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


def _document(survey: Survey, windows: int, table: pa.Table, said: Json, output: str | None) -> dict[str, Any]:
    return {
        "release": survey.release,
        "until": survey.until(windows),
        "windows": windows,
        "file": output,
        "rows": table.num_rows,
        "without_reports": table["value"].null_count,
        **said,
        "warnings": [*quality.warnings(said)],
    }


def _text(document: dict[str, Any]) -> str:
    where = "" if document["file"] is None else f" in {document['file']}"
    reports = counted(document["counted"], "report")
    lines = [
        f"{document['release']}: {counted(document['rows'], 'number')} up to {document['until']} from {reports}{where}"
    ]
    if document["without_reports"]:
        lines.append(
            f"  {document['without_reports']:,} of them are empty: nobody has reported on what they are made of"
        )
    lines += [f"  {line}" for line in (*quality.lines(document), *(f"warning: {one}" for one in document["warnings"]))]
    return "\n".join(lines)
