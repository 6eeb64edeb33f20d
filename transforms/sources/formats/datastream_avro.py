"""Datastream's Avro files, block by block: records become columns at once.

No reader that returns columns supports Datastream's `sort_keys`, an array of numbers and texts
(docs/decisions/avro.md).
"""

from typing import Any

import numpy as np
import pyarrow as pa

from transforms.common.batches import dead_file
from transforms.sources.columns.layout import Layout
from transforms.sources.files.opening import UNREADABLE, open_stream, why
from transforms.sources.formats.avro_blocks import blocks, column
from transforms.sources.formats.datastream_events import KEYS, fields, unwrap
from transforms.sources.formats.envelopes import Columns, FieldPath, emit
from transforms.sources.formats.format import JsonRecord, Parts, Split


def read_avro(layout: Layout, split: Split, batch_rows: int) -> Parts:
    """Yield batches and dead letters of a file; a fault of the file is one dead letter.

    Args:
        layout: How the files are read.
        split: The file.
        batch_rows: Most rows of a batch.
    """
    wanted, place = fields(layout), split.place
    first = 1
    try:
        with open_stream(place.file) as stream:
            for records, types in blocks(stream):
                missing = [path for path in wanted if path[0] == "payload" and path not in types]
                if missing:
                    yield dead_file(place.file, f"the file has no column {'.'.join(missing[0])!r}")
                    return
                rows = np.arange(first, first + len(records))
                columns = _columns(records, types, list(wanted))
                yield from emit(unwrap(columns, layout), rows, layout, place, batch_rows)
                first += len(records)
    except UNREADABLE as error:
        yield dead_file(place.file, why(error, "the file cannot be read to its end ({})"))


def _columns(records: list[JsonRecord], types: dict[FieldPath, pa.DataType], paths: list[FieldPath]) -> Columns:
    values: dict[FieldPath, pa.Array] = {}
    for path in paths:
        if path == KEYS:
            keys = [record.get(path[0]) for record in records]
            values[path] = pa.array([_texts(each) for each in keys], pa.list_(pa.string()))
        else:
            values[path] = column([_at(record, path) for record in records], types.get(path, pa.string()))
    exists: dict[FieldPath, np.ndarray] = {
        (name,): np.array([record.get(name) is not None for record in records], dtype=bool)
        for name in ("payload", "source_metadata")
    }
    return Columns(rows=len(records), values=values, exists=exists)


def _texts(keys: Any) -> list[str | None] | None:
    """Return sort keys as JSON has them; null if there is no list."""
    return [None if key is None else str(key) for key in keys] if isinstance(keys, list) else None


def _at(record: JsonRecord, path: FieldPath) -> Any:
    for name in path:
        record = record.get(name) if isinstance(record, dict) else None  # type: ignore[assignment]
    return record
