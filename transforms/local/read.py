"""Read files of reports as Arrow IPC streams; unreadable files are reported, never skipped.

in    paths
out   bytes; and under BROKEN (path, reason) of files that are not reports

Files are read as changelogs are (`transforms.sources`), value by value: a row with anything but integers in the columns
of integers is dead alone. The metadata of the stream holds the file's path, and the number of its dead rows.
"""

from collections.abc import Iterator
from typing import Literal

import apache_beam as beam
import pyarrow as pa

from transforms.common.ipc import to_bytes
from transforms.common.output_formats import OUTPUT_FORMATS
from transforms.common.several import Collections
from transforms.common.source import Source
from transforms.local.report_tables import NUMBERS, SCHEMA, SIGNATURE
from transforms.sources.changelog import read_split, splits, unreadable
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place
from transforms.sources.columns.sides import Side
from transforms.sources.columns.usable_rows import UsableRows
from transforms.sources.files.opening import UNREADABLE
from transforms.sources.formats.table import FORMATS

BROKEN = "broken"

FILE, DEAD = b"file", b"dead"
"""Keys in the metadata of a table: the path, and the number of rows of the file that could not be read."""

ROWS = 1 << 20
"""Rows of a file that are output at a time."""


class ReadReports(beam.PTransform):
    """Transform from paths that end in .parquet, .csv or .jsonl to batches of reports.

    Args:
        signed: Whether the column of signatures is read.
    """

    def __init__(self, *, signed: bool = False) -> None:
        super().__init__()
        self._signed = signed

    def expand(self, paths: beam.PCollection[str]) -> Collections:
        return paths | "ReadFiles" >> beam.ParDo(_Read(signed=self._signed)).with_outputs(BROKEN, main="batches")


class _Read(beam.DoFn):
    def __init__(self, *, signed: bool) -> None:
        self._signed = signed

    def process(self, path: str) -> Iterator[bytes | beam.pvalue.TaggedOutput[Literal["broken"], tuple[str, str]]]:
        try:
            for table in tables_of(path, signed=self._signed):
                yield to_bytes(table)
        except ValueError as error:
            yield beam.pvalue.TaggedOutput(BROKEN, (path, str(error)))


def tables_of(path: str, *, signed: bool = False) -> Iterator[pa.Table]:
    """Yield the rows of a file, some at a time.

    Raises:
        ValueError: It is not such a file; the message states why.
    """
    kind = format_of_reports(path)
    if kind is None:
        raise ValueError("no format has this ending")
    layout = _layout(path, kind, signed=signed)
    names = [*SCHEMA.names, *([SIGNATURE] if signed else [])]
    try:
        read = UsableRows(part for split in splits(Place(path, 0), kind) for part in read_split(layout, split, ROWS))
        for batch in read:
            columns = [batch.table["entry" if name == "person" else f"after.{name}"] for name in names]
            yield pa.table(columns, names=names).replace_schema_metadata({FILE: path, DEAD: "0"})
    except UNREADABLE as error:
        raise ValueError(unreadable(error)) from None
    if read.fault is not None:
        raise ValueError(read.fault)
    if read.dead.num_rows:
        schema = SCHEMA.append(pa.field(SIGNATURE, pa.string())) if signed else SCHEMA
        yield schema.empty_table().replace_schema_metadata({FILE: path, DEAD: str(read.dead.num_rows)})


def _layout(path: str, kind: str, *, signed: bool) -> Layout:
    """Return a layout that does not depend on the file: its faults are found when it is read."""
    numbers = dict.fromkeys(NUMBERS, "int64")
    kinds = numbers | {"design": "string"} | ({SIGNATURE: "string"} if signed else {})
    types = tuple(kinds.items())
    return Layout(
        source=Source(format=kind, paths=(path,), entry="person", time=None, before=None, after=None, types=types),
        files=(),
        entry="int64",
        order=(),
        owner=None,
        sides=(Side(side="after", name="", struct=False),),
        states=tuple(sorted(item for item in types if item[0] != "person")),
    )


def format_of_reports(path: str) -> str | None:
    """Return the format that a path's ending names, of those that are both written and read; None for others."""
    return next((kind for kind in OUTPUT_FORMATS if kind in FORMATS and path.endswith(f".{kind}")), None)
