"""Files of reports as Arrow IPC streams; what cannot be read is named, never skipped.

in    paths
out   bytes; and under BROKEN (path, why) of files that are not reports
"""

from collections.abc import Iterator
from typing import Literal

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from transforms.common.ipc import to_bytes
from transforms.common.published_files import read_published
from transforms.common.several import Collections
from transforms.common.sinks import OUTPUT_FORMATS, OutputFormat, read_bytes
from transforms.local.report_tables import SCHEMA, WIDE

BROKEN = "broken"

ROWS = 1 << 20
"""Of a file that are handed on at a time."""


class ReadReports(beam.PTransform):
    """Paths that end in .parquet, .csv or .jsonl to batches: `.batches` and `.broken`."""

    def expand(self, paths: beam.PCollection[str]) -> Collections:
        return paths | "ReadFiles" >> beam.ParDo(_Read()).with_outputs(BROKEN, main="batches")


class _Read(beam.DoFn):
    def process(self, path: str) -> Iterator[bytes | beam.pvalue.TaggedOutput[Literal["broken"], tuple[str, str]]]:
        try:
            for table in tables_of(path):
                yield to_bytes(table)
        except (KeyError, OSError, ValueError, pa.ArrowException) as error:
            yield beam.pvalue.TaggedOutput(BROKEN, (path, type(error).__name__))


def tables_of(path: str) -> Iterator[pa.Table]:
    """The rows of a file, some at a time.

    Raises:
        KeyError, OSError, ValueError, pa.ArrowException: it is not such a file.
    """
    kind = format_of(path)
    if kind is None:
        raise ValueError("no format has this ending")
    if kind != "parquet":
        yield _narrowed(read_published(read_bytes(path), kind, dict(zip(WIDE.names, WIDE.types, strict=True))))
        return
    with FileSystems.open(path, "application/octet-stream", CompressionTypes.UNCOMPRESSED) as stream:
        file = pq.ParquetFile(stream)
        if missing := set(SCHEMA.names) - set(file.schema_arrow.names):
            raise KeyError(min(missing))
        for batch in file.iter_batches(batch_size=ROWS, columns=SCHEMA.names):
            yield _narrowed(pa.Table.from_batches([batch]).select(SCHEMA.names))


def _narrowed(table: pa.Table) -> pa.Table:
    """In the columns' own types, unless a row is none that a device sends: it is to be left out by itself."""
    try:
        return table.cast(SCHEMA)
    except pa.ArrowInvalid:
        return table.cast(WIDE)


def format_of(path: str) -> OutputFormat | None:
    """By the ending."""
    return next((kind for kind in OUTPUT_FORMATS if path.endswith(f".{kind}")), None)
