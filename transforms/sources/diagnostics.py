"""Diagnostics of a run: numbers of rows read, and unusable rows. They are private facts for the data controller.

    in    dead letters as pa.Table(file, row, reason), and (file, rows read, rows dead, rows skipped) tuples
    out   in one folder: `dead_letters.parquet` and `read.json`

Dead letters hold no values, only file, position and reason. A step that runs twice writes the same files twice.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems

from transforms.common.batches import DEAD_SCHEMA
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.several import Collections
from transforms.common.sinks import read_bytes, write_table, write_text
from transforms.sources.changelog import Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Numbers of rows read and unusable, and faults: of a whole file (row None), or the first such row and the number.

    Attributes:
        skipped: (file, reason, rows) of rows that are no changes; they are not among `rows`.
    """

    rows: int
    dead: int
    files: tuple[tuple[str, str], ...]
    reasons: tuple[tuple[str, str, int, int], ...]
    skipped: tuple[tuple[str, str, int], ...] = ()


class WriteDiagnostics(beam.PTransform):
    """Transform that gathers both collections into the files of `folder`."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, collections: Collections) -> beam.PCollection:
        dead, read = collections
        payloads = dead | "DeadToBytes" >> beam.Map(to_bytes).with_output_types(bytes)
        return (
            read.pipeline
            | "OneDiagnosis" >> beam.Create([self._folder])
            | "WriteDiagnosis" >> beam.Map(write_diagnostics, beam.pvalue.AsList(payloads), beam.pvalue.AsList(read))
        )


def write_diagnostics(folder: str, dead: Iterable[bytes], read: Iterable[Count]) -> str:
    """Write the files of `folder`, and return their path.

    Args:
        folder: Private folder.
        dead: Dead letters as Arrow IPC streams.
        read: Counts of splits.
    """
    table = pa.concat_tables([DEAD_SCHEMA.empty_table(), *(from_bytes(p).cast(DEAD_SCHEMA) for p in dead)])
    table = table.sort_by([("file", "ascending"), ("row", "ascending")])
    rows: Counter[str] = Counter()
    skipped: dict[str, Counter[str]] = {}
    for file, count, _, left_out in read:
        rows[file] += count
        skipped.setdefault(file, Counter()).update(dict(left_out))
    document = {
        "rows_read": dict(sorted(rows.items())),
        "rows_skipped": {file: dict(sorted(counts.items())) for file, counts in sorted(skipped.items()) if counts},
    }
    write_table(table, FileSystems.join(folder, "dead_letters.parquet"))
    write_text(FileSystems.join(folder, "read.json"), json.dumps(document, indent=1))
    return folder


def diagnose(folder: str) -> Diagnosis:
    """Read the diagnostics that a run wrote."""
    table = pq.read_table(pa.BufferReader(read_bytes(FileSystems.join(folder, "dead_letters.parquet"))))
    document = json.loads(read_bytes(FileSystems.join(folder, "read.json")))
    whole = table.filter(table["row"].is_null())
    single = table.filter(table["row"].is_valid())
    grouped = single.group_by(["file", "reason"]).aggregate([("row", "min"), ("row", "count")])
    reasons = zip(
        *(grouped[name].to_pylist() for name in ("file", "reason", "row_min", "row_count")),
        strict=True,
    )
    return Diagnosis(
        rows=sum(document["rows_read"].values()),
        dead=single.num_rows,
        files=tuple(zip(whole["file"].to_pylist(), whole["reason"].to_pylist(), strict=True)),
        reasons=tuple(sorted(reasons)),
        skipped=tuple(
            (file, reason, rows) for file, counts in document["rows_skipped"].items() for reason, rows in counts.items()
        ),
    )
