"""Rows that count under `AtOnce`: the state of a unit at the ends of windows, and nothing of its earlier history.

    in    Chains      one shard's mutations in order
    out   Chains      the last row of each chain in each window; if an owner has more entries in a query at the end of a
                      window than may count, the rows as if only the first of them by key existed

The change of a row is then one between ends of windows; `changed` and `sum_leaves` treat it as any other change.
Mutations before the start end there (the initial level), and released windows end where this run begins.

Which entries of an owner count at the end of a window is a function of their states then: of those in the query, the
first by key, as a string, even if other entries were there before. A rule with memory, such as "the first to arrive",
would let a unit's activity in one span of time decide which entries count permanently, but noise is scaled to one span
(privacy.protection).
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.aggregation.chains import Chains
from transforms.aggregation.groups import count_up, starts, sums_within
from transforms.aggregation.leaf_sums import window_of
from transforms.aggregation.queries import Timeline

Ints = np.ndarray


def window_ends(chains: Chains, timeline: Timeline) -> Chains:
    """Return the last row of each chain in each window. Carried states are in the last released window."""
    ends = np.append(starts(chains.chain)[1:] | starts(window_of(chains.time, timeline))[1:], True)
    return chains.take(ends[: len(chains.chain)])


def first_entries(ends: Chains, query: int, entries: int, timeline: Timeline) -> Chains:
    """Return rows in which only the first `entries` of an owner's entries in the query count, by key alone.

    An entry can start or cease to count without a row in that window, when another entry arrives or leaves, so rows are
    added. Cells and values of other queries in the result are undefined.

    Neighbours differ in the rows of one unit, and rows of other units do not depend on them. Guarantee: at the end of
    each window at most `entries` entries of an owner count. Source: docs/design.md, "Rules of contribution bounding".

    Args:
        ends: Last row of each chain in each window (`window_ends`).
        query: Number of the query.
        entries: Most entries of an owner that count at the end of a window.
        timeline: Windows of the run.
    """
    crowded = np.zeros(len(ends.units), dtype=bool)
    if ends.rank is not None:  # None if each unit is one entry
        crowded = _crowded(ends, query, entries, timeline)
    if not crowded.any():
        return ends
    mine = np.flatnonzero(crowded[ends.unit])
    boundary, at = _boundaries(ends, mine, timeline)
    chain, unit = ends.chain[mine], ends.unit[at]
    stop = np.searchsorted(unit, unit, side="right")  # end of the boundaries of each boundary's unit

    goes_on = np.append(chain[1:] == chain[:-1], False)
    until = np.where(goes_on, np.append(boundary[1:], 0), stop[boundary])
    there = ends.cells[query][mine] >= 0
    by_key = np.lexsort([boundary, _key_ranks(ends, chain)])
    by_key = by_key[there[by_key]]
    counted_at, nth = _first_at(boundary[by_key], until[by_key], entries)
    row = by_key[nth]

    # A row where an entry counts, a row at the next boundary (it may not count there), and rows of known states.
    again, known = counted_at + 1 < stop[counted_at], np.flatnonzero(ends.carried[mine])
    counts = np.arange(len(row) + int(again.sum()) + len(known)) < len(row)
    row = np.concatenate([row, row[again], known])
    counted_at = np.concatenate([counted_at, counted_at[again] + 1, boundary[known]])
    order = np.lexsort([~counts, counted_at, chain[row]])
    order = order[starts(chain[row[order]]) | starts(counted_at[order])]
    row, counted_at, counts = row[order], counted_at[order], counts[order]

    others = np.flatnonzero(~crowded[ends.unit])
    rows = np.append(others, mine[row])
    by_chain = np.argsort(ends.chain[rows], kind="stable")
    rows, shown = rows[by_chain], np.append(np.ones(len(others), dtype=bool), counts)[by_chain]
    dated = np.append(others, at[counted_at])[by_chain]
    found = ends.take(rows)
    cells, values = list(found.cells), list(found.values)
    cells[query] = np.where(shown, cells[query], -1)
    if (value := values[query]) is not None:
        values[query] = np.where(shown, value, 0)
    return replace(found, time=ends.time[dated], carried=ends.carried[dated], cells=tuple(cells), values=tuple(values))


def _crowded(ends: Chains, query: int, entries: int, timeline: Timeline) -> Ints:
    """Return which units have more than `entries` entries in a query at the end of a window, bool [units]."""
    crowded = np.bincount(ends.unit_of, minlength=len(ends.units)) > entries
    rows = np.flatnonzero(crowded[ends.unit])
    boundary, at = _boundaries(ends, rows, timeline)
    there = ends.cells[query][rows] >= 0
    before = np.insert(there[:-1], 0, False) & ~ends.first[rows] if len(rows) else there
    change = np.zeros(len(at), dtype=np.int64)
    np.add.at(change, boundary, there.astype(np.int64) - before)
    crowded[:] = False
    crowded[ends.unit[at[sums_within(ends.unit[at], change) > entries]]] = True
    return crowded


def _boundaries(ends: Chains, rows: Ints, timeline: Timeline) -> tuple[Ints, Ints]:
    """Number the ends of windows at which units changed, unit by unit; return each row's number, and a row of each."""
    key = ends.unit[rows] * (timeline.windows + 1) + window_of(ends.time[rows], timeline)
    _, first, boundary = np.unique(key, return_index=True, return_inverse=True)
    return boundary, rows[first]


def _key_ranks(ends: Chains, chain: Ints) -> Ints:
    """Return ranks of the entries of some chains by their keys as strings, so that they are the same in every run."""
    codes, place = np.unique(chain, return_inverse=True)
    keys = ends.entries.take(codes).cast(pa.string())
    return pc.rank(keys, tiebreaker="dense").to_numpy().astype(np.int64)[place]


def _first_at(begin: Ints, end: Ints, most: int) -> tuple[Ints, Ints]:
    """Return the first `most` spans [begin, end) that contain each place, as (places, numbers of spans).

    Each span is two overlapping blocks of 2^k places. From long blocks to short ones, each block passes its first spans
    to its halves.

    >>> [part.tolist() for part in _first_at(np.array([1, 0, 0]), np.array([2, 3, 2]), 2)]
    [[0, 0, 1, 1, 2], [1, 2, 0, 1, 1]]
    """
    size = np.frexp(end - begin)[1] - 1
    place, number = begin[:0], begin[:0]
    for k in range(int(size.max(initial=0)), -1, -1):
        spans = np.flatnonzero(size == k)
        place = np.concatenate([place, place + (1 << k), begin[spans], end[spans] - (1 << k)])
        number = np.concatenate([number, number, spans, spans])
        order = np.lexsort([number, place])
        place, number = place[order], number[order]
        once = starts(place) | starts(number)
        place, number = place[once], number[once]
        first = count_up(place) < most
        place, number = place[first], number[first]
    return place, number
