"""What counts under `AtOnce` with a number of changes: states that are held back until their block of windows ends.

    in    Chains, Held       one shard's rows at the ends of windows (window_ends); where what counts is not the state
    out   Chains, Held       the rows as one query counts them: at most so many changes in a block; what is held now

In each block of `block` windows, counted from the start, an entry's first `changes` - 1 changes count when they come,
but for those at the end of the block's last window. Later ones are held back until there, where the entry is as it is.
So what counts in a block is a function of the state at its start and of what comes in it (privacy.constraint.AtOnce),
and whoever has nothing held back at the end of a block is forgotten.

A row that is held back is dated into its block's last window. Of the rows of a window the last one stands.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from transforms.aggregation.chains import Chains
from transforms.aggregation.contribution_bounding import changed
from transforms.aggregation.groups import starts, sums_within
from transforms.aggregation.leaf_sums import window_of
from transforms.aggregation.queries import Timeline

Ints = np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What counts of each chain for one query between two runs; arrays [chains].

    Attributes:
        cell, value: of the state that counts; `value` is None for counts.
        used: changes in the block.
        block: its number, the same for all that are told at one time.
    """

    cell: Ints
    value: Ints | None
    used: Ints
    block: Ints


def held_changes(
    ends: Chains, query: int, held: Held | None, *, changes: int, block: int, timeline: Timeline
) -> tuple[Chains, Held]:
    """The rows of one query as they count, and what counts when the last window has closed.

    What the result says of other queries means nothing.

    Args:
        ends: the last row of each chain in each window; carried rows are the true states before.
        held: of the carried rows' chains, as it was then; others are not looked at. None in the first run.
        changes, block: so many in so many windows.
    """
    chain, window = ends.chain, window_of(ends.time, timeline)
    last = -(-window // block) * block  # of its block
    change = changed(ends, query)
    counted = change & (window < last)
    so_far, behind = counted.astype(np.int64), np.zeros(len(chain), dtype=bool)
    if held is not None and timeline.released % block:  # else every entry counts as it is
        last[ends.carried] = _end_of_block(timeline.released, block)
        known = chain[ends.carried]
        so_far[ends.carried] = np.where(held.block[known] == timeline.released // block, held.used[known], 0)
        behind[ends.carried] = _differs(ends, query, held)[ends.carried]
    so_far = sums_within(np.cumsum(starts(chain) | starts(last)), so_far)
    late = counted & (so_far >= changes)

    # A carried row stands first, and once more where its entry is caught up with.
    rows = np.flatnonzero(change | ends.carried | (window == last))
    rows = np.repeat(rows, 1 + behind[rows])
    again = np.insert(rows[1:] == rows[:-1], 0, False)
    moved = late[rows] | again
    counts_at = np.where(moved, last[rows], np.where(ends.carried[rows], 0, window[rows]))
    stands = (np.append(starts(chain[rows])[1:] | starts(counts_at)[1:], True)[: len(rows)]) & (
        counts_at <= timeline.windows
    )
    rows, again, moved, counts_at = rows[stands], again[stands], moved[stands], counts_at[stands]
    found = ends.take(rows)
    first = found.carried & ~again
    cells, values = list(found.cells), list(found.values)
    if held is not None:
        cells[query] = np.where(first, held.cell[found.chain], cells[query])
        if (value := values[query]) is not None and held.value is not None:
            values[query] = np.where(first, held.value[found.chain], value)
    found = replace(
        found,
        time=np.where(moved, timeline.start + counts_at * timeline.every - 1, found.time),
        carried=first,
        cells=tuple(cells),
        values=tuple(values),
    )
    used = np.where(last == _end_of_block(timeline.windows, block), np.minimum(so_far, changes - 1), 0)
    return found, _left(found, query, chain, used, timeline.windows // block)


def held_of(carried: pa.Table | None, query: int, chains: Chains) -> Held | None:
    """What `held_columns` wrote of the carried rows, by chain; None if there are none."""
    name = f"held.{query}"
    if carried is None:
        return None
    rows = np.flatnonzero(chains.carried)

    def column(of: str) -> Ints:
        found = np.zeros(len(chains.unit_of), dtype=np.int64)
        found[chains.chain[rows]] = carried[f"{name}.{of}"].to_numpy()[chains.row[rows]]
        return found

    return Held(
        cell=column("cell"),
        value=column("value") if chains.values[query] is not None else None,
        used=column("used"),
        block=column("block"),
    )


def held_columns(held: Held, query: int, chains: Ints) -> dict[str, Ints]:
    """What is kept of some chains, beside their last states."""
    name = f"held.{query}"
    columns = {
        f"{name}.cell": held.cell[chains],
        f"{name}.used": held.used[chains],
        f"{name}.block": held.block[chains],
    }
    return columns if held.value is None else {**columns, f"{name}.value": held.value[chains]}


def caught_up(entries: pa.Table, queries: int, *, block: int, timeline: Timeline) -> pa.Table:
    """Of the entries between two runs those that something is held back of until a window that closes now."""
    none = entries.slice(0, 0)
    if timeline.released % block == 0 or timeline.windows < _end_of_block(timeline.released, block):
        return none
    behind = np.zeros(entries.num_rows, dtype=bool)
    for query in range(queries):
        for of in ("cell", "value"):
            if f"held.{query}.{of}" in entries.column_names:
                held, true = (entries[f"{name}.{query}.{of}"].to_numpy() for name in ("held", "after"))
                behind |= held != true
    return entries.filter(pa.array(behind))


def _end_of_block(windows: int, block: int) -> int:
    """The last window of the block that goes on, or begins, after so many windows."""
    return (windows // block + 1) * block


def _differs(chains: Chains, query: int, held: Held) -> Ints:
    differs: Ints = held.cell[chains.chain] != chains.cells[query]
    if (value := chains.values[query]) is not None and held.value is not None:
        differs |= held.value[chains.chain] != value
    return differs


def _left(found: Chains, query: int, chain: Ints, used: Ints, block: int) -> Held:
    """What counts of each chain after the last row, and what it has used; a chain without a row that counts is none."""

    def lasting(codes: Ints, values: Ints, of_none: int) -> Ints:
        column = np.full(len(found.unit_of), of_none, dtype=np.int64)
        column[codes] = values  # of equal codes the last one stands
        return column

    value = found.values[query]
    return Held(
        cell=lasting(found.chain, found.cells[query], -1),
        value=None if value is None else lasting(found.chain, value, 0),
        used=lasting(chain, used, 0),
        block=np.full(len(found.unit_of), block),
    )
