"""Private state of one shard between runs, in a file for each shard.

A unit that can never contribute again is *frozen*: only its key is kept.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.constraint import Constraint
from transforms.aggregation.contribution_bounding import NOT_YET, Usage, finished
from transforms.aggregation.projection import GONE
from transforms.aggregation.sharding import unit_column
from transforms.common.parquet_state import from_parquet, lists_of, table_of, to_parquet

Ints = np.ndarray

STATE = "state"
"""Key of the states in the output of bounded sums, and name of their folder."""

VERSION = b"1"
"""Version of the file's form."""
_TABLES = ("units", "entries", "frozen", "pending")
_NUMBERS = ("until", "superseded")


def file_of(shard: int) -> str:
    """Return the name of a shard's file."""
    return f"units-{shard:05d}.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardState:
    """Private state of one shard between runs. Tables have no columns until the shard has a row.

    Attributes:
        until: End of the windows released so far, in microseconds since the epoch.
        units: Units that can still contribute, with at least one entry: `key`, `first_time` (effective, of the first
            mutation; `NOT_YET`: none so far), `class` (only with classes; GONE: not seen yet) and for query i
            `used.<i>`, its projected changes so far. Under `AtOnce` only `key`, since nothing is used up.
        entries: Entries of these units: `unit` (owners only), `entry`, `time` and `order.*` of the last mutation by
            original time and order (null: known only from its before image), and the last state, named as in a
            projected table.
        frozen: `key` of the units that can never contribute again.
        pending: Projected rows whose windows have not closed, and all truncates so far.
        superseded: Number of superseded rows dropped so far.
    """

    until: int
    units: pa.Table
    entries: pa.Table
    frozen: pa.Table
    pending: pa.Table
    superseded: int = 0


def state_to_bytes(state: ShardState) -> bytes:
    """Return the state as a Parquet file with a column for each table and number."""
    columns = lists_of({name: getattr(state, name) for name in _TABLES})
    rows = len(columns["units"])
    columns |= {name: pa.array([getattr(state, name)] * rows, type=pa.int64()) for name in _NUMBERS}
    return to_parquet(columns, metadata={b"version": VERSION})


def state_from_bytes(payload: bytes) -> ShardState:
    """Return the state that `state_to_bytes` wrote.

    Raises:
        ValueError: The bytes are not a state, or one of another version.
    """
    row = from_parquet(payload)
    version = (row.schema.metadata or {}).get(b"version")
    if version != VERSION:
        raise ValueError(f"a shard's state of version {version!r}; this program reads {VERSION!r}")
    numbers = {name: row[name][0].as_py() for name in _NUMBERS}
    return ShardState(**numbers, **{name: table_of(row[name]) for name in _TABLES})


def merge(state: ShardState, after: ShardState) -> ShardState:
    """Return the state after a run: units that the run changed, and all others as before."""
    keys = after.units["key"]
    return replace(
        after,
        units=pa.concat_tables([without(state.units, "key", keys), after.units]),
        entries=pa.concat_tables([without(state.entries, unit_column(state.entries), keys), after.entries]),
        frozen=state.frozen,
        superseded=state.superseded + after.superseded,
    )


def freeze(state: ShardState, constraint: Constraint) -> ShardState:
    """Keep only the keys of units that can never contribute again; under `AtOnce` there are no such units."""
    if constraint.at_once is not None:
        return state
    done = pa.array(finished(usage_of(state.units), constraint, state.until))
    frozen = state.units.filter(done).select(["key"])
    if frozen.num_rows == 0:
        return state
    return replace(
        state,
        units=state.units.filter(pc.invert(done)),
        entries=without(state.entries, unit_column(state.entries), frozen["key"]),
        frozen=pa.concat_tables([state.frozen, frozen]),
        pending=without(state.pending, unit_column(state.pending), frozen["key"]),
    )


def usage_of(units: pa.Table, keys: pa.Array | None = None) -> Usage:
    """Return the usage of units in the order of the table or of `keys`, of which new ones have used nothing."""
    place = np.arange(units.num_rows)
    if keys is not None:
        known = rows_of(units, "key", keys)
        units, place = known, np.full(len(keys), known.num_rows)
        place[pc.index_in(known["key"], value_set=keys).to_numpy()] = np.arange(known.num_rows)

    def column(name: str, of_new: int) -> Ints:
        return np.append(units[name].to_numpy(), np.int64(of_new))[place]

    return Usage(
        first_time=column("first_time", NOT_YET),
        class_of=column("class", GONE) if "class" in units.column_names else None,
        used=tuple(column(name, 0) for name in units.column_names if name.startswith("used.")),
    )


def rows_of(table: pa.Table, column: str, keys: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return the rows of a table with certain keys.

    Args:
        table: Any table.
        column: Column with the keys.
        keys: Keys to keep.
    """
    return table.filter(pc.is_in(table[column], value_set=pc.unique(keys)))


def without(table: pa.Table, column: str, keys: pa.ChunkedArray) -> pa.Table:
    """Return the rows of a table without certain keys.

    Args:
        table: Any table.
        column: Column with the keys.
        keys: Keys to drop.
    """
    return table if len(keys) == 0 else table.filter(pc.invert(pc.is_in(table[column], value_set=keys)))
