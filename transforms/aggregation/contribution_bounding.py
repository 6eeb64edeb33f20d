"""Contribution bounding: which changes of each unit count, for each query.

    in    Chains, Usage                      one shard's mutations in order; used part of each unit's bound
    out   per query a mask over the rows     the projected changes that count
          Usage                              used part of each unit's bound afterwards

The sensitivity rests on this step. The rules are those of `privacy.constraint`, except `AtOnce`, which cuts no changes
off (transforms.aggregation.window_ends). The kernel takes the usage and returns it, so batch runs, increments and
streams share it: if a changelog is cut at any time and the parts are processed one after the other, the masks are
those of the whole changelog. Times are effective ones (transforms.aggregation.chains): a late mutation counts when it
arrives, so the windows that a unit affects stay within the span that is priced.
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
"""Constraints that cut changes off."""
NO_LIMIT = np.iinfo(np.int64).max
NO_SPAN = -1
"""Span of units that may contribute at any time."""
NOT_YET = np.iinfo(np.int64).max
"""First time of a unit without a mutation so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Used part of each unit's contribution bound; arrays [units].

    Attributes:
        first_time: Effective time of the unit's first mutation, in microseconds since the epoch; it never changes once
            it is set.
        class_of: Class of the unit's first existing state (GONE: not seen yet); None without classes.
        used: For each query the number of the unit's projected changes so far.
    """

    first_time: Ints
    class_of: Ints | None
    used: tuple[Ints, ...]


def changed(chains: Chains, query: int) -> Ints:
    """Return which rows are projected changes of a query: those that alter the query's value in their entry's chain.

    Returns:
        bool [rows].
    """
    cell, value = chains.cells[query], chains.values[query]
    first = chains.first
    differs = starts(cell)
    if value is not None:
        differs |= starts(value)
    return (first & (cell >= 0) | ~first & differs) & ~chains.carried


def bound(chains: Chains, constraint: CutOff, known: Usage | None = None) -> tuple[list[Ints], Usage]:
    """Return which changes count for each query, and the usage after all of `chains`.

    Neighbours: changelogs that differ in the rows of one unit. The masks of other units' rows do not depend on these.
    Guarantee: the changes of a unit that count, over all runs, satisfy `constraint` for all possible rows. The
    sensitivity of the sums for such changes is in privacy.planning.sensitivity. Source: docs/design.md, "Rules of
    contribution bounding".

    Args:
        chains: One shard's mutations in order.
        constraint: Contribution bound of each unit.
        known: Usage of earlier runs for `chains.units`; None in the first run.

    Returns:
        For each query a mask, bool [rows], and the usage.
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
            full = chains.unit[rows[crowded]]  # no later change counts
            after[full] = np.maximum(after[full], most[full])
            rows = rows[~crowded]
        mask = np.zeros(len(change), dtype=bool)
        mask[rows] = True
        masks.append(mask if in_time is None else mask & in_time)
        used.append(after)
    return masks, Usage(first_time=first_time, class_of=class_of, used=tuple(used))


def finished(usage: Usage, constraint: CutOff, until: int) -> Ints:
    """Return which units can never contribute again, bool [units].

    Args:
        usage: Used part of their contribution bounds.
        constraint: Contribution bound of each unit.
        until: Start of the open windows, in microseconds since the epoch: no later mutation takes effect before it.
    """
    units = len(usage.first_time)
    most, span, _ = _limits(constraint, usage.class_of, units)
    spent = np.ones(units, dtype=bool)
    for used in usage.used:
        spent &= used >= most
    begun = usage.first_time <= until
    spent |= begun & (_elapsed(np.full(units, until), usage.first_time) > _unsigned(span))
    # A unit without a class so far can still get a listed one.
    return spent if usage.class_of is None else spent & (usage.class_of != GONE)


def _crowded(chains: Chains, query: int, rows: Ints, together: Ints) -> Ints:
    """Return which of some projected changes come too late in their unit, because of its entries in the query.

    Too late is a change at or after the first instant at whose end these changes have put more of the unit's entries
    into the query than `together` [units] allows. Entries are counted at the end of an instant only, so that one entry
    can take another's place within it.
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
    """Return the time of each unit's first mutation: that of a first row of an entry, since times rise along chains."""
    real = chains.time != BEFORE_ALL
    rows = np.flatnonzero(real & (chains.first | ~np.insert(real[:-1], 0, False)))
    first = np.full(len(chains.units), NOT_YET)
    np.minimum.at(first, chains.unit[rows], chains.time[rows])
    return first


def _elapsed(time: Ints, since: Ints) -> Ints:
    """Return elapsed times as unsigned integers: they can exceed 2^63, and signed differences would wrap."""
    return (time - since).astype(np.uint64)


def _unsigned(span: Ints) -> Ints:
    """Return spans as unsigned integers; no elapsed time exceeds the unlimited span."""
    return np.where(span == NO_SPAN, np.uint64(2**64 - 1), span.astype(np.uint64))


def _nth_of_unit(chains: Chains, rows: Ints, unit: Ints) -> Ints:
    """Return for each of some rows the number of them that precede it in its unit."""
    if len(rows) == 0:
        return rows
    if chains.rank is None:
        return count_up(unit)
    order = np.lexsort([rows, chains.rank[rows], unit])
    nth = np.empty(len(rows), dtype=np.int64)
    nth[order] = count_up(unit[order])
    return nth


def _first_class(chains: Chains) -> Ints | None:
    """Return the class of each unit's first existing state; GONE if it has none."""
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
    """Return for each unit the most changes, the span of time, and the most entries at once (or None) that count."""
    if constraint.column is not None:
        assert class_of is not None
        most, span = np.zeros(units, dtype=np.int64), np.full(units, NO_SPAN)
        together = np.full(units, NO_LIMIT)
        for number, (_, part) in enumerate(constraint.classes):
            here = class_of == number
            if part.changes is not None:
                most[here], together[here] = part.changes, part.entries or NO_LIMIT
            else:
                most[here], span[here] = NO_LIMIT, part.span
        return most, span, together if (together < NO_LIMIT).any() else None
    if constraint.changes is not None:
        at_once = None if constraint.entries is None else np.full(units, constraint.entries)
        return np.full(units, constraint.changes), np.full(units, NO_SPAN), at_once
    return np.full(units, NO_LIMIT), np.full(units, constraint.span), None
