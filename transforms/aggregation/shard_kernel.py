"""Contribution bounding run after run: what is new in one shard, and the private state that the run before left.

    in    pa.Table, ShardState        projected rows of one shard that came since the run before; its state
    out   (NodeKey, bytes)            bounded sums of the windows that close now (transforms.aggregation.node_sums)
          ShardState                  what the next run needs

What a unit contributes is a function of its own rows and of the runs they came in:

* rows at or after the end of the last window wait, as they are, until their windows close. (The first run uses
  them for one thing: an entry whose first mutation has a before image, with no truncate before it, is in the initial
  level.)
* a *late* row, of a window that is released, takes effect at the start of the first open window, for its bound
  too: a unit's nodes stay within the span that is priced, and its changes within its number. Late rows keep their
  order and come before the others of their chain;
* a row that is not after the last known one of its entry, by time and source order, is *superseded* and dropped: it was
  delivered before, or the later state stands. Where rows of one time have no order of their own, time decides alone;
* an entry first seen in a later run with a before image enters where it is first seen;
* a unit that can never contribute again is *frozen*: its key alone is kept, and its rows are dropped from then on.

So the bounds of privacy.planning.sensitivity hold as in one run: effective times do not decrease along a chain or a
unit, each change counts in one window, at its effective time, and what was used is carried. Under `AtOnce` nothing is
used and no unit is ever frozen: the last states of entries, as they are and not as they counted, are all that is
carried (transforms.aggregation.window_ends). With every row on time, the sums are those of one run over everything, but
for entries first seen with a before image after the first run.

A run's cost is that of its new rows and of the units they are of; the state of the others passes through in columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.constraint import AtOnce
from transforms.aggregation.chains import Chains, build_chains
from transforms.aggregation.chains import encode as encode_chains
from transforms.aggregation.contribution_bounding import Usage, bound, changed
from transforms.aggregation.held_changes import Held, caught_up, held_changes, held_columns, held_of
from transforms.aggregation.leaf_sums import cut, sum_leaves
from transforms.aggregation.matched import count_matched
from transforms.aggregation.node_sums import BOUNDED, EXACT, MATCHED, Aggregation, NodeKey, encode
from transforms.aggregation.queries import Timeline
from transforms.aggregation.shard_rows import BEFORE_ALL, with_carried
from transforms.aggregation.shard_state import ShardState, freeze, merge, rows_of, usage_of, without
from transforms.aggregation.sharding import unit_column
from transforms.aggregation.truncates import deletions, split
from transforms.aggregation.window_ends import first_entries, window_ends
from transforms.common.batches import POSITION, ROW_BITS
from transforms.common.images import IMAGE
from transforms.common.kinds import to_mask

Ints = np.ndarray
Sums = list[tuple[NodeKey, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closed:
    """What a run makes of a shard's rows.

    Attributes:
        due: mutations that may lie before the end of the last window; `chains` has those that do, in order.
        carried: the last states known before of the entries among them.
        pending: rows that wait.
        superseded: how many were dropped.
        masks: of `chains`, what counts for each query; None under `AtOnce`, which counts no changes.
        usage: of the contribution bound; None under `AtOnce`, which has nothing to use up.
        renewed: for each query the rows that count under `AtOnce` with a number of changes, and what is held back.
    """

    due: pa.Table
    carried: pa.Table | None
    pending: pa.Table
    superseded: int
    chains: Chains
    masks: list[Ints] | None
    usage: Usage | None
    renewed: list[tuple[Chains, Held]] | None = None


def advance_shard(rows: pa.Table | None, state: ShardState | None, aggregation: Aggregation) -> tuple[Sums, ShardState]:
    """Close the windows of the run in one shard.

    Args:
        rows: what is new; None for nothing.
        state: what the run before left; None for nothing, in the first run or for a shard without rows so far.

    Raises:
        ValueError: no window closes, a state that is not of the run before, rows with other columns than before, or
            exact sums of part of a changelog.
    """
    state = _of_the_run_before(state, aggregation)
    timeline = aggregation.timeline
    if rows is None and state is None:
        nothing = pa.table({})
        return [], ShardState(until=timeline.until, units=nothing, entries=nothing, frozen=nothing, pending=nothing)
    closed = _close(rows, state, aggregation)
    chains = closed.chains
    after = ShardState(
        until=timeline.until,
        units=_units(chains, closed.usage),
        entries=_whole_numbers(_entries(chains, closed)),
        frozen=pa.table({"key": chains.units.take(np.zeros(0, np.int64))}),
        pending=_with_past_positions(_whole_numbers(closed.pending)),
        superseded=closed.superseded,
    )
    after = freeze(after if state is None else merge(state, after), aggregation.constraint)
    return list(_sum(closed, aggregation)), after


def sum_shard(rows: pa.Table | None, state: ShardState | None, aggregation: Aggregation) -> Sums:
    """The sums of `advance_shard`, in a run that leaves no state."""
    state = _of_the_run_before(state, aggregation)
    return [] if rows is None and state is None else list(_sum(_close(rows, state, aggregation), aggregation))


def _of_the_run_before(state: ShardState | None, aggregation: Aggregation) -> ShardState | None:
    """The state, if it is that of the run before; None if the shard never had a row."""
    timeline = aggregation.timeline
    if timeline.windows <= timeline.released:
        raise ValueError("no window closes in this run")
    if state is None:
        return None
    if state.until != timeline.closed:
        raise ValueError(f"the state is of windows up to {state.until}, not {timeline.closed}")
    if aggregation.exact:
        raise ValueError("exact sums need the whole changelog in one run")
    return state if state.pending.column_names else None


def _close(rows: pa.Table | None, state: ShardState | None, aggregation: Aggregation) -> _Closed:
    timeline, block = aggregation.timeline, aggregation.block
    table, truncates = split(rows if state is None else _gather(rows, state))
    first_run, is_open = timeline.released == 0, to_mask(pc.greater_equal(table["time"], timeline.until))
    pending = table.filter(pa.array(is_open)) if is_open.any() else table.slice(0, 0)
    due = table if first_run or not is_open.any() else table.filter(pa.array(~is_open))
    carried, superseded = None, 0
    if truncates.num_rows:
        pending = pa.concat_tables([pending, truncates])
        due = pa.concat_tables([due, _truncated(truncates, due, state, timeline)])
    if state is not None:
        mine = unit_column(table)
        carried = rows_of(state.entries, mine, due[mine])
        old = _superseded(due, carried, timeline.closed)
        superseded = int(old.sum())
        due = due if not superseded else due.filter(pa.array(~old))
        carried = carried if not superseded else rows_of(carried, mine, due[mine])
        if block is not None:
            behind = caught_up(state.entries, len(aggregation.queries), block=block, timeline=timeline)
            carried = pa.concat_tables([carried, without(behind, mine, due[mine])])

    closed = None if first_run else timeline.closed
    chains = _before(
        build_chains(due, queries=len(aggregation.queries), carried=carried, closed=closed), timeline.until
    )
    masks, usage = None, None
    if not isinstance(aggregation.constraint, AtOnce):
        known = None if state is None else usage_of(state.units, chains.units.all())
        masks, usage = bound(chains, aggregation.constraint, known)
    return _Closed(
        due=due,
        carried=carried,
        pending=pending,
        superseded=superseded,
        chains=chains,
        masks=masks,
        usage=usage,
        renewed=None if block is None else _renewed(chains, carried, aggregation, block),
    )


def _renewed(
    chains: Chains, carried: pa.Table | None, aggregation: Aggregation, block: int
) -> list[tuple[Chains, Held]]:
    assert isinstance(aggregation.constraint, AtOnce)
    ends, entries = window_ends(chains, aggregation.timeline), aggregation.constraint.entries
    return [
        held_changes(
            first_entries(ends, query, entries, aggregation.timeline),
            query,
            held_of(carried, query, ends),
            changes=aggregation.constraint.changes or 0,
            block=block,
            timeline=aggregation.timeline,
        )
        for query in range(len(aggregation.queries))
    ]


def _gather(rows: pa.Table | None, state: ShardState) -> pa.Table:
    """Pending and new rows, without those of frozen units."""
    table = state.pending
    if rows is not None:
        if set(rows.column_names) != set(table.column_names):
            raise ValueError(f"columns were {sorted(table.column_names)}, now {sorted(rows.column_names)}")
        new = _whole_numbers(rows.select(table.column_names))
        if new.schema.types != table.schema.types:
            raise ValueError(f"types of columns were {table.schema.types}, now {new.schema.types}")
        table = pa.concat_tables([table, new])
    if state.frozen.num_rows and table.num_rows:
        # The frozen are many and the new rows few: look the former up among the latter first.
        frozen = rows_of(state.frozen, "key", table[unit_column(table)])
        table = without(table, unit_column(table), frozen["key"])
    return table


def _truncated(truncates: pa.Table, due: pa.Table, state: ShardState | None, timeline: Timeline) -> pa.Table:
    """The deletions that truncates bring, without those that entries have behind them."""
    happened = truncates
    if timeline.released:  # in the first run all: a row that waits, after one that does, is not its entry's first
        happened = truncates.filter(pc.less(truncates["time"], timeline.until))
    known = None if state is None else state.entries
    found = deletions(happened, due, known)
    return found if known is None else found.filter(pa.array(~_superseded(found, known, timeline.closed)))


def _superseded(table: pa.Table, carried: pa.Table, closed: int) -> Ints:
    """Rows that are not after the last known mutation of their entry, by (time, source order)."""
    found = np.zeros(table.num_rows, dtype=bool)
    late = np.flatnonzero(table["time"].to_numpy() < closed)  # all others are after anything known
    if len(late) == 0 or carried.num_rows == 0:
        return found
    rows = table.take(pa.array(late))
    chain = encode_chains(rows, carried).chain
    place = np.full(int(chain.max()) + 1, -1)
    place[chain[: carried.num_rows]] = np.arange(carried.num_rows)
    place = place[chain[carried.num_rows :]]
    time, last = rows["time"].to_numpy(), pc.fill_null(carried["time"], BEFORE_ALL).to_numpy()[place]
    old = (place >= 0) & (time < last)
    tied = np.flatnonzero((place >= 0) & (time == last))
    for name in _orders(table):
        both = with_carried(rows.take(pa.array(tied)), carried.take(pa.array(place[tied])), name)
        known, mine = np.split(pc.rank(both, tiebreaker="dense").to_numpy().astype(np.int64), 2)
        old[tied[mine < known]] = True
        tied = tied[mine == known]
    old[tied] = True
    found[late[old]] = True
    return found


def _before(chains: Chains, until: int) -> Chains:
    """The rows before a time, under the same codes."""
    kept = chains.time < until
    return chains if kept.all() else chains.take(kept)


def _sum(closed: _Closed, aggregation: Aggregation) -> Iterator[tuple[NodeKey, bytes]]:
    for number, (query, bounded) in enumerate(zip(aggregation.queries, _bounded(closed, aggregation), strict=True)):
        variants = {BOUNDED: bounded}
        if aggregation.exact:
            variants[EXACT] = closed.chains, changed(closed.chains, number)
            counted = None if closed.masks is None else closed.masks[number]
            after = closed.pending.num_rows - closed.pending["entry"].null_count  # which truncates have not
            told = count_matched(closed.chains, counted, number, aggregation.timeline, after=after)
            yield (MATCHED, number, "net", 0), told
        for variant, (chains, mask) in variants.items():
            if not mask.any():
                continue  # as in most shards on a quiet night
            for family in query.families:
                leaves = sum_leaves(chains, mask, query, number, aggregation.timeline, family)
                for chunk, part in cut(leaves, query.cells, aggregation.chunk_cells(number)):
                    yield (variant, number, family, chunk), encode(part)


def _bounded(closed: _Closed, aggregation: Aggregation) -> Iterator[tuple[Chains, Ints]]:
    """For each query the rows that its bounded sums are made of, and which of them are changes that count."""
    constraint = aggregation.constraint
    if not isinstance(constraint, AtOnce):
        yield from ((closed.chains, mask) for mask in closed.masks or [])
        return
    if closed.renewed is not None:
        yield from ((counted, changed(counted, number)) for number, (counted, _) in enumerate(closed.renewed))
        return
    ends = window_ends(closed.chains, aggregation.timeline)
    for number in range(len(aggregation.queries)):
        counted = first_entries(ends, number, constraint.entries, aggregation.timeline)
        yield counted, changed(counted, number)


def _units(chains: Chains, usage: Usage | None) -> pa.Table:
    """The units that have a row."""
    present = np.flatnonzero(np.bincount(chains.unit, minlength=len(chains.units)))
    columns: dict[str, pa.Array | Ints] = {"key": chains.units.take(present)}
    if usage is None:
        return pa.table(columns)
    columns["first_time"] = usage.first_time[present]
    if usage.class_of is not None:
        columns["class"] = usage.class_of[present]
    return pa.table(columns | {f"used.{query}": used[present] for query, used in enumerate(usage.used)})


def _entries(chains: Chains, closed: _Closed) -> pa.Table:
    """The last row of each chain, and what counts of it where that may be another state."""
    chain, due, carried = chains.chain, closed.due, closed.carried
    last = np.flatnonzero(np.append(np.diff(chain) != 0, True)) if len(chain) else np.zeros(0, np.int64)
    codes, row = chain[last], chains.row[last]
    columns: dict[str, pa.Array | pa.ChunkedArray | Ints] = {}
    if chains.rank is not None:
        columns["unit"] = chains.units.take(chains.unit_of[codes])
    columns["entry"] = chains.entries.take(codes)
    mutation = pa.array(row, mask=row < 0)
    for name in ("time", *_orders(due)):
        columns[name] = with_carried(due, carried, name).take(mutation)
    for query, (cell, value) in enumerate(zip(chains.cells, chains.values, strict=True)):
        columns[f"after.{query}.cell"] = cell[last]
        if value is not None:
            columns[f"after.{query}.value"] = value[last]
    for query, (_, held) in enumerate(closed.renewed or ()):
        columns |= held_columns(held, query, codes)
    if chains.classes is not None:
        columns["after.class"] = chains.classes[last]
    if chains.image is not None:
        columns[f"{IMAGE}.after"] = chains.image[last].astype(np.uint32)
    return pa.table(columns)


def _orders(table: pa.Table) -> list[str]:
    """Source order that holds across runs: a position in the files does not."""
    return [name for name in table.column_names if name.startswith("order.") and name != POSITION]


def _with_past_positions(pending: pa.Table) -> pa.Table:
    """Files may be numbered afresh in each run: those of rows that wait go before them, in their order."""
    if POSITION not in pending.column_names:
        return pending
    position = pending[POSITION].to_numpy()
    files, number = np.unique(position >> ROW_BITS, return_inverse=True)
    position = ((number - len(files)) << ROW_BITS) | (position & ((1 << ROW_BITS) - 1))
    return pending.set_column(pending.column_names.index(POSITION), POSITION, pa.array(position))


def _whole_numbers(table: pa.Table) -> pa.Table:
    """Whole numbers as int64, whatever the way the rows came by; only names and types of the schema are kept.

    Digests are uint32 on every way.
    """
    wide = [pa.types.is_integer(f.type) and f.type != pa.uint32() for f in table.schema]
    fields = [pa.field(f.name, pa.int64() if w else f.type) for f, w in zip(table.schema, wide, strict=True)]
    return table.cast(pa.schema(fields))
