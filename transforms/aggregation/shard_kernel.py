"""Contribution bounding in increments: new rows of one shard, and the private state that the previous run left.

    in    pa.Table, ShardState        projected rows of one shard that came since the previous run; its state
    out   (NodeKey, bytes)            bounded sums of the windows that close now (transforms.aggregation.node_sums)
          ShardState                  state for the next run

The contribution of a unit is a function of the unit's rows and of the runs in which they came:

* Rows at or after the end of the last window wait unchanged until their windows close. (The first run uses them for
  one thing: an entry whose first mutation has a before image, with no truncate at its time, is in the initial level.)
* A *late* row, of a window that is released, takes effect at the start of the first open window, for the contribution
  bound too: the nodes of a unit stay within the span that is priced, and its changes within its bound. Late rows keep
  their order and precede the others of their chain.
* A row that is not after the last known one of its entry, by time and source order, is *superseded* and dropped: it
  was delivered before, or the later state is valid. If the rows have no source order, time alone decides.
* An entry that is first seen in a later run with a before image enters at its first mutation.
* A unit that can never contribute again is *frozen*: only its key is kept, and its later rows are dropped.

So the bounds of privacy.planning.sensitivity hold as in one run: effective times do not decrease along a chain or a
unit, each change counts in one window, at its effective time, and the used part of the bound is carried to the next
run. Under `AtOnce` no bound is used up and no unit is frozen. Only the last states of entries are carried, as the
source has them and not as they counted (transforms.aggregation.window_ends). With every row on time, the sums are those
of one run over everything, except for entries that are first seen with a before image after the first run.

The cost of a run is that of its new rows and of their units; the state of the others passes through in columns.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.series import Family
from transforms.aggregation.chains import Chains, build_chains
from transforms.aggregation.contribution_bounding import Usage, bound, changed
from transforms.aggregation.discovered_key import coded, encode_sums, layers_of, texts_of
from transforms.aggregation.expiry import expirations
from transforms.aggregation.held_changes import Held, caught_up, held_changes, held_of
from transforms.aggregation.interval_changes import changes_of
from transforms.aggregation.leaf_sums import Counting, cut, sum_leaves
from transforms.aggregation.matched import count_matched
from transforms.aggregation.node_sums import BOUNDED, EXACT, MATCHED, Aggregation, NodeKey, encode
from transforms.aggregation.presence import of_units
from transforms.aggregation.queries import Timeline
from transforms.aggregation.shard_state import ShardState, freeze, merge, rows_of, usage_of, without
from transforms.aggregation.shard_state_tables import entries_after, units_after, whole_numbers, with_past_positions
from transforms.aggregation.sharding import unit_column
from transforms.aggregation.superseded import superseded_rows
from transforms.aggregation.truncates import deletions, split
from transforms.aggregation.window_ends import first_entries, window_ends
from transforms.common.kinds import to_mask

Ints = np.ndarray
Sums = list[tuple[NodeKey, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closed:
    """A shard's rows after contribution bounding.

    Attributes:
        due: Mutations that may lie before the end of the last window, and then expiries; `chains` has those that do, in
            order.
        expired: Number of expiries.
        carried: Last known states of their entries before the run.
        pending: Rows that wait.
        superseded: Number of superseded rows.
        masks: For each query, which rows of `chains` count; None under `AtOnce`, which counts no changes.
        usage: Used part of the contribution bound; None under `AtOnce`, which uses nothing up.
        renewed: For each query the rows that count under `AtOnce` with a bound on changes, and the deferred changes.
        texts: For each query that finds keys, by its number, the text of each code in `chains`.
    """

    due: pa.Table
    carried: pa.Table | None
    pending: pa.Table
    expired: int
    superseded: int
    chains: Chains
    masks: list[Ints] | None
    usage: Usage | None
    renewed: list[tuple[Chains, Held]] | None = None
    texts: dict[int, pa.Array]


def advance_shard(rows: pa.Table | None, state: ShardState | None, aggregation: Aggregation) -> tuple[Sums, ShardState]:
    """Close the windows of the run in one shard.

    Neighbouring changelogs differ in the rows of one privacy unit, which are all in one shard. The sums and the state
    of other units do not depend on them. The sums of the unit stay within the bounds of privacy.planning.sensitivity,
    over all runs together. Source: docs/design.md, "Increments".

    Args:
        rows: New projected rows; None if there are no such rows.
        state: State that the previous run left; None in the first run, or for a shard without rows so far.
        aggregation: Queries, windows and contribution bound.

    Returns:
        Sums of the nodes with a contribution, and the state for the next run.

    Raises:
        ValueError: No window closes, the state is not that of the previous run, the columns of the rows have changed,
            or exact sums are asked of part of a changelog.
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
        units=units_after(chains, closed.usage),
        entries=whole_numbers(_entries_after(closed, aggregation)),
        frozen=pa.table({"key": chains.units.take(np.zeros(0, np.int64))}),
        pending=with_past_positions(whole_numbers(closed.pending)),
        superseded=closed.superseded,
    )
    after = freeze(after if state is None else merge(state, after), aggregation.constraint)
    return list(_sum(closed, aggregation)), after


