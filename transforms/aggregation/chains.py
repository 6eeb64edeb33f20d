"""Put one shard's mutations in order, and rebuild each entry's chain of states.

    in    pa.Table      projected rows of one shard (transforms.aggregation.projection), in any order
    out   Chains        NumPy columns sorted by (chain, time, source order), repeated mutations removed

A chain is one entry of one unit. The order of the input rows does not matter:

* source order is the `order.*` columns; with new values only, the last of them is the position in the files;
* at equal times and equal order, images before and after are linked end to end (an Eulerian path);
* a mutation that is there twice, with the same two images, counts once; with new values only, one that is read twice.

Images are digests of whole states (transforms.common.images), not what queries see of them: what becomes of a row
depends neither on `where` nor on which queries there are.

An entry first seen with a before image existed before the changelog begins: its chain gets an *initial row*, an
insertion before all time. Where earlier runs have released windows, what happened in them counts in the first open
one: `time` is then the *effective* time, and an initial row takes that of its entry's first mutation. The order of rows
is always that of their original times. Carried rows stand first in their chains and are no changes, only known states.
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
    """Rows of one shard in chain order; arrays of one length unless said.

    Attributes:
        chain, unit: dense codes; `chain` is non-decreasing.
        units, entries: the unit's and the entry's real keys by code, [units] and [chains].
        unit_of: the unit of each chain.
        time: effective, in microseconds since the epoch; `BEFORE_ALL` for carried rows and a first run's initial rows.
        row: number of the input row, carried ones first; -1 for initial rows.
        carried: rows that are states known from before, not changes.
        cells, values: for each query the state after the row; `values[i]` is None for counts.
        classes: the state's class, or None.
        image: the digest of the state after the row; None where positions order all ties.
        rank: rows of one unit by (time, source order, entry): a tie-break across its entries; None if
            units are entries.
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
        """Whether each row is the first of its chain."""
        return starts(self.chain)

    def take(self, rows: Ints) -> "Chains":
        """Some rows, by their numbers or a mask, under the same codes; chains stay in order if the rows do."""
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
    """Dense codes of each row's unit and chain, carried rows first, and the keys by code, as in `Chains`."""

    unit: Ints
    chain: Ints
    units: Keys
    entries: Keys
    unit_of: Ints


@dataclass(frozen=True, slots=True)
class _Room:
    """For new rows among others: `np.insert` for many columns and the same places, at a quarter of the time.

    Attributes:
        new: places of the new rows among all.
        old: for each place the row that was there or, at new ones, any.
    """

    new: Ints
    old: Ints

    @classmethod
    def before(cls, at: Ints, rows: int) -> "_Room":
        """For one before each of the rows `at`, increasing, of so many."""
        new = at + np.arange(len(at))
        skipped = np.zeros(rows + len(at), dtype=np.int64)
        skipped[new] = 1
        return cls(new, np.arange(rows + len(at)) - np.cumsum(skipped))

    def filled(self, column: Ints, values: Ints | int) -> Ints:
        found = column[self.old]
        found[self.new] = values
        return found


def encode(table: pa.Table, carried: pa.Table | None) -> Codes:
    """Number the units and chains of both tables."""
    unit, units = number(one_chunk(with_carried(table, carried, unit_column(table))))
    if unit_column(table) == "entry":
        return Codes(unit, unit, units, units, np.arange(len(units)))
    entry, names = number(one_chunk(with_carried(table, carried, "entry")))
    chain, first = number_words(unit * len(names) + entry)
    return Codes(unit, chain, units, Keys(names.column, first), unit[first])


