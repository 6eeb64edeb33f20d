"""What counts under `AtOnce`: what a unit is at the ends of windows, and nothing else of its past.

    in    Chains      one shard's mutations in order
    out   Chains      of each chain the last row of each window; of owners with more entries in a query at the end of a
                      window than may count, the rows as if the first of these by key alone were there

A row's change is then one between ends of windows, and `changed` and `sum_leaves` make leaves of it as of any other.
What was before the start ends there (the initial level), and what earlier runs released where this one begins.

Which of an owner's entries count at the end of a window is a function of what they are then: of those in the query the
first by key, as a string, whoever was there before. A rule that remembers, as 'the first to come', would let what a
unit does in one span of time decide what counts of it ever after; noise is scaled to one span (privacy.protection).
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
    """The last row of each chain in each window, carried states among them: these are of a window that is released."""
    ends = np.append(starts(chains.chain)[1:] | starts(window_of(chains.time, timeline))[1:], True)
    return chains.take(ends[: len(chains.chain)])


def first_entries(ends: Chains, query: int, entries: int, timeline: Timeline) -> Chains:
    """Of each owner's entries that are in the query at the end of a window, the first `entries` by key alone.

    An entry comes to count, or ceases to, also where it has no row of its own, as another one comes or leaves; so rows
    are added. What the result says of other queries means nothing.
    """
    crowded = np.zeros(len(ends.units), dtype=bool)
    if ends.rank is not None:  # else each unit is one entry
        crowded = _crowded(ends, query, entries, timeline)
    if not crowded.any():
        return ends
    mine = np.flatnonzero(crowded[ends.unit])
    boundary, at = _boundaries(ends, mine, timeline)
    chain, unit = ends.chain[mine], ends.unit[at]
    stop = np.searchsorted(unit, unit, side="right")  # where the boundaries of each one's unit end

    goes_on = np.append(chain[1:] == chain[:-1], False)
    until = np.where(goes_on, np.append(boundary[1:], 0), stop[boundary])
    there = ends.cells[query][mine] >= 0
    by_key = np.lexsort([boundary, _key_ranks(ends, chain)])
    by_key = by_key[there[by_key]]
    counted_at, nth = _first_at(boundary[by_key], until[by_key], entries)
    row = by_key[nth]

    # A row where an entry counts, one at the next boundary, in case it does not count there, and those of known states.
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
    """Which units have more than so many entries in a query at the end of some window."""
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
    """Ends of windows at which units changed, numbered in order unit by unit: that of each row, and a row of each."""
    key = ends.unit[rows] * (timeline.windows + 1) + window_of(ends.time[rows], timeline)
    _, first, boundary = np.unique(key, return_index=True, return_inverse=True)
    return boundary, rows[first]


def _key_ranks(ends: Chains, chain: Ints) -> Ints:
    """Ranks of the entries of some chains by their keys as strings, whatever these are: the same in every run."""
    codes, place = np.unique(chain, return_inverse=True)
    keys = ends.entries.take(codes).cast(pa.string())
    return pc.rank(keys, tiebreaker="dense").to_numpy().astype(np.int64)[place]


def _first_at(begin: Ints, end: Ints, most: int) -> tuple[Ints, Ints]:
    """At each place the first of the spans [begin, end) that hold it, at most so many, as (place, number of the span).

    Each span is two overlapping blocks of 2^k places. From long blocks to short ones, each hands its first spans on to
    its halves.

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
