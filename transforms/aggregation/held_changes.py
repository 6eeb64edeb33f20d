"""Counted states under `AtOnce` with a bound on changes: excess changes are deferred to the end of a block of windows.

    in    Chains, Held       one shard's rows at the ends of windows (window_ends); counted states that differ
    out   Chains, Held       the rows as one query counts them: at most `changes` changes in a block; deferred states

In each block of `block` windows, counted from the start, the first `changes` - 1 changes of a unit count when they
arrive, except at the end of the block's last window. Later changes are deferred to that end, where the true state
counts. Changes of all entries of an owner by the end of one window are one change, and are deferred together. So the
counted states of a block are a function of the state at its start and of the changes in it (privacy.constraint.AtOnce).
At the end of a block a unit without deferred changes leaves no trace.

A deferred row is dated into its block's last window. If a window has several rows of a chain, the last one counts.
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
    """Counted state of each chain for one query between two runs; arrays int64 [chains].

    Attributes:
        cell, value: Cell and value of the counted state; `value` is None for counts.
        used: Changes of the chain's unit in the block.
        block: Number of the block, the same for all chains of a run.
    """

    cell: Ints
    value: Ints | None
    used: Ints
    block: Ints


def held_changes(
    ends: Chains, query: int, held: Held | None, *, changes: int, block: int, timeline: Timeline
) -> tuple[Chains, Held]:
    """Return the rows of one query as they count, and the counted states after the last window.

    Cells and values of other queries in the result are undefined.

    Neighbours differ in the rows of one unit, and rows of other units do not depend on them. Guarantee: in each block
    at most `changes` changes of the unit count. Source: docs/design.md, "Rules of contribution bounding".

    Args:
        ends: Last row of each chain in each window, with the owners' entries that may count (`first_entries`); carried
            rows are the true states before the run.
        query: Number of the query.
        held: Counted states of the carried rows' chains before the run; other chains are ignored. None in the first
            run.
        changes: Most changes of a unit in a block.
        block: Windows in a block.
        timeline: Windows of the run.
    """
    chain, window = ends.chain, window_of(ends.time, timeline)
    last = -(-window // block) * block  # last window of its block
    change = changed(ends, query)
    before, behind = np.zeros(len(ends.units), dtype=np.int64), np.zeros(len(chain), dtype=bool)
    if held is not None and timeline.released % block:  # else the counted states are the true ones
        last[ends.carried] = _end_of_block(timeline.released, block)
        known = chain[ends.carried]
        used = np.where(held.block[known] == timeline.released // block, held.used[known], 0)
        np.maximum.at(before, ends.unit[ends.carried], used)
        behind[ends.carried] = _differs(ends, query, held)[ends.carried]
    counted = np.flatnonzero(change & (window < last))
    so_far, left = _changes_so_far(ends.unit[counted], window[counted], before, block=block, timeline=timeline)
    late = np.zeros(len(chain), dtype=bool)
    late[counted] = so_far >= changes

    # A carried row comes first, and again at the end of the block if its entry has a deferred change.
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
    """Return each row's number among its unit's changes in the block, and each unit's changes in the current block.

    Args:
        unit, window: Unit and window of each row that changes; all changes of a unit in one window are one change.
        before: Changes of each unit in the block that was current when the run began, [units].
        block: Windows in a block.
        timeline: Windows of the run.
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
    """Return the counted states that `held_columns` wrote for the carried rows.

    Args:
        carried: Last known states of entries with the columns of `held_columns`; None in the first run.
        query: Number of the query.
        chains: Rows of the shard, the carried ones among them.
    """
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
    """Return the counted states of some chains as columns of the private state.

    Args:
        held: Counted states after the run.
        query: Number of the query.
        chains: Codes of the chains, int64 [n].

    Returns:
        Column name to int64 [n].
    """
    name = f"held.{query}"
    columns = {
        f"{name}.cell": held.cell[chains],
        f"{name}.used": held.used[chains],
        f"{name}.block": held.block[chains],
    }
    return columns if held.value is None else {**columns, f"{name}.value": held.value[chains]}


def caught_up(entries: pa.Table, queries: int, *, block: int, timeline: Timeline) -> pa.Table:
    """Return the entries of units with a deferred change that becomes due in this run.

    If only some of an owner's entries count, the others are returned as if deferred; this does no harm.

    Args:
        entries: Last known states of entries, with the columns of `held_columns`.
        queries: Number of queries.
        block: Windows in a block.
        timeline: Windows of the run.
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
    """Return the last window of the block that follows, or contains, the given number of closed windows."""
    return (windows // block + 1) * block


def _differs(chains: Chains, query: int, held: Held) -> Ints:
    differs: Ints = held.cell[chains.chain] != chains.cells[query]
    if (value := chains.values[query]) is not None and held.value is not None:
        differs |= held.value[chains.chain] != value
    return differs


def _left(found: Chains, query: int, used: Ints, block: int) -> Held:
    """Return the counted state of each chain after its last row (cell -1 without one), and the changes of its unit."""

    def lasting(values: Ints, of_none: int) -> Ints:
        column = np.full(len(found.unit_of), of_none, dtype=np.int64)
        column[found.chain] = values  # of equal codes, NumPy keeps the last value
        return column

    value = found.values[query]
    return Held(
        cell=lasting(found.cells[query], -1),
        value=None if value is None else lasting(value, 0),
        used=used,
        block=np.full(len(found.unit_of), block),
    )
