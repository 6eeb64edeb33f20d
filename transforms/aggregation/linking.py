"""Order of mutations at one instant by their images: the before image of each is the after image of its predecessor.

Without a source order, only images show which of an entry's changes at one time came first. The changes of one instant
are the edges of a graph whose vertices are states, identified by the digest of the whole image
(transforms.common.images). A possible order is an Eulerian path from the state before them. If that state is unknown,
or no path begins there since a change was lost, the path begins at a state with more outgoing than incoming changes.
Without such a state, as in a circle, it begins at the absent state: most entries start there. Unconnected changes
follow. Remaining ties are broken by the digests, so the result depends neither on the order of the input nor on the
queries.

Groups are short and rare: an entry that changes twice at one instant, in files without an order column. Groups of one
row, the usual case, are skipped.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

Ints = np.ndarray


UNKNOWN = -1
"""Digest that denotes an unknown state; real digests are not negative."""


def link(group: Ints, before: Ints, after: Ints, start: Ints, follows: Ints) -> Ints:
    """Return the order of rows that are sorted by (group, digests), linked within each group.

    Args:
        group: Group of each row, int64 [rows], non-decreasing: mutations of one chain, time and source order.
        before, after: Digest of the state before and after each row, int64 [rows]; `NONE`, the least, if there is no
            state.
        start: Digest of the state before the group's instant, or `UNKNOWN`, int64 [rows]; only the value at the group's
            first row is read.
        follows: Whether a group's first row directly follows the row above it in its chain, bool [rows].

    Returns:
        Row numbers, int64 [rows], group by group.
    """
    index = np.arange(len(group))
    edges = np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(group))
    for number in np.flatnonzero(np.diff(edges) > 1).tolist():
        begin, end = int(edges[number]), int(edges[number + 1])
        state = int(after[index[begin - 1]] if begin and follows[begin] else start[begin])
        index[begin:end] = begin + np.array(_paths(before[begin:end].tolist(), after[begin:end].tolist(), state))
    return index


def _paths(source: list[int], target: list[int], start: int) -> list[int]:
    """Return the edges in as few paths as possible, component by component; first the component that begins at `start`.

    >>> _paths([1, 2, 1], [2, 1, 3], 1)
    [0, 1, 2]
    >>> _paths([2, 1], [3, 2], 1)
    [1, 0]
    """
    found: list[tuple[bool, int, list[int]]] = []
    for edges in _pieces(source, target):
        ends = Counter(target[edge] for edge in edges)
        begins = Counter(source[edge] for edge in edges)
        starts = sorted((begins - ends).elements())
        goes_on = start in (starts or begins)
        first = start if goes_on else min(starts or begins)
        if starts:
            starts.remove(first)
        # Lost changes led from the end of a path to the beginning of the next one.
        lost = list(zip(sorted((ends - begins).elements()), starts, strict=False))
        steps = [(source[edge], target[edge], edge) for edge in edges] + [(*step, -1) for step in lost]
        found.append((not goes_on, first, _path(steps, first)))
    return [edge for _, _, path in sorted(found) for edge in path]


def _pieces(source: list[int], target: list[int]) -> Iterable[list[int]]:
    """Return the edges of each connected component of the graph."""
    above: dict[int, int] = {}

    def top(state: int) -> int:
        while above.setdefault(state, state) != state:
            state = above[state]
        return state

    for one, other in zip(source, target, strict=True):
        above[top(one)] = top(other)
    pieces: dict[int, list[int]] = defaultdict(list)
    for edge, state in enumerate(source):
        pieces[top(state)].append(edge)
    return pieces.values()


def _path(steps: list[tuple[int, int, int]], start: int) -> list[int]:
    """Return an Eulerian path of all steps (from, to, edge) by Hierholzer's algorithm, without lost edges (-1)."""
    ahead: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for state, to, edge in reversed(steps):
        ahead[state].append((to, edge))
    path: list[int] = []
    stack = [(start, -1)]
    while stack:
        state, edge = stack[-1]
        if ahead[state]:
            stack.append(ahead[state].pop())
        else:
            stack.pop()
            path.append(edge)
    return [edge for edge in reversed(path) if edge >= 0]
