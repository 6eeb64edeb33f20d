"""Exact sums per window and cell of the changes that count.

    in    Chains, a mask of the changes that count, the query
    out   LeafSums     sparse: node numbers and, for each component, an integer sum

Node number = window * cells + cell, with window 0 for everything before the start (the initial level). Which nodes
appear here depends on the data and is private: the release adds the empty ones.

    net       minus the state before, plus the state after, of each change that counts
    entered   plus the state after, where the cell is new to the entry; once per entry, window and cell
    left      plus the state before, where the cell is given up; once per entry, window and cell

Under `AtOnce` with n entries, at most n events of a unit count in each window: the first n that enter, and the last n
that leave (privacy.planning.sensitivity_in_span).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privacy.series import Family
from transforms.aggregation.chains import Chains
from transforms.aggregation.groups import count_up, starts
from transforms.aggregation.queries import Query, Timeline

Ints = np.ndarray
DENSE = 2**22
"""Largest number of nodes for which a shard's sums are added up in a dense vector; larger sums use sorting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafSums:
    """Exact private sums.

    Attributes:
        node: Node numbers, int64 [m], increasing.
        sums: Sums in grid steps, int64 [components, m].
    """

    node: Ints
    sums: Ints


@dataclass(frozen=True, slots=True)
class Counting:
    """Changes of one query that count.

    Attributes:
        chains: Rows in chain order.
        kept: Mask of the changes that count, bool [rows].
        events: Most events of a unit in one window that count; None: all.
    """

    chains: Chains
    kept: Ints
    events: int | None = None


def sum_leaves(counting: Counting, query: Query, number: int, timeline: Timeline, family: Family) -> LeafSums:
    """Return the exact sums of one family of nodes.

    Args:
        counting: Changes that count.
        query: The query.
        number: Place of the query in the chains.
        timeline: Windows of the run.
        family: Family of nodes: net, entered or left.

    Raises:
        OverflowError: A sum could exceed 64 bits.
    """
    chains = counting.chains
    rows = np.flatnonzero(counting.kept & (chains.time < timeline.until))
    window = window_of(chains.time[rows], timeline)
    cell, value = chains.cells[number], chains.values[number]
    follows = ~chains.first[rows]
    # A product takes a tenth of the time of np.where; the type of `cell` can hold the number of cells.
    after, before = cell[rows], (cell[rows - 1] + 1) * follows - 1
    after_value = None if value is None else value[rows].astype(np.int64)
    before_value = None if value is None else value[rows - 1].astype(np.int64)  # unused if there is no cell
    if family == "net":
        parts = [(1, window, after, after_value), (-1, window, before, before_value)]
    else:
        state, steps = (after, after_value) if family == "entered" else (before, before_value)
        events = np.flatnonzero((state >= 0) & (after != before) & (window > 0))
        last = family == "left" and counting.events is not None
        events = events[_once(chains.chain[rows[events]], window[events], state[events], last=last)]
        if counting.events is not None:
            events = events[_of_unit(chains, rows[events], window[events], counting.events, last=last)]
        parts = [(1, window[events], state[events], None if steps is None else steps[events])]
    return _gather(parts, query, timeline)


def cut(leaves: LeafSums, cells: int, chunk_cells: int) -> Iterator[tuple[int, LeafSums]]:
    """Yield the sums of each chunk of cells that has sums.

    Args:
        leaves: Sums of one family of nodes.
        cells: Number of cells of the query.
        chunk_cells: Cells in one chunk.

    Returns:
        Number of the chunk, and its sums.
    """
    chunk = leaves.node % cells // chunk_cells
    for number in np.unique(chunk).tolist():
        yield number, LeafSums(node=leaves.node[chunk == number], sums=leaves.sums[:, chunk == number])


def window_of(time: Ints, timeline: Timeline) -> Ints:
    """Return the window of each time, int64 [n]; 0 before the start."""
    return timeline.bounds.of(time)


def _once(chain: Ints, window: Ints, cell: Ints, *, last: bool) -> Ints:
    """Return the places of the first (or last) event of each (entry, window, cell); rows are in chain order."""
    place = np.arange(len(chain))
    order = np.lexsort([-place if last else place, cell, window, chain])
    return np.sort(order[starts(chain[order]) | starts(window[order]) | starts(cell[order])])


def _of_unit(chains: Chains, rows: Ints, window: Ints, most: int, *, last: bool) -> Ints:
    """Return the places of the first (or last) `most` events of each (unit, window), by time and key.

    Args:
        chains: Rows in chain order.
        rows: Row of each event, increasing.
        window: Window of each event.
        most: Most events of a unit in a window.
        last: Whether the last events count.
    """
    unit, rank = chains.unit[rows], rows if chains.rank is None else chains.rank[rows]
    order = np.lexsort([rows, rank, window, unit])
    if last:
        order = order[::-1]
    group = np.cumsum(starts(unit[order]) | starts(window[order]))
    return np.sort(order[count_up(group) < most])


def _gather(parts: list[tuple[int, Ints, Ints, Ints | None]], query: Query, timeline: Timeline) -> LeafSums:
    components = query.measure.components
    total = (timeline.windows + 1) * query.cells
    rows = sum(len(cell) for _, _, cell, _ in parts)
    if rows * max(c.largest for c in components) >= 2**62:
        raise OverflowError("a shard's sum could exceed 64 bits; use more shards or narrower bounds")
    nodes, addends = [], []
    for sign, window, cell, value in parts:
        there = np.flatnonzero(cell >= 0)
        nodes.append(window[there] * query.cells + cell[there])
        steps = query.measure.contributions(None if value is None else value[there], len(there))
        addends.append([sign * component for component in steps])
    node = np.concatenate(nodes)
    sums = np.empty((len(components), len(node)), dtype=np.int64)
    for into, columns in zip(sums, zip(*addends, strict=True), strict=True):
        np.concatenate(columns, out=into)
    return _densely(node, sums, total) if total <= min(DENSE, 4 * len(node)) else _by_sorting(node, sums)


def _densely(node: Ints, sums: Ints, total: int) -> LeafSums:
    dense = np.zeros((len(sums), total), dtype=np.int64)
    for into, addend in zip(dense, sums, strict=True):
        np.add.at(into, node, addend)
    seen = np.flatnonzero(np.any(dense != 0, axis=0))
    return LeafSums(node=seen, sums=dense[:, seen])


def _by_sorting(node: Ints, sums: Ints) -> LeafSums:
    order = np.argsort(node, kind="stable")
    ordered = node[order]
    if len(order) == 0:
        return LeafSums(node=node, sums=sums)
    begins = np.flatnonzero(starts(ordered))
    return LeafSums(node=ordered[begins], sums=np.add.reduceat(sums[:, order], begins, axis=1))
