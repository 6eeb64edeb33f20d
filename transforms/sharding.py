"""Route projected rows to shards by privacy unit, as Arrow IPC bytes.

    in    pa.Table            projected rows (transforms.projection)
    out   (shard, bytes)      the table's rows of that shard as one Arrow IPC stream; truncates go to all shards

Bytes cross runners safely where Arrow objects do not. The hash only routes: units are told apart by their real
keys inside the shard. It is part of the format, since carried state is sharded by it, so it is written out here
and pinned by a test, rather than taken from a library that may change it between versions.
"""

from collections.abc import Iterator
from functools import partial

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.compact import compact, restore
from transforms.threaded import Threaded

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


_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
"""Runners copy what they shuffle several times; packing it costs less than that, and halves their memory."""


def to_bytes(table: pa.Table) -> bytes:
    """One table as an Arrow IPC stream; a slice is cut to its own rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_bytes(payload: bytes) -> pa.Table:
    """The table of one IPC stream."""
    return restore(pa.ipc.open_stream(pa.py_buffer(payload)).read_all())


def unit_hash(keys: pa.Array) -> np.ndarray:
    """A 64-bit hash of each key, for routing only (uint64).

    >>> unit_hash(pa.array(["a", "b", "a"])).tolist()[0] == unit_hash(pa.array(["a"])).tolist()[0]
    True
    """
    if pa.types.is_integer(keys.type):
        return _mix(keys.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.uint64))
    return _hash_text(keys.cast(pa.large_binary()))


def _hash_text(keys: pa.Array) -> np.ndarray:
    """Fold each key eight bytes at a time, all rows at once: the loop runs over words, not rows."""
    _, offsets_buffer, data = keys.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[keys.offset : keys.offset + len(keys) + 1]
    length = np.diff(offsets)
    text = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    padded = np.concatenate([text[: offsets[-1]], np.zeros(8, np.uint8)])
    words = np.ndarray(len(padded) - 7, dtype="<u8", buffer=padded.data, strides=(1,))  # one at every byte
    result = length.astype(np.uint64)
    for place in range(0, int(length.max(initial=1)), 8):  # an empty key is one word too, whatever stands beside it
        rows = slice(None) if place == 0 else np.flatnonzero(length > place)
        word = words[np.minimum(offsets[:-1][rows] + place, len(words) - 1)]
        left = np.minimum(length[rows] - place, 8)
        word = np.where(left > 0, word & (_ONES >> ((8 - np.maximum(left, 1)) * 8).astype(np.uint64)), 0)
        result[rows] = _mix(result[rows] ^ word.astype(np.uint64))
    return _mix(result)


_ONES = np.uint64(2**64 - 1)


def _mix(words: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014): every bit reaches every bit."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """One array, dictionaries decoded, so that all parts of a shard have one schema."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
