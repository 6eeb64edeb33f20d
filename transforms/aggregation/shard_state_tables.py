"""Tables of a shard's state after a run (`ShardState`): the units, their entries, and the rows that wait."""

import numpy as np
import pyarrow as pa

from transforms.aggregation.chains import Chains
from transforms.aggregation.contribution_bounding import Usage
from transforms.aggregation.held_changes import Held, held_columns
from transforms.aggregation.shard_rows import lasting_orders, with_carried
from transforms.common.batches import POSITION, ROW_BITS
from transforms.common.images import IMAGE

Ints = np.ndarray


def units_after(chains: Chains, usage: Usage | None) -> pa.Table:
    """Return the units that have a row, with the used part of their contribution bound (None under `AtOnce`)."""
    present = np.flatnonzero(np.bincount(chains.unit, minlength=len(chains.units)))
    columns: dict[str, pa.Array | Ints] = {"key": chains.units.take(present)}
    if usage is None:
        return pa.table(columns)
    columns["first_time"] = usage.first_time[present]
    if usage.class_of is not None:
        columns["class"] = usage.class_of[present]
    return pa.table(columns | {f"used.{query}": used[present] for query, used in enumerate(usage.used)})


def entries_after(
    chains: Chains, due: pa.Table, carried: pa.Table | None, renewed: list[tuple[Chains, Held]] | None
) -> pa.Table:
    """Return the last row of each chain, and its counted state if that can be another one.

    Args:
        chains: Rows before the end of the last window, in order.
        due: Mutations to which the rows of `chains` refer by number.
        carried: Last known states of the entries before the run; their row numbers precede those of `due`.
        renewed: For each query the rows that count and the deferred changes, under `AtOnce` with a bound on changes.
    """
    chain = chains.chain
    last = np.flatnonzero(np.append(np.diff(chain) != 0, True)) if len(chain) else np.zeros(0, np.int64)
    codes, row = chain[last], chains.row[last]
    columns: dict[str, pa.Array | pa.ChunkedArray | Ints] = {}
    if chains.rank is not None:
        columns["unit"] = chains.units.take(chains.unit_of[codes])
    columns["entry"] = chains.entries.take(codes)
    mutation = pa.array(row, mask=row < 0)
    for name in ("time", *lasting_orders(due)):
        columns[name] = with_carried(due, carried, name).take(mutation)
    for query, (cell, value) in enumerate(zip(chains.cells, chains.values, strict=True)):
        columns[f"after.{query}.cell"] = cell[last]
        if value is not None:
            columns[f"after.{query}.value"] = value[last]
    for query, (_, held) in enumerate(renewed or ()):
        columns |= held_columns(held, query, codes)
    if chains.classes is not None:
        columns["after.class"] = chains.classes[last]
    if chains.image is not None:
        columns[f"{IMAGE}.after"] = chains.image[last].astype(np.uint32)
    return pa.table(columns)


def with_past_positions(pending: pa.Table) -> pa.Table:
    """Return waiting rows with negative file numbers, in order: each run numbers its files from zero."""
    if POSITION not in pending.column_names:
        return pending
    position = pending[POSITION].to_numpy()
    files, number = np.unique(position >> ROW_BITS, return_inverse=True)
    position = ((number - len(files)) << ROW_BITS) | (position & ((1 << ROW_BITS) - 1))
    return pending.set_column(pending.column_names.index(POSITION), POSITION, pa.array(position))


def whole_numbers(table: pa.Table) -> pa.Table:
    """Return a table with all integers as int64, except digests (uint32); the schema's metadata is dropped.

    So the types do not depend on how a runner delivers the rows.
    """
    wide = [pa.types.is_integer(f.type) and f.type != pa.uint32() for f in table.schema]
    fields = [pa.field(f.name, pa.int64() if w else f.type) for f, w in zip(table.schema, wide, strict=True)]
    return table.cast(pa.schema(fields))
