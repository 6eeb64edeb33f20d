"""Put one shard's mutations in order, and rebuild each entry's chain of states.

    in    pa.Table      projected rows of one shard (transforms.aggregation.projection), in any order
    out   Chains        NumPy columns sorted by (chain, time, source order), repeated mutations removed

A chain is one entry of one unit. The order of the input rows does not matter:

* source order is the `order.*` columns; with new values only, the last of them is the position in the files;
* at equal times and equal order, images before and after are linked end to end (an Eulerian path);
* a repeated mutation, with the same two images, counts once; with new values only, a row that is read twice does.

Images are digests of whole states (transforms.common.images), not of the columns that queries read: the treatment of a
row depends neither on `where` nor on the set of queries.

An entry first seen with a before image existed before the changelog begins: its chain gets an *initial row*, an
insertion before all time. If earlier runs have released windows, mutations of these windows count in the first open
one: `time` is then the *effective* time, and an initial row takes that of its entry's first mutation. Rows are always
in the order of their original times. Carried rows come first in their chains. They are known states, not changes.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.aggregation.groups import starts
from transforms.aggregation.shard_rows import BEFORE_ALL, Ints, ShardRows, to_numpy, with_carried
from transforms.aggregation.sharding import unit_column
from transforms.aggregation.ties import settle
from transforms.common.batches import POSITION
from transforms.common.images import NONE
from transforms.common.keys import Keys, number, number_words, sort
from transforms.common.kinds import one_chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """Rows of one shard in chain order; arrays are [rows] unless stated.

    Attributes:
        chain, unit: Codes from 0 without gaps; `chain` is non-decreasing.
        units, entries: Keys of units and entries by code, [units] and [chains].
        unit_of: The unit of each chain, [chains].
        time: Effective time in microseconds since the epoch; `BEFORE_ALL` for carried rows and the initial rows of a
            first run.
        row: Number of the input row, carried ones first; -1 for initial rows.
        carried: Whether a row is a state known from an earlier run, not a change.
        cells, values: For each query the cell and the value of the state after the row; `values[i]` is None for counts.
        classes: Class of the state after the row, or None.
        image: Digest of the state after the row; None if positions order all ties.
        rank: Rank of the row in its unit by (time, source order, entry), to break ties between entries; None if units
            are entries.
    """

    chain: Ints
    unit: Ints
    units: Keys
    entries: Keys
    unit_of: Ints
    time: Ints
    row: Ints
    carried: Ints
    cells: tuple[Ints, ...]
    values: tuple[Ints | None, ...]
    classes: Ints | None
    image: Ints | None
    rank: Ints | None

    @property
    def first(self) -> Ints:
        """Whether each row is the first of its chain, bool [rows]."""
        return starts(self.chain)

    def take(self, rows: Ints) -> "Chains":
        """Return some rows, by number or mask [rows]. Codes do not change; chains stay in order if the rows do."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows  # a third of a mask's time
        return replace(
            self,
            chain=self.chain[rows],
            unit=self.unit[rows],
            time=self.time[rows],
            row=self.row[rows],
            carried=self.carried[rows],
            cells=tuple(cell[rows] for cell in self.cells),
            values=tuple(None if value is None else value[rows] for value in self.values),
            classes=None if self.classes is None else self.classes[rows],
            image=None if self.image is None else self.image[rows],
            rank=None if self.rank is None else self.rank[rows],
        )


@dataclass(frozen=True, slots=True)
class Codes:
    """Codes of each row's unit and chain, carried rows first, and the keys by code, as in `Chains`."""

    unit: Ints
    chain: Ints
    units: Keys
    entries: Keys
    unit_of: Ints


@dataclass(frozen=True, slots=True)
class _Room:
    """Insertion of rows into many columns at the same places, four times as fast as `np.insert`.

    Attributes:
        new: Places of the new rows in the result.
        old: For each place of the result the number of the old row; at new rows any number.
    """

    new: Ints
    old: Ints

    @classmethod
    def before(cls, at: Ints, rows: int) -> "_Room":
        """Return the room for one new row before each of the rows `at` (increasing), of `rows` rows."""
        new = at + np.arange(len(at))
        skipped = np.zeros(rows + len(at), dtype=np.int64)
        skipped[new] = 1
        return cls(new, np.arange(rows + len(at)) - np.cumsum(skipped))

    def filled(self, column: Ints, values: Ints | int) -> Ints:
        found = column[self.old]
        found[self.new] = values
        return found


