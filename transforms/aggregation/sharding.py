"""Route projected rows to shards by privacy unit, as Arrow IPC bytes.

    in    pa.Table            projected rows (transforms.aggregation.projection)
    out   (shard, bytes)      the table's rows of that shard as one Arrow IPC stream; truncates go to all shards

The hash (transforms.common.hashing) only routes: units are told apart by their real keys inside the shard.
"""

from collections.abc import Iterator
from functools import partial

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.compact import compact
from transforms.common.hashing import unit_hash
from transforms.common.ipc import to_bytes
from transforms.common.threaded import Threaded

Shard = tuple[int, bytes]


class ShardByUnit(beam.PTransform):
    """Projected tables to `(shard, IPC bytes)`, `shards` shards."""

    def __init__(self, *, shards: int) -> None:
        super().__init__()
        if shards < 1:
            raise ValueError(f"shards={shards} must be at least 1")
        self._shards = shards

    def expand(self, tables: beam.PCollection[pa.Table]) -> beam.PCollection[Shard]:
        return tables | "SplitByUnit" >> beam.ParDo(
            Threaded(partial(shard_table, shards=self._shards))
        ).with_output_types(Shard)


def shard_table(table: pa.Table, *, shards: int) -> Iterator[Shard]:
    """Split one table; empty shards are left out (which shards exist is private, like all of this)."""
    if table.num_rows == 0:
        return
    if shards > 1 and table[unit_column(table)].null_count:
        truncates = table[unit_column(table)].is_null()
        for number in range(shards):
            yield from ((number, part) for _, part in shard_table(table.filter(truncates), shards=1))
        yield from shard_table(table.filter(pc.invert(truncates)), shards=shards)
        return
    unit = _plain(table[unit_column(table)])
    table = compact(pa.table([_plain(column) for column in table.columns], names=table.column_names))
    if shards == 1:
        yield 0, to_bytes(table)
        return
    shard = unit_hash(unit) % np.uint64(shards)
    # NumPy sorts 16 bits in linear time; more shards than those can tell apart would mix units.
    order = np.argsort(shard.astype(np.uint16) if shards <= 2**16 else shard, kind="stable")
    ends = np.cumsum(np.bincount(shard.astype(np.int64), minlength=shards))
    sorted_table = table.take(pa.array(order))
    begin = 0
    for number, end in enumerate(ends.tolist()):
        if end > begin:
            yield number, to_bytes(sorted_table.slice(begin, end - begin))
        begin = end


def unit_column(table: pa.Table) -> str:
    """The column that holds the privacy unit: the owner's where there is one, else the entry's."""
    return "unit" if "unit" in table.column_names else "entry"


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """One array, dictionaries decoded, so that all parts of a shard have one schema."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