def _entries_after(closed: _Closed, aggregation: Aggregation) -> pa.Table:
    """Return the last known rows of the entries. Those that have expired have the time of their last mutation."""
    due = closed.due
    if closed.expired and aggregation.expires is not None:
        time = due["time"].to_numpy().copy()
        time[-closed.expired :] -= aggregation.expires
        due = due.set_column(due.column_names.index("time"), "time", pa.array(time))
    entries = entries_after(closed.chains, due, closed.carried, closed.renewed)
    for query, texts in closed.texts.items():
        name = f"after.{query}.cell"
        entries = entries.set_column(entries.column_names.index(name), name, texts_of(entries[name], texts))
    return entries


def sum_shard(rows: pa.Table | None, state: ShardState | None, aggregation: Aggregation) -> Sums:
    """Return the sums of `advance_shard` in a run that leaves no state. Arguments and errors: as there.

    Args:
        rows: New projected rows; None if there are no such rows.
        state: State that the previous run left, or None.
        aggregation: Queries, windows and contribution bound.
    """
    state = _of_the_run_before(state, aggregation)
    return [] if rows is None and state is None else list(_sum(_close(rows, state, aggregation), aggregation))


def _of_the_run_before(state: ShardState | None, aggregation: Aggregation) -> ShardState | None:
    """Return the state if it is that of the previous run; None if the shard never had a row."""
    timeline = aggregation.timeline
    if timeline.windows <= timeline.released:
        raise ValueError("no window closes in this run")
    if state is None:
        return None
    if state.until != timeline.closed:
        raise ValueError(f"the state is for windows up to {state.until}, not {timeline.closed}")
    if aggregation.exact:
        raise ValueError("exact sums need the whole changelog in one run")
    return state if state.pending.column_names else None


def _close(rows: pa.Table | None, state: ShardState | None, aggregation: Aggregation) -> _Closed:
    timeline, block = aggregation.timeline, aggregation.block
    rows, codes = (None, None) if rows is None else changes_of(rows)
    table, truncates = split(rows if state is None else _gather(rows, state))
    first_run, is_open = timeline.released == 0, to_mask(pc.greater_equal(table["time"], timeline.until))
    pending = table.filter(pa.array(is_open)) if is_open.any() else table.slice(0, 0)
    due = table if first_run or not is_open.any() else table.filter(pa.array(~is_open))
    carried, superseded, expired = None, 0, 0
    closed = None if first_run else timeline.closed
    if truncates.num_rows:
        pending = pa.concat_tables([pending, truncates])
        due = pa.concat_tables([due, _truncated(truncates, due, state, timeline)])
    if state is not None:
        mine = unit_column(table)
        carried = rows_of(state.entries, mine, due[mine])
        old = superseded_rows(due, carried, timeline.closed)
        superseded = int(old.sum())
        due = due if not superseded else due.filter(pa.array(~old))
    if aggregation.expires is not None:
        known = None if state is None else state.entries
        ended = expirations(due, known, expires=aggregation.expires, closed=closed, until=timeline.until)
        due, expired = pa.concat_tables([due, ended]), ended.num_rows
    if state is not None:
        mine = unit_column(table)
        carried = carried if not (superseded or expired) else rows_of(state.entries, mine, due[mine])
        if block is not None:
            behind = caught_up(state.entries, len(aggregation.queries), block=block, timeline=timeline)
            carried = pa.concat_tables([carried, without(behind, mine, due[mine])])

    codes = codes if due is rows else None  # of other rows
    found = coded(due, carried, [place for place, query in enumerate(aggregation.queries) if query.discovers])
    due, carried = found.rows, found.carried
    until = timeline.until
    built = build_chains(
        due, queries=len(aggregation.queries), carried=carried, closed=closed, until=until, codes=codes
    )
    chains = _before(built, until)
    masks, usage = None, None
    if aggregation.constraint.at_once is None:
        known = None if state is None else usage_of(state.units, chains.units.all())
        masks, usage = bound(chains, aggregation.constraint, known)
    return _Closed(
        due=due,
        carried=carried,
        pending=pending,
        expired=expired,
        superseded=superseded,
        chains=chains,
        masks=masks,
        usage=usage,
        renewed=None if block is None else _renewed(chains, carried, aggregation, block),
        texts=found.texts,
    )


