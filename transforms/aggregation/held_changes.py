"""What counts under `AtOnce` with a number of changes: states that are held back until their block of windows ends.

    in    Chains, Held       one shard's rows at the ends of windows (window_ends); where what counts is not the state
    out   Chains, Held       the rows as one query counts them: at most so many changes in a block; what is held now

In each block of `block` windows, counted from the start, a unit's first `changes` - 1 changes count when they come,
but for those at the end of the block's last window. Later ones are held back until there, where the unit is as it is.
What all entries of an owner change by the end of one window is one change, and they are held back together. So what
counts in a block is a function of the state at its start and of what comes in it (privacy.constraint.AtOnce), and
whoever has nothing held back at the end of a block is forgotten.

A row that is held back is dated into its block's last window. Of the rows of a window the last one stands.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.aggregation.chains import Chains
from transforms.aggregation.contribution_bounding import changed
from transforms.aggregation.groups import count_up, starts
from transforms.aggregation.leaf_sums import window_of
from transforms.aggregation.queries import Timeline

Ints = np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What counts of each chain for one query between two runs; arrays [chains].

    Attributes:
        cell, value: of the state that counts; `value` is None for counts.
        used: changes in the block, of the unit.
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
        ends: the last row of each chain in each window, with owners of the entries that may count (first_entries);
            carried rows are the true states before.
        held: of the carried rows' chains, as it was then; others are not looked at. None in the first run.
        changes, block: so many in so many windows.
    """
    chain, window = ends.chain, window_of(ends.time, timeline)
    last = -(-window // block) * block  # of its block
    change = changed(ends, query)
    before, behind = np.zeros(len(ends.units), dtype=np.int64), np.zeros(len(chain), dtype=bool)
    if held is not None and timeline.released % block:  # else every unit counts as it is
        last[ends.carried] = _end_of_block(timeline.released, block)
        known = chain[ends.carried]
        used = np.where(held.block[known] == timeline.released // block, held.used[known], 0)
        np.maximum.at(before, ends.unit[ends.carried], used)
        behind[ends.carried] = _differs(ends, query, held)[ends.carried]
    counted = np.flatnonzero(change & (window < last))
    so_far, left = _changes_so_far(ends.unit[counted], window[counted], before, block=block, timeline=timeline)
    late = np.zeros(len(chain), dtype=bool)
    late[counted] = so_far >= changes

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
        time=np.where(moved, timeline.bounds.at(counts_at) - 1, found.time),
        carried=first,
        cells=tuple(cells),
        values=tuple(values),
    )
    used = np.minimum(left, changes - 1)[ends.unit_of]
    return found, _left(found, query, used, timeline.windows // block)


def _changes_so_far(unit: Ints, window: Ints, before: Ints, *, block: int, timeline: Timeline) -> tuple[Ints, Ints]:
    """Which of its unit's changes in the block each row is, and how many changes units have in the block that goes on.

    Args:
        unit, window: of the rows that change; what a unit changes in one window is one change.
        before: of each unit, in the block that went on when the run began.
    """
    key, row = np.unique(unit * (timeline.windows + 1) + window, return_inverse=True)
    unit, number = key // (timeline.windows + 1), (key % (timeline.windows + 1) - 1) // block
    so_far = 1 + count_up(np.cumsum(starts(unit) | starts(number)))
    so_far += np.where(number == timeline.released // block, before[unit], 0)
    now = timeline.windows // block
    left = before.copy() if now == timeline.released // block else np.zeros_like(before)
    np.maximum.at(left, unit[number == now], so_far[number == now])
    return so_far[row], left


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
    """Of the entries between two runs all of units of which something is held back until a window that closes now.

    An entry that may not count, since others of its owner do, is taken for one that is held back: it does no harm.
    """
    none = entries.slice(0, 0)
    if timeline.released % block == 0 or timeline.windows < _end_of_block(timeline.released, block):
        return none
    behind = np.zeros(entries.num_rows, dtype=bool)
    for query in range(queries):
        for of in ("cell", "value"):
            if f"held.{query}.{of}" in entries.column_names:
                held, true = (entries[f"{name}.{query}.{of}"].to_numpy() for name in ("held", "after"))
                behind |= held != true
    if "unit" not in entries.column_names:
        return entries.filter(pa.array(behind))
    owners = pc.unique(entries["unit"].filter(pa.array(behind)))
    return entries.filter(pc.is_in(entries["unit"], value_set=owners))


def _end_of_block(windows: int, block: int) -> int:
    """The last window of the block that goes on, or begins, after so many windows."""
    return (windows // block + 1) * block


def _differs(chains: Chains, query: int, held: Held) -> Ints:
    differs: Ints = held.cell[chains.chain] != chains.cells[query]
    if (value := chains.values[query]) is not None and held.value is not None:
        differs |= held.value[chains.chain] != value
    return differs


def _left(found: Chains, query: int, used: Ints, block: int) -> Held:
    """What counts of each chain after its last row, none without one, and what its unit has used."""

    def lasting(values: Ints, of_none: int) -> Ints:
        column = np.full(len(found.unit_of), of_none, dtype=np.int64)
        column[found.chain] = values  # of equal codes the last one stands
        return column

    value = found.values[query]
    return Held(
        cell=lasting(found.cells[query], -1),
        value=None if value is None else lasting(value, 0),
        used=used,
        block=np.full(len(found.unit_of), block),
    )
