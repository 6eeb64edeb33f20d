"""Contribution bounding: which changes of each unit count, for each query.

    in    Chains, Usage                      one shard's mutations in order; what its units used up before
    out   per query a mask over the rows     the projected changes that count
          Usage                              what they have used up now

This is what makes the sensitivity a fact. The rules are those of `privacy.constraint`, but for `AtOnce`, which cuts no
changes off (transforms.aggregation.window_ends). The kernel takes what was used and returns it, so that batch,
increments and streams share it: cutting a changelog at any time and running the parts one after the other gives the
same masks as running it whole. Times are effective ones (transforms.aggregation.chains): a late mutation counts when it
comes, so that what a unit touches stays within the span that is priced.
"""

from dataclasses import dataclass

import numpy as np

from privacy.constraint import AtMost, ByClass, Within
from transforms.aggregation.chains import Chains
from transforms.aggregation.groups import count_up, starts, sums_within
from transforms.aggregation.projection import GONE
from transforms.aggregation.shard_rows import BEFORE_ALL

Ints = np.ndarray
CutOff = AtMost | Within | ByClass
"""The constraints that cut changes off."""
NO_LIMIT = np.iinfo(np.int64).max
NO_SPAN = -1
"""The span of units that may contribute at any time."""
NOT_YET = np.iinfo(np.int64).max
"""The first time of a unit without a mutation so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What units have used of their contribution bound; arrays [units].

    Attributes:
        first_time: effective time of the unit's first mutation; never moves once it is set.
        class_of: class of its first state that exists (GONE: not seen yet); None without classes.
        used: for each query its projected changes so far.
    """

    first_time: Ints
    class_of: Ints | None
    used: tuple[Ints, ...]


def changed(chains: Chains, query: int) -> Ints:
    """Which rows are projected changes of a query: those that alter its value in their entry's chain."""
    cell, value = chains.cells[query], chains.values[query]
    first = chains.first
    differs = starts(cell)
    if value is not None:
        differs |= starts(value)
    return (first & (cell >= 0) | ~first & differs) & ~chains.carried


def bound(chains: Chains, constraint: CutOff, known: Usage | None = None) -> tuple[list[Ints], Usage]:
    """The changes that count, query by query, and what is used after all of `chains`.

    Args:
        known: from earlier runs, over `chains.units`.

    Returns:
        masks [rows] of bool, one a query, and the usage.
    """
    units = len(chains.units)
    first_time = _first_time(chains)
    class_of = _first_class(chains)
    before = tuple(np.zeros(units, dtype=np.int64) for _ in chains.cells)
    if known is not None:
        first_time = np.where(known.first_time == NOT_YET, first_time, known.first_time)
        if class_of is not None and known.class_of is not None:
            class_of = np.where(known.class_of == GONE, class_of, known.class_of)
        before = known.used
    most, span, together = _limits(constraint, class_of, units)
    in_time = None
    if (span != NO_SPAN).any():
        since = _elapsed(chains.time, first_time[chains.unit])
        in_time = (chains.time == BEFORE_ALL) | (since <= _unsigned(span)[chains.unit])

    masks, used = [], []
    for query, used_before in enumerate(before):
        change = changed(chains, query)
        rows = np.flatnonzero(change)
        unit = chains.unit[rows]
        after = used_before + np.bincount(unit, minlength=units)
        rows = rows[_nth_of_unit(chains, rows, unit) < (most - used_before)[unit]]
        if together is not None:
            crowded = _crowded(chains, query, rows, together)
            full = chains.unit[rows[crowded]]  # nothing counts any more
            after[full] = np.maximum(after[full], most[full])
            rows = rows[~crowded]
        mask = np.zeros(len(change), dtype=bool)
        mask[rows] = True
        masks.append(mask if in_time is None else mask & in_time)
        used.append(after)
    return masks, Usage(first_time=first_time, class_of=class_of, used=tuple(used))


def finished(usage: Usage, constraint: CutOff, until: int) -> Ints:
    """Which units can never contribute again, whatever comes: no later mutation takes effect before `until`."""
    units = len(usage.first_time)
    most, span, _ = _limits(constraint, usage.class_of, units)
    spent = np.ones(units, dtype=bool)
    for used in usage.used:
        spent &= used >= most
    begun = usage.first_time <= until
    spent |= begun & (_elapsed(np.full(units, until), usage.first_time) > _unsigned(span))
    # A class that is not seen yet may still be a listed one.
    return spent if usage.class_of is None else spent & (usage.class_of != GONE)