def _renewed(
    chains: Chains, carried: pa.Table | None, aggregation: Aggregation, block: int
) -> list[tuple[Chains, Held]]:
    assert aggregation.constraint.at_once is not None
    ends, entries = window_ends(chains, aggregation.timeline), aggregation.constraint.at_once.entries
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
    """Return pending and new rows, without those of frozen units."""
    table = state.pending
    if rows is not None:
        if set(rows.column_names) != set(table.column_names):
            raise ValueError(f"columns were {sorted(table.column_names)}, now {sorted(rows.column_names)}")
        new = whole_numbers(rows.select(table.column_names))
        if new.schema.types != table.schema.types:
            raise ValueError(f"types of columns were {table.schema.types}, now {new.schema.types}")
        table = pa.concat_tables([table, new])
    if state.frozen.num_rows and table.num_rows:
        # There are many frozen units and few new rows: first find the frozen units among the new rows.
        frozen = rows_of(state.frozen, "key", table[unit_column(table)])
        table = without(table, unit_column(table), frozen["key"])
    return table


def _truncated(truncates: pa.Table, due: pa.Table, state: ShardState | None, timeline: Timeline) -> pa.Table:
    """Return the deletions that truncates cause, without superseded ones."""
    happened = truncates
    if timeline.released:  # in the first run all: a row that waits after a truncate that waits is not its entry's first
        happened = truncates.filter(pc.less(truncates["time"], timeline.until))
    known = None if state is None else state.entries
    found = deletions(happened, due, known)
    return found if known is None else found.filter(pa.array(~superseded_rows(found, known, timeline.closed)))


def _before(chains: Chains, until: int) -> Chains:
    """Return the rows before a time; codes do not change."""
    kept = chains.time < until
    return chains if kept.all() else chains.take(kept)


def _sum(closed: _Closed, aggregation: Aggregation) -> Iterator[tuple[NodeKey, bytes]]:
    timeline, counting, ends = aggregation.timeline, _bounded(closed, aggregation), closed.renewed is not None
    for number, query in enumerate(aggregation.queries):
        texts, celled = closed.texts.get(number), bool(query.known)
        query = query if texts is None else query.of_codes(len(texts))
        counted = {BOUNDED: counting}
        if aggregation.exact:
            counted[EXACT] = lambda number, _: Counting(closed.chains, changed(closed.chains, number))
            kept = None if closed.masks is None else closed.masks[number]
            after = closed.pending.num_rows - closed.pending["entry"].null_count  # truncates have no entry
            yield (
                (MATCHED, number, "net", 0),
                count_matched(closed.chains, kept, number, timeline, after=after, listed=texts is None),
            )
        for variant, of in counted.items():
            for family in query.families:
                changes = of_units(of(number, family), query, number, timeline if variant == BOUNDED and ends else None)
                if not changes.kept.any():
                    continue  # common: most shards have few changes in one night
                leaves = sum_leaves(changes, query, number, timeline, family)
                if texts is not None:
                    layers = layers_of(query.families, len(leaves.sums), family)
                    coded_sums = encode_sums(
                        leaves.node, dict(zip(layers, leaves.sums, strict=True)), texts, celled=celled
                    )
                    yield (variant, number, "net", 0), coded_sums
                    continue
                for chunk, part in cut(leaves, query.cells, aggregation.chunk_cells(number)):
                    yield (variant, number, family, chunk), encode(part)


def _bounded(closed: _Closed, aggregation: Aggregation) -> Callable[[int, Family], Counting]:
    """Return a function from a query and a family to the changes that count."""
    chains, timeline, constraint = closed.chains, aggregation.timeline, aggregation.constraint
    if closed.masks is not None:
        masks = closed.masks
        return lambda number, _: Counting(chains, masks[number])
    if closed.renewed is not None:
        held = [rows for rows, _ in closed.renewed]
        return lambda number, _: Counting(held[number], changed(held[number], number))
    assert constraint.at_once is not None
    entries = constraint.entries
    ends = window_ends(chains, timeline)

    def at_once(number: int, family: Family) -> Counting:
        if family != "net":
            return Counting(chains, changed(chains, number), entries)
        counted = first_entries(ends, number, entries, timeline)
        return Counting(counted, changed(counted, number))

    return at_once
