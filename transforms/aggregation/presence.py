"""Units in cells: for each cell and unit the times at which the first entry comes and the last entry leaves.

    in    Counting      changes of entries that count
    out   Counting      changes of units: a chain for each unit and cell, with a row where the unit comes or leaves

A unit is in a cell if at least one of its entries is. Contribution bounding has already cut off changes of entries, so
the number of a unit's entries in a cell is known from the states carried from earlier runs and from the changes that
count: no further state is needed. At one effective time arrivals precede departures, so a unit that leaves a cell with
one entry and comes with another at that time stays, and one that comes and leaves at that time, with late rows, has
done both.
"""

from dataclasses import replace

import numpy as np

from transforms.aggregation.chains import Chains, sort_rows
from transforms.aggregation.groups import starts, sums_within
from transforms.aggregation.leaf_sums import Counting, window_of
from transforms.aggregation.queries import Query, Timeline
from transforms.common.keys import sort

Ints = np.ndarray


def of_units(counting: Counting, query: Query, number: int, timeline: Timeline | None = None) -> Counting:
    """Return the changes of units, if the query counts units that may have several entries; otherwise `counting`.

    Cells of other queries in the result are undefined.

    Neighbours differ in the rows of one unit, and rows of other units do not depend on them. Guarantee: the changes of
    a unit are those of the indicators that privacy.planning.sensitivity charges.

    Args:
        counting: Changes of entries that count.
        query: The query.
        number: Place of the query in the chains.
        timeline: If states are those at ends of windows: changes in one window are at one time.
    """
    chains = counting.chains
    if not query.measure.distinct or chains.rank is None:
        return counting
    key, row, comes = _steps(chains, counting.kept, query.cells, chains.cells[number])
    time = (
        chains.time[row]
        if timeline is None
        else np.where(chains.carried[row], -1, window_of(chains.time[row], timeline))
    )
    rank = chains.rank[row]
    order = sort((rank - rank.min(initial=0)).view(np.uint64))
    order = order[sort_rows(key[order], time[order], (comes[order] < 0).astype(np.uint8))]
    key, row, comes = key[order], row[order], comes[order]
    there = sums_within(key, comes) > 0
    was = np.insert(there[:-1], 0, False) & ~starts(key) if len(key) else there
    known = chains.carried[row]
    last_known = known & ~np.append(known[1:] & ~starts(key)[1:], False)
    rows = np.flatnonzero((there != was) & ~known | last_known)
    key, row, there, known = key[rows], row[rows], there[rows], known[rows]
    first = starts(key)
    found = replace(
        chains.take(row),
        chain=np.cumsum(first) - 1,
        unit_of=(key // query.cells)[first],
        carried=known,
        cells=tuple(np.where(there, key % query.cells, -1) for _ in chains.cells),
    )
    return Counting(found, ~known, counting.events)


def _steps(chains: Chains, kept: Ints, cells: int, cell: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the changes of the number of a unit's entries in a cell: (unit and cell, row, 1 or -1)."""
    rows = np.flatnonzero(kept)
    before = np.where(chains.first[rows], -1, cell[rows - 1])
    came = np.append(np.flatnonzero(chains.carried), rows)
    came, gone = came[cell[came] >= 0], rows[before >= 0]
    key = np.concatenate(
        [
            chains.unit[came] * cells + cell[came],
            chains.unit[gone] * cells + before[before >= 0],
        ]
    )
    return key, np.append(came, gone), np.append(np.ones(len(came), np.int64), np.full(len(gone), -1))