def encode(table: pa.Table, carried: pa.Table | None) -> Codes:
    """Return codes of the units and chains of both tables."""
    unit, units = number(one_chunk(with_carried(table, carried, unit_column(table))))
    if unit_column(table) == "entry":
        return Codes(unit, unit, units, units, np.arange(len(units)))
    entry, names = number(one_chunk(with_carried(table, carried, "entry")))
    chain, first = number_words(unit * len(names) + entry)
    return Codes(unit, chain, units, Keys(names.column, first), unit[first])


def build_chains(
    table: pa.Table,
    *,
    queries: int,
    carried: pa.Table | None = None,
    closed: int | None = None,
    until: int | None = None,
    codes: Codes | None = None,
) -> Chains:
    """Order `table` and rebuild the chains.

    Args:
        table: Projected rows of one shard, in any order.
        queries: Number of queries whose cells and values the table holds.
        carried: Last known state of each entry before the run, with the columns that name the entry and `after.*`.
        closed: End of the windows that earlier runs released, in microseconds since the epoch; None: no windows.
        until: Time from which on rows may be left out; None: no row is.
        codes: Result of `encode`, if it is known.
    """
    known = 0 if carried is None else carried.num_rows
    codes = encode(table, carried) if codes is None else codes
    owned = unit_column(table) != "entry"
    all_times = to_numpy(table["time"])
    if known:
        all_times = np.concatenate([np.full(known, BEFORE_ALL), all_times])

    columns = ShardRows(table=table, carried=carried)
    rank = columns.short_order()
    order = sort_rows(codes.chain, all_times, rank)
    if until is not None and not columns.has_before:  # otherwise the first row of a chain has its initial state
        order = order[all_times.take(order) < until]
    chain, time = codes.chain.take(order), all_times.take(order)
    same = (chain[1:] == chain[:-1]) & (time[1:] == time[:-1])
    if rank is not None:
        ranked = rank.take(order)
        same &= ranked[1:] == ranked[:-1]
    if same.any():
        order, kept = settle(order, same, codes.chain, columns)
        if not kept.all():
            order, chain, time = order[kept], chain[kept], time[kept]
    cells = [columns.after(f"{i}.cell", order) for i in range(queries)]
    values = [
        columns.after(f"{i}.value", order) if f"after.{i}.value" in table.column_names else None for i in range(queries)
    ]
    classes = columns.after("class", order) if "after.class" in table.column_names else None
    image = columns.image_after(order) if columns.images else None
    is_carried = order < known
    in_unit = _rank_in_unit(order, codes.unit[order], chain, time, columns, codes.entries) if owned else None
    # In a chain and in a unit, original times are in order already, so late rows come before the others.
    time = time if closed is None else np.where(is_carried, time, np.maximum(time, closed))

    chains = Chains(
        chain=chain,
        unit=codes.unit_of[chain] if owned else chain,
        units=codes.units,
        entries=codes.entries,
        unit_of=codes.unit_of,
        time=time,
        row=order,
        carried=is_carried,
        cells=tuple(cells),
        values=tuple(values),
        classes=classes,
        image=image,
        rank=in_unit,
    )
    return _with_initial_rows(chains, columns, closed)