def _crowded(chains: Chains, query: int, rows: Ints, together: Ints) -> Ints:
    """Which of some projected changes come too late in their unit: at the first instant at whose end these changes
    have put more of its entries into the query than `together` [units] allows, or after it.

    What is there at once is counted at the end of an instant only, so that one entry may take another's place in it.
    """
    there = chains.cells[query] >= 0
    before = np.insert(there[:-1], 0, False) & ~chains.first
    order = rows if chains.rank is None else rows[np.lexsort([rows, chains.rank[rows], chains.unit[rows]])]
    unit, time = chains.unit[order], chains.time[order]
    known = np.bincount(chains.unit[chains.carried & there], minlength=len(chains.units))
    at_once = sums_within(unit, there[order].astype(np.int64) - before[order]) + known[unit]
    instant = np.cumsum(starts(unit) | starts(time)) - 1
    ends = np.append(np.diff(instant) != 0, True)[: len(order)]
    first_over = np.full(len(chains.units), len(order))
    over = np.flatnonzero(ends & (at_once > together[unit]))
    np.minimum.at(first_over, unit[over], instant[over])
    crowded = np.zeros(len(chains.time), dtype=bool)
    crowded[order] = instant >= first_over[unit]
    return crowded[rows]


def _first_time(chains: Chains) -> Ints:
    """The time of each unit's first mutation: that of the first of one of its entries, as times rise along a chain."""
    real = chains.time != BEFORE_ALL
    rows = np.flatnonzero(real & (chains.first | ~np.insert(real[:-1], 0, False)))
    first = np.full(len(chains.units), NOT_YET)
    np.minimum.at(first, chains.unit[rows], chains.time[rows])
    return first


def _elapsed(time: Ints, since: Ints) -> Ints:
    """Unsigned, since times may lie more than 2^63 apart: a difference that wrapped would be in time for ever."""
    return (time - since).astype(np.uint64)


def _unsigned(span: Ints) -> Ints:
    """No time is longer than the span without an end."""
    return np.where(span == NO_SPAN, np.uint64(2**64 - 1), span.astype(np.uint64))


def _nth_of_unit(chains: Chains, rows: Ints, unit: Ints) -> Ints:
    """For each of some rows, how many of them come before it in its unit."""
    if len(rows) == 0:
        return rows
    if chains.rank is None:
        return count_up(unit)
    order = np.lexsort([rows, chains.rank[rows], unit])
    nth = np.empty(len(rows), dtype=np.int64)
    nth[order] = count_up(unit[order])
    return nth


def _first_class(chains: Chains) -> Ints | None:
    """The class of each unit's first state that exists; GONE where there is none."""
    if chains.classes is None:
        return None
    rows = np.flatnonzero((chains.classes != GONE) & ~chains.carried)
    unit = chains.unit[rows]
    order = np.arange(len(rows)) if chains.rank is None else np.lexsort([rows, chains.rank[rows], unit])
    first = np.full(len(chains.units), GONE, dtype=np.int64)
    begins = starts(unit[order])
    first[unit[order][begins]] = chains.classes[rows][order][begins]
    return first


def _limits(constraint: CutOff, class_of: Ints | None, units: int) -> tuple[Ints, Ints, Ints | None]:
    """For each unit, the number of changes and the span of time that its contribution bound allows, and how many of its
    entries at once; None if none says."""
    if isinstance(constraint, ByClass):
        assert class_of is not None
        most, span = np.zeros(units, dtype=np.int64), np.full(units, NO_SPAN)
        together = np.full(units, NO_LIMIT)
        for number, (_, part) in enumerate(constraint.classes):
            here = class_of == number
            if isinstance(part, AtMost):
                most[here], together[here] = part.changes, part.entries or NO_LIMIT
            else:
                most[here], span[here] = NO_LIMIT, part.span
        return most, span, together if (together < NO_LIMIT).any() else None
    if isinstance(constraint, AtMost):
        at_once = None if constraint.entries is None else np.full(units, constraint.entries)
        return np.full(units, constraint.changes), np.full(units, NO_SPAN), at_once
    return np.full(units, NO_LIMIT), np.full(units, constraint.span), None
