"""Link mutations of one instant by their images: each one's before is the after of the one that precedes it.

Without a source order this is all that says which of an entry's changes at one time came first. The changes of one
instant form the edges of a graph of states, each known by the digest of its whole image (transforms.common.images). An
order in which they could have happened is an Eulerian path from the state before them. Where that state is not known,
or no path begins there since a change was lost, it begins at a state that changes lead away from more often than to,
else, as for a circle, at none: most entries come from there. Changes that do not hang together with these follow. What
is still open goes by the digests, so that the answer depends neither on the order of the input nor on what is asked of
states.

Groups are short and rare (an entry that changes twice at one instant, in files without an order column); groups of
one, which are the rule, are not looked at.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

Ints = np.ndarray


UNKNOWN = -1
"""Stands for a state that is not known; digests are not negative."""


def link(group: Ints, before: Ints, after: Ints, start: Ints, follows: Ints) -> Ints:
    """The order of rows that are sorted by (group, digests), linked within each group.

    Args:
        group: non-decreasing group of each row: mutations of one chain, time and source order.
        before, after: the digest of the state on both sides of each row; `NONE`, the least, where there is none.
        start: that of the state before the group's instant, read at its first row; or `UNKNOWN`.
        follows: whether, in its chain, a group's first row comes directly after the row above it.

    Returns:
        row numbers, group by group.
    """
    index = np.arange(len(group))
    edges = np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(group))
    for number in np.flatnonzero(np.diff(edges) > 1).tolist():
        begin, end = int(edges[number]), int(edges[number + 1])
        state = int(after[index[begin - 1]] if begin and follows[begin] else start[begin])
        index[begin:end] = begin + np.array(_paths(before[begin:end].tolist(), after[begin:end].tolist(), state))
    return index


def _paths(source: list[int], target: list[int], start: int) -> list[int]:
    """The edges, piece by piece of the graph, each in as few paths as can be; first the piece that begins at `start`.

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
        # Changes that were lost led from where a path ends to where the next one begins.
        lost = list(zip(sorted((ends - begins).elements()), starts, strict=False))
        steps = [(source[edge], target[edge], edge) for edge in edges] + [(*step, -1) for step in lost]
        found.append((not goes_on, first, _path(steps, first)))
    return [edge for _, _, path in sorted(found) for edge in path]


def _pieces(source: list[int], target: list[int]) -> Iterable[list[int]]:
    """The edges of each part of the graph that hangs together."""
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
    """Hierholzer's way through all steps (from, to, edge); steps that are no edges (-1) are left out of it."""
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
