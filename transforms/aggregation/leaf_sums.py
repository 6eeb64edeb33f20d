"""Exact sums per window and cell of the changes that count.

    in    Chains, a mask of the changes that count, the query
    out   LeafSums     sparse: node numbers and, for each component, an integer sum

Node number = window * cells + cell, with window 0 for everything before the start (the initial level). Which nodes
appear here depends on the data and is private: the release adds the empty ones.

    net       minus the state before, plus the state after, of each change that counts
    entered   plus the state after, where the cell is new to the entry; once per entry, window and cell
    left      plus the state before, where the cell is given up; once per entry, window and cell

Under `AtOnce` a change is one between the ends of two windows (transforms.aggregation.window_ends): an entry that
arrives and leaves within one window has neither entered nor left.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privacy.series import Family
from transforms.aggregation.chains import Chains
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


def sum_leaves(chains: Chains, kept: Ints, query: Query, number: int, timeline: Timeline, family: Family) -> LeafSums:
    """Return the exact sums of one family of nodes.

    Args:
        chains: Rows in chain order.
        kept: Mask of the changes that count, bool [rows].
        query: The query.
        number: Place of the query in `chains`.
        timeline: Windows of the run.
        family: Family of nodes: net, entered or left.

    Raises:
        OverflowError: A sum could exceed 64 bits.
    """
    rows = np.flatnonzero(kept & (chains.time < timeline.until))
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
        events = events[_first_in_block(chains.chain[rows[events]], window[events], state[events])]
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


def _first_in_block(chain: Ints, window: Ints, cell: Ints) -> Ints:
    """Return the places of the first event of each (entry, window, cell); rows are in chain order."""
    order = np.lexsort([np.arange(len(chain)), cell, window, chain])
    if len(order) == 0:
        return order
    new = np.insert(
        (np.diff(chain[order]) != 0) | (np.diff(window[order]) != 0) | (np.diff(cell[order]) != 0),
        0,
        True,
    )
    return np.sort(order[new])


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
    starts = np.flatnonzero(np.insert(np.diff(ordered) != 0, 0, True))
    return LeafSums(node=ordered[starts], sums=np.add.reduceat(sums[:, order], starts, axis=1))
