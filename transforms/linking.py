"""Link mutations of one instant by their images: each one's before is the after of the one that precedes it.

Without a source order this is all that tells which of an entry's changes at one time came first. The changes of one
instant form the edges of a graph of states, each known by the digest of its whole image (transforms.images). An order
in which they could have happened is an Eulerian path from the state before them. Where that state is not known, or no
change leaves it, the path begins at a state that changes lead away from more often than to, else, as for a circle, at
none: most entries come from there. Changes that the path does not reach follow as a path of their own. What is still
open goes by the digests, so that the answer depends neither on the order of the input nor on what is asked of states.

Groups are short and rare (an entry that changes twice at one instant, in files without an order column); groups of
one, which are the rule, are not looked at.
"""

from collections import defaultdict

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
    """An order of the edges that is an Eulerian path from `start` as far as there is one.

    >>> _paths([1, 2, 1], [2, 1, 3], 1)
    [0, 1, 2]
    >>> _paths([2, 1], [3, 2], 1)
    [1, 0]
    """
    out_edges: dict[int, list[int]] = defaultdict(list)
    balance: dict[int, int] = defaultdict(int)
    for edge in reversed(range(len(source))):
        out_edges[source[edge]].append(edge)
        balance[source[edge]] += 1
        balance[target[edge]] -= 1
    paths: list[int] = []
    while len(paths) < len(source):
        if not out_edges[start]:
            left = [state for state, edges in out_edges.items() if edges]
            start = min((state for state in left if balance[state] > 0), default=min(left))
        path = _path(out_edges, target, start)
        for edge in path:
            balance[source[edge]] -= 1
            balance[target[edge]] += 1
        paths += path
    return paths


def _path(out_edges: dict[int, list[int]], target: list[int], start: int) -> list[int]:
    """A path from `start` over all edges that can be reached from there; takes them out of `out_edges`."""
    path: list[int] = []
    stack: list[tuple[int, int]] = [(start, -1)]
    while stack:
        state, edge = stack[-1]
        if out_edges[state]:
            taken = out_edges[state].pop()
            stack.append((target[taken], taken))
        else:
            stack.pop()
            if edge >= 0:
                path.append(edge)
    path.reverse()
    return path
