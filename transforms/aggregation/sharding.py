"""Route projected rows to shards by privacy unit, as Arrow IPC bytes or through files.

    in    pa.Table            projected rows (transforms.aggregation.projection)
    out   (shard, bytes)      the table's rows of that shard as one Arrow IPC stream, or its place; truncates go to all
                              shards

The hash (transforms.common.hashing) only routes: units are distinguished by their real keys inside the shard.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import apache_beam as beam
import numpy as np
import pyarrow as pa

from privacy.checks import at_least
from transforms.common.compact import compact
from transforms.common.exchange import get, put
from transforms.common.hashing import unit_hash
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.keys import take
from transforms.common.kinds import one_chunk
from transforms.common.threaded import Threaded

Shard = tuple[int, bytes]


class ShardByUnit(beam.PTransform):
    """Transform from projected tables to `(shard, bytes)`; `received` decodes the bytes.

    Args:
        shards: Number of shards.
        exchange: Folder that all workers share, through which rows pass as files; None: rows pass through the runner.
    """

    def __init__(self, *, shards: int, exchange: str | None = None) -> None:
        super().__init__()
        at_least("shards", shards, 1)
        self._shards = shards
        self._exchange = exchange

    def expand(self, tables: beam.PCollection[pa.Table]) -> beam.PCollection[Shard]:
        return tables | "SplitByUnit" >> beam.ParDo(
            Threaded(partial(shard_table, shards=self._shards, exchange=self._exchange))
        ).with_output_types(Shard)


def shard_table(table: pa.Table, *, shards: int, exchange: str | None = None) -> Iterator[Shard]:
    """Split one table by unit, and send its parts.

    Args:
        table: Projected rows.
        shards: Number of shards.
        exchange: As in `ShardByUnit`.

    Returns:
        (shard, payload) of each shard with rows; truncates go to all shards.
    """
    if exchange is None:
        yield from ((number, to_bytes(part)) for number, part in _split(table, shards, compact))
    else:
        yield from put(_split(table, shards, lambda whole: whole), exchange)


def received(payload: bytes, exchange: str | None = None) -> pa.Table:
    """Return one part that `shard_table` has sent."""
    return from_bytes(payload) if exchange is None else get(payload)


def _split(table: pa.Table, shards: int, form: Callable[[pa.Table], pa.Table]) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each shard without empty ones (the set of shards is private, like the rows).

    Args:
        table: Projected rows.
        shards: Number of shards.
        form: Encoding that is applied to the whole table before it is split.
    """
    if table.num_rows == 0:
        return
    table = _plain(table)
    unit = table[unit_column(table)]
    if shards == 1:
        yield 0, form(table)
        return
    if unit.null_count:
        for number in range(shards):
            yield number, form(table.filter(unit.is_null()))
        yield from _split(table.filter(unit.is_valid()), shards, form)
        return
    shard = unit_hash(one_chunk(unit)) % np.uint64(shards)
    # NumPy sorts 16-bit integers in linear time; with more shards than 2^16 they would mix units.
    order = np.argsort(shard.astype(np.uint16) if shards <= 2**16 else shard, kind="stable")
    ends = np.cumsum(np.bincount(shard.view(np.int64), minlength=shards))
    table = form(table)
    table = pa.Table.from_arrays([take(one_chunk(column), order) for column in table.columns], schema=table.schema)
    for number, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
        if end > begin:
            yield number, table.slice(begin, end - begin)


def unit_column(table: pa.Table) -> str:
    """Return the column that holds the privacy unit: `unit` if units are owners, else `entry`."""
    return "unit" if "unit" in table.column_names else "entry"


def _plain(table: pa.Table) -> pa.Table:
    """Return the table with one array per column and no dictionaries, so that all parts of a shard have one schema."""
    columns = [one_chunk(column) for column in table.columns]
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in columns]
    fields = [field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
