"""Write a changelog of any format as Parquet files of one form.

    in    Batch(file, first_row, table)   normalised rows (transforms.sources.columns.normalise)
    out   the path of each file, of rows with these columns, all private:

    entry             int64 or string; null only in a truncate
    event_time        timestamp in microseconds, UTC
    order_<i>         int64 or string: order of changes of one time, if the source has it
    <owner>           the owner's column under its own name, if it belongs to the mutation
    before, after     structs of all columns of the state and of the key, null where the state does not exist; before if
                      it is known
    source_file       file of the row
    source_row        number of the row in the file, from 1; for snapshots any number

Without states before, the places of rows in the files order changes of the same time. The new files keep that order:
each holds consecutive rows of one file, and their names follow the places.

A step that runs twice writes files of other names; only files whose paths are in the output count (`keep`).
"""

import json
import uuid
from collections.abc import Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from transforms.common.batches import POSITION, Batch
from transforms.common.intervals import split_intervals
from transforms.common.kinds import one_chunk, plain
from transforms.common.sinks import make_folder, read_bytes, whole, write_bytes
from transforms.sources.formats.parquet import TRUNCATES

TIME = "event_time"
FILE, ROW = "source_file", "source_row"
SIDES = ("before", "after")

GROUP_ROWS = 262_144
"""Rows of a row group: small batches are combined."""

FILE_ROWS = 4 * 2**20

_LIST = "parts.json"

Written = tuple[tuple[str, int], str]
"""(place of its first row, path) of a file."""


class WriteParts(beam.PTransform):
    """Writes the files of a changelog into `folder`, and the list of the files that count.

    Args:
        folder: Private folder.
        key: Name of the key's column in the states.
        owner: Name of the owner's column, if it belongs to the mutation.
        exact: Whether the source orders all changes, so that rows of several files may share one.
    """

    def __init__(self, folder: str, *, key: str, owner: str | None, exact: bool = False) -> None:
        super().__init__()
        self._folder = folder
        self._key = key
        self._owner = owner
        self._exact = exact

    def expand(self, batches: beam.PCollection[Batch]) -> beam.PCollection[str]:
        paths = batches | "WriteParts" >> beam.ParDo(_WriteDoFn(self._folder, self._key, self._owner, self._exact))
        return (
            batches.pipeline
            | "OneList" >> beam.Create([self._folder])
            | "WriteList" >> beam.Map(_write_list, beam.pvalue.AsList(paths))
        )


def keep(folder: str, target: str) -> list[str]:
    """Move the files that count to `target`; return their new paths, in the order of their rows' places."""
    found = json.loads(read_bytes(FileSystems.join(folder, _LIST)))
    paths = [path for _, path in sorted(found)]
    kept = [FileSystems.join(target, f"part-{number:06}.parquet") for number in range(len(paths))]
    if paths:
        FileSystems.rename(paths, kept)
    return kept


def begins_and_ends(batch: Batch) -> Iterator[Batch]:
    """Yield the changes of a batch of intervals."""
    rows = batch.row_numbers(np.arange(batch.table.num_rows))
    begins, ends, ended = split_intervals(batch.table, _without_state)
    for table, numbers in ((begins, rows), (ends, rows[ended])):
        if table.num_rows:
            yield Batch(batch.file, int(numbers[0]), table, numbers)


def _without_state(name: str, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.repeat(False, rows) if name == "after" else pa.nulls(rows, kind)


def to_part(batch: Batch, key: str, owner: str | None) -> pa.Table:
    """Return the rows of a batch with the columns of the files.

    Args:
        batch: Normalised rows.
        key: Name of the key's column in the states.
        owner: Name of the owner's column, if it belongs to the mutation.
    """
    table = batch.table
    columns = {"entry": one_chunk(table["entry"]), TIME: one_chunk(table["time"]).cast(pa.timestamp("us", "UTC"))}
    orders = [name for name in table.column_names if name.startswith("order.") and name != POSITION]
    columns |= {f"order_{place}": one_chunk(table[name]) for place, name in enumerate(orders)}
    if owner is not None:
        columns[owner] = one_chunk(table["owner"])
    columns |= {side: _struct(table, side, key) for side in SIDES if side in table.column_names}
    columns[FILE] = pa.repeat(pa.scalar(batch.file, pa.string()), table.num_rows)
    columns[ROW] = pa.array(batch.row_numbers(np.arange(table.num_rows)))
    return pa.table(columns).replace_schema_metadata({TRUNCATES: b""})


def _struct(table: pa.Table, side: str, key: str) -> pa.Array:
    """Return the states as structs. Each holds its key, since Parquet cannot store a struct without columns."""
    names = [name for name in table.column_names if name.startswith(f"{side}.")]
    columns = {key: table["entry"], **{name.removeprefix(f"{side}."): table[name] for name in names}}
    states = [plain(one_chunk(values)) for values in columns.values()]
    return pa.StructArray.from_arrays(states, list(columns), mask=pc.invert(one_chunk(table[side])))


class _WriteDoFn(beam.DoFn):
    """Writes one file for all rows of a bundle, or several if there are many rows."""

    def __init__(self, folder: str, key: str, owner: str | None, exact: bool) -> None:
        self._folder = folder
        self._key = key
        self._owner = owner
        self._exact = exact

    def start_bundle(self) -> None:
        self._waiting: list[pa.Table] = []
        self._file: _File | None = None
        self._next: tuple[str, int] | None = None

    def process(self, batch: Batch) -> Iterator[Written]:
        table = to_part(batch, self._key, self._owner)
        placed = POSITION in batch.table.column_names and not self._exact
        if placed and self._next != (batch.file, batch.first_row):
            yield from self._close()
        self._next = (batch.file, table[ROW][-1].as_py() + 1)
        self._waiting.append(table)
        if sum(map(len, self._waiting)) >= GROUP_ROWS:
            self._write()
        if self._file is not None and self._file.rows >= FILE_ROWS:
            yield from self._close()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for written in self._close():
            yield WindowedValue(written, GlobalWindow().max_timestamp(), [GlobalWindow()])

    def _write(self) -> None:
        if self._waiting:
            table = pa.concat_tables(self._waiting)
            if self._file is None:
                self._file = _File(self._folder, table)
            self._file.write(table)
            self._waiting = []

    def _close(self) -> Iterator[Written]:
        """End the file, if one was begun."""
        self._write()
        if self._file is not None:
            file, self._file = self._file, None
            file.close()
            yield file.place, file.path


class _File:
    """A Parquet file that grows by row groups; `place` is the place of its first row."""

    def __init__(self, folder: str, first: pa.Table) -> None:
        make_folder(folder)
        self.place = (first[FILE][0].as_py(), first[ROW][0].as_py())
        self.path = FileSystems.join(folder, f"{uuid.uuid4().hex}.parquet")
        self.rows = 0
        self._stream = FileSystems.create(self.path, mime_type="application/octet-stream")
        self._writer = pq.ParquetWriter(self._stream, first.schema, compression="zstd")

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=2 * GROUP_ROWS)
        self.rows += table.num_rows

    def close(self) -> None:
        with whole(self._stream):
            self._writer.close()


def _write_list(folder: str, paths: list[Written]) -> str:
    return write_bytes((_LIST, json.dumps(paths).encode()), folder)