def build_chains(
    table: pa.Table, *, queries: int, carried: pa.Table | None = None, closed: int | None = None
) -> Chains:
    """Order `table` and rebuild the chains.

    Args:
        carried: the last state of each entry known before, with the columns that name the entry and `after.*`.
        closed: the end of the windows that earlier runs released; None if there are none.
    """
    known = 0 if carried is None else carried.num_rows
    codes = encode(table, carried)
    owned = unit_column(table) != "entry"
    all_times = np.concatenate([np.full(known, BEFORE_ALL), to_numpy(table["time"])])

    order = _sort(codes.chain, all_times)
    chain, time = codes.chain[order], all_times[order]
    columns = ShardRows(table=table, carried=carried)
    same = (chain[1:] == chain[:-1]) & (time[1:] == time[:-1])
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
    rank = _rank_in_unit(order, codes.unit[order], chain, time, columns, codes.entries) if owned else None
    # In a chain and in a unit, original times are in order already, so late rows come before the others.
    time = time if closed is None else np.where(is_carried, time, np.maximum(time, closed))

    if image is not None and columns.has_before:
        begins = np.flatnonzero(starts(chain) & ~is_carried)
        at = begins[columns.image_before(order[begins]) != NONE]
        if len(at):
            rows = order[at]
            room = _Room.before(at, len(order))
            image = room.filled(image, columns.image_before(rows))
            cells = [room.filled(c, columns.before(f"{i}.cell", rows)) for i, c in enumerate(cells)]
            values = [
                None if v is None else room.filled(v, columns.before(f"{i}.value", rows)) for i, v in enumerate(values)
            ]
            classes = None if classes is None else room.filled(classes, columns.before("class", rows))
            is_carried = room.filled(is_carried, False)
            if rank is not None:
                # Those of a first run come before all mutations of their unit, and by entry among themselves; later
                # ones directly before their entry's first mutation, with which they share its rank.
                first_run = _entry_ranks(codes.entries)[chain[at]] - len(codes.entries) - 1
                rank = room.filled(rank, first_run if closed is None else rank[at])
            time = room.filled(time, BEFORE_ALL if closed is None else time[at])
            chain, order = room.filled(chain, chain[at]), room.filled(order, -1)
    return Chains(
        chain=chain,
        unit=codes.unit_of[chain],
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
        rank=rank,
    )


def _sort(chain: Ints, time: Ints) -> Ints:
    """Rows by (chain, time), carried ones first; by one 64-bit key where both fit."""
    real = time != BEFORE_ALL
    if not real.any():
        return sort(chain.view(np.uint64))
    known = time if real.all() else time[real]
    low, high = int(known.min()), int(known.max())
    since, unit = (time - low).view(np.uint64), 1
    if high - low < 2**63:
        since, unit = _in_common_units(since, real)
    bits = ((high - low) // unit + 1).bit_length()
    if bits + int(chain.max()).bit_length() > 64:
        return np.lexsort([time, chain])
    since += np.uint64(1)
    since *= real
    return sort((chain.view(np.uint64) << np.uint64(bits)) | since)


def _in_common_units(times: Ints, real: Ints) -> tuple[Ints, int]:
    """The times in units of what all real ones are multiples of, and that: microseconds are often whole seconds."""
    unit = np.gcd.reduce(times[np.flatnonzero(real)[:256]]) or np.uint64(1)
    steps = times if unit == 1 else times // unit
    return (steps, int(unit)) if ((steps * unit == times) | ~real).all() else (times, 1)


def _rank_in_unit(order: Ints, unit: Ints, chain: Ints, time: Ints, columns: ShardRows, entries: Keys) -> Ints:
    """Ranks by (unit, time, source order, entry) that keep every chain's own order."""
    known = 0 if columns.carried is None else columns.carried.num_rows
    real = order >= known
    source = []
    for name in [name for name in columns.orders if name != POSITION] or columns.orders:
        ranks = np.full(len(order), -1, dtype=np.int64)
        ranks[real] = columns.order(name, order[real])
        source.append(ranks)
    entry = _entry_ranks(entries)[chain]
    index = np.lexsort([np.arange(len(order)), entry, *source[::-1], time, unit])
    rank = np.empty(len(order), dtype=np.int64)
    rank[index] = np.arange(len(order))
    return rank


def _entry_ranks(entries: Keys) -> Ints:
    """1, 2, ... in the order of the entries' keys."""
    return to_numpy(pc.rank(entries.all(), tiebreaker="dense")).astype(np.int64)
