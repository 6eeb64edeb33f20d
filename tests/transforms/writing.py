"""Writers of changelog files for tests, and readers without Beam."""

import csv
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from transforms.common.batches import Batch
from transforms.common.source import Source
from transforms.sources.changelog import read_split, splits
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, Skipped
from transforms.sources.inspection import inspect

UTC = pa.timestamp("us", "UTC")
NOON = "2013-02-08T12:00:00Z"
NOON_US = 1_360_324_800_000_000


def source(path: Path | str, format_: str = "parquet", **changes: Any) -> Source:
    """Return a source with the columns id, at, before_*, after_*; `changes` replace other values."""
    usual: dict[str, Any] = {"entry": "id", "time": "at", "before": "before_", "after": "after_"}
    return Source(format=format_, paths=(str(path),), **(usual | changes))


def write_parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    """Write a CSV file; None is an empty cell."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_jsonl(path: Path, objects: Sequence[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(line) + "\n" for line in objects)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def parts(layout: Layout, batch_rows: int = 1000) -> Iterator[Batch | pa.Table | Skipped]:
    """Return all output of the readers for all files, in order."""
    for number, path in enumerate(file.path for file in layout.files):
        place = Place(path, number)
        for split in splits(place, layout.source.format):
            yield from read_split(layout, split, batch_rows)


def read(layout: Layout, batch_rows: int = 1000) -> list[dict[str, Any]]:
    """Return the normalised rows, without digests."""
    tables = [part.table for part in parts(layout, batch_rows) if isinstance(part, Batch)]
    return [row for table in tables for row in table.select(seen(table)).to_pylist()]


def seen(table: pa.Table) -> list[str]:
    """Return the columns without digests."""
    return [name for name in table.column_names if name != "file" and not name.startswith("image.")]


def dead(layout: Layout) -> list[tuple[int | None, str]]:
    """Return (row, reason) of all dead letters."""
    tables = [part for part in parts(layout) if isinstance(part, pa.Table)]
    return [(letter["row"], letter["reason"]) for table in tables for letter in table.to_pylist()]


def look(
    where: Path | str,
    format_: str = "parquet",
    *,
    numbers: str = "",
    others: str = "",
    times: str = "",
    **changes: Any,
) -> Layout:
    """Inspect with the needed columns as words."""
    needed = (frozenset(names.split()) for names in (numbers, others, times))
    return inspect(source(where, format_, **changes), *needed)