def _with_initial_rows(chains: Chains, columns: ShardRows, closed: int | None) -> Chains:
    """Insert an initial row before each chain that begins with a change from a before image.

    Args:
        chains: Rows in chain order, without initial rows.
        columns: Columns to which `row` of the chains refers.
        closed: As in `build_chains`.
    """
    if chains.image is None or not columns.has_before:
        return chains
    begins = np.flatnonzero(chains.first & ~chains.carried)
    at = begins[columns.image_before(chains.row[begins]) != NONE]
    if len(at) == 0:
        return chains
    rows, rank = chains.row[at], chains.rank
    room = _Room.before(at, len(chains.row))
    if rank is not None:
        # Initial rows of a first run come before all mutations of their unit, ordered by entry; later
        # ones directly before their entry's first mutation. Ranks of others are even, so that no two rows share one.
        first_run = _ranks(chains.entries.all())[chains.chain[at]] - len(chains.entries) - 1
        rank = room.filled(2 * rank, first_run if closed is None else 2 * rank[at] - 1)
    classes = None if chains.classes is None else room.filled(chains.classes, columns.before("class", rows))
    return replace(
        chains,
        chain=room.filled(chains.chain, chains.chain[at]),
        unit=room.filled(chains.unit, chains.unit[at]),
        time=room.filled(chains.time, BEFORE_ALL if closed is None else chains.time[at]),
        row=room.filled(chains.row, -1),
        carried=room.filled(chains.carried, False),
        cells=tuple(room.filled(c, columns.before(f"{i}.cell", rows)) for i, c in enumerate(chains.cells)),
        values=tuple(
            None if v is None else room.filled(v, columns.before(f"{i}.value", rows))
            for i, v in enumerate(chains.values)
        ),
        classes=classes,
        image=room.filled(chains.image, columns.image_before(rows)),
        rank=rank,
    )


def sort_rows(chain: Ints, time: Ints, rank: Ints | None) -> Ints:
    """Return the stable order of rows by (chain, time, rank), int64 [rows]; by one 64-bit key if all fit into it.

    Args:
        chain: Numbers from 0 on, int64 [rows].
        time: Times, int64 [rows]; those of `BEFORE_ALL` come first, with any rank.
        rank: Small numbers from 0 on, uint8 [rows]; None: all are equal.
    """
    real = time != BEFORE_ALL
    if not real.any():
        return sort(chain.view(np.uint64))
    whole = bool(real.all())
    known = time if whole else time[real]
    low, high = int(known.min()), int(known.max())
    since, unit = (time - low).view(np.uint64), 1
    if high - low < 2**63:
        since, unit = _in_common_units(since, real)
    low_bits = 0 if rank is None else int(rank.max()).bit_length()
    bits = ((high - low) // unit + 1).bit_length() + low_bits
    if bits + int(chain.max()).bit_length() > 64:
        return np.lexsort([time, chain] if rank is None else [rank, time, chain])
    since += np.uint64(1)
    if rank is not None:
        since <<= np.uint64(low_bits)
        since |= rank
    if not whole:
        since *= real
    since |= chain.view(np.uint64) << np.uint64(bits)
    return sort(since)


def _in_common_units(times: Ints, real: Ints) -> tuple[Ints, int]:
    """Return the times divided by the largest common unit of the real ones, and that unit, often a whole second."""
    unit = np.gcd.reduce(times[np.flatnonzero(real)[:256]]) or np.uint64(1)
    steps = times if unit == 1 else times // unit
    return (steps, int(unit)) if ((steps * unit == times) | ~real).all() else (times, 1)


def _rank_in_unit(order: Ints, unit: Ints, chain: Ints, time: Ints, columns: ShardRows, entries: Keys) -> Ints:
    """Return ranks by (unit, time, source order, entry) that keep the order of every chain, int64 [rows].

    Few rows have the unit and time of another one: only these are compared by source order and entry.
    """
    index = sort_rows(unit, time, None)
    same = (np.diff(unit.take(index)) == 0) & (np.diff(time.take(index)) == 0)
    if same.any():
        tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
        rows, run = index[tied], np.cumsum(~np.insert(same, 0, False))[tied]
        known = 0 if columns.carried is None else columns.carried.num_rows
        numbers = order[rows]
        real, source = numbers >= known, []
        for name in [name for name in columns.orders if name != POSITION] or columns.orders:
            ranks = np.full(len(rows), -1, dtype=np.int64)
            ranks[real] = columns.order(name, numbers[real])
            source.append(ranks)
        codes, place = np.unique(chain[rows], return_inverse=True)
        entry = _ranks(entries.take(codes))[place]
        index[tied] = rows[np.lexsort([rows, entry, *source[::-1], run])]
    rank = np.empty(len(order), dtype=np.int64)
    rank[index] = np.arange(len(order))
    return rank


def _ranks(keys: pa.Array) -> Ints:
    """Return ranks 1, 2, ... of keys in their order."""
    return to_numpy(pc.rank(keys, tiebreaker="dense")).astype(np.int64)
