"""Enforce the constraint: which changes of each unit count, for each query.

    in    Chains, Carry                      one shard's mutations in order; what is known from before
    out   per query a mask over the rows     the projected changes that count
          Carry                              what the next run of the same shard needs

This is what makes the sensitivity a fact. The rules are those of `privacy.constraint`; the kernel takes a carry and
returns a carry, so that batch, increments and streams share it: cutting a changelog at any time and running the parts
one after the other gives the same masks as running it whole.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.constraint import AtMost, ByClass, Constraint
from transforms.chains import BEFORE_ALL, Chains
from transforms.projection import GONE

Ints = np.ndarray
NO_LIMIT = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Carry:
    """Private state of one shard between runs.

    Attributes:
        units: `key`, `first_time` (of its first mutation), `class` (only with classes; GONE: not seen yet)
            and for query i `used.<i>`, its projected changes so far.
        entries: `unit` (owners only), `entry` and the last state, named as in a projected table.
    """

    units: pa.Table
    entries: pa.Table


def changed(chains: Chains, query: int) -> Ints:
    """Which rows are projected changes of a query: those that alter its value in their entry's chain."""
    cell, value = chains.cells[query], chains.values[query]
    first = chains.first
    differs = np.insert(np.diff(cell) != 0, 0, True) if len(cell) else np.zeros(0, dtype=bool)
    if value is not None:
        differs[1:] |= np.diff(value) != 0
    return np.where(first, cell >= 0, differs) & ~chains.carried


def bound(chains: Chains, constraint: Constraint, carry: Carry | None = None) -> tuple[list[Ints], Carry]:
    """The changes that count, query by query, and the carry.

    Returns:
        masks [rows] of bool, one a query, and the carry after all of `chains`.
    """
    units = len(chains.units)
    place = None if carry is None else _places(carry.units["key"], chains.units)
    first_time = np.full(units, NO_LIMIT)
    real = chains.time != BEFORE_ALL
    np.minimum.at(first_time, chains.unit[real], chains.time[real])
    class_of = _first_class(chains)
    if carry is not None and place is not None:
        known = carry.units["first_time"].to_numpy()
        first_time[place] = np.minimum(first_time[place], known)
        if class_of is not None:
            before = carry.units["class"].to_numpy()
            class_of[place] = np.where(before != GONE, before, class_of[place])
    most, span = _limits(constraint, class_of, units)
    # Unsigned, since times may lie more than 2^63 apart: a difference that wrapped would be in time for ever.
    elapsed = (chains.time - first_time[chains.unit]).astype(np.uint64)
    in_time = (chains.time == BEFORE_ALL) | (elapsed <= span[chains.unit].astype(np.uint64))

    masks, used_after = [], []
    for query in range(len(chains.cells)):
        change = changed(chains, query)
        used = np.zeros(units, dtype=np.int64)
        if carry is not None and place is not None:
            used[place] = carry.units[f"used.{query}"].to_numpy()
        rows = np.flatnonzero(change)
        nth = _nth_of_unit(chains, rows) + used[chains.unit[rows]]
        mask = np.zeros(len(change), dtype=bool)
        mask[rows] = nth < most[chains.unit[rows]]
        masks.append(mask & in_time)
        used_after.append(used + np.bincount(chains.unit[rows], minlength=units))
    return masks, _carry(chains, first_time, class_of, used_after)


def _nth_of_unit(chains: Chains, rows: Ints) -> Ints:
    """For each of some rows, how many of them come before it in its unit."""
    if len(rows) == 0:
        return rows
    unit = chains.unit[rows]
    if chains.rank is None:
        return _count_up(unit)
    order = np.lexsort([rows, chains.rank[rows], unit])
    nth = np.empty(len(rows), dtype=np.int64)
    nth[order] = _count_up(unit[order])
    return nth


def _count_up(groups: Ints) -> Ints:
    """0, 1, 2, ... within each run of equal values."""
    starts = np.flatnonzero(np.insert(np.diff(groups) != 0, 0, True))
    return np.arange(len(groups)) - np.repeat(starts, np.diff(np.append(starts, len(groups))))


def _first_class(chains: Chains) -> Ints | None:
    """The class of each unit's first state that exists; GONE where there is none."""
    if chains.classes is None:
        return None
    rows = np.flatnonzero((chains.classes != GONE) & ~chains.carried)
    unit = chains.unit[rows]
    order = np.arange(len(rows)) if chains.rank is None else np.lexsort([rows, chains.rank[rows], unit])
    first = np.full(len(chains.units), GONE, dtype=np.int64)
    starts = np.insert(np.diff(unit[order]) != 0, 0, True) if len(rows) else np.zeros(0, dtype=bool)
    first[unit[order][starts]] = chains.classes[rows][order][starts]
    return first


def _limits(constraint: Constraint, class_of: Ints | None, units: int) -> tuple[Ints, Ints]:
    """For each unit, the number of changes and the span of time that its constraint allows."""
    if isinstance(constraint, ByClass):
        assert class_of is not None
        most, span = np.zeros(units, dtype=np.int64), np.full(units, NO_LIMIT)
        for number, (_, part) in enumerate(constraint.classes):
            here = class_of == number
            if isinstance(part, AtMost):
                most[here] = part.changes
            else:
                most[here], span[here] = NO_LIMIT, part.span
        return most, span
    if isinstance(constraint, AtMost):
        return np.full(units, constraint.changes), np.full(units, NO_LIMIT)
    return np.full(units, NO_LIMIT), np.full(units, constraint.span)


def _places(keys: pa.ChunkedArray, units: pa.Array) -> Ints:
    """The code of each carried unit: all of them are among the shard's units, by their carried entries."""
    return pc.index_in(keys, value_set=units).to_numpy()


def _carry(chains: Chains, first_time: Ints, class_of: Ints | None, used: list[Ints]) -> Carry:
    last = np.flatnonzero(np.append(np.diff(chains.chain) != 0, True)) if len(chains.chain) else np.zeros(0, np.int64)
    units: dict[str, pa.Array | Ints] = {"key": chains.units, "first_time": first_time}
    if class_of is not None:
        units["class"] = class_of
    units |= {f"used.{query}": count for query, count in enumerate(used)}
    entries: dict[str, pa.Array | Ints] = {"entry": chains.entries}
    if chains.rank is not None:
        entries = {"unit": chains.units.take(pa.array(chains.unit_of)), **entries}
    for query, (cell, value) in enumerate(zip(chains.cells, chains.values, strict=True)):
        entries[f"after.{query}.cell"] = cell[last]
        if value is not None:
            entries[f"after.{query}.value"] = value[last]
    if chains.classes is not None:
        entries["after.class"] = chains.classes[last]
    return Carry(units=pa.table(units), entries=pa.table(entries))
