"""Link mutations of one instant by their images: each one's before is the after of the one that precedes it.

Without a source order this is all that tells which of an entry's changes at one time came first. The changes of one
instant form the edges of a graph of states; an order in which they could have happened is an Eulerian path from
the state before them. Where there are several such paths, the least in content order is taken, so that
the answer does not depend on the order of the input. Changes that no path reaches follow in content order.

Groups are short and rare (an entry that changes twice at one instant, in files without an order column); groups of
one, which are the rule, are not looked at.
"""

from collections import defaultdict

import numpy as np

Ints = np.ndarray


UNKNOWN = -9
"""Stands for every column of a state that is not known; no real state has it as its cell."""


def link(group: Ints, before: list[Ints], after: list[Ints], start: list[Ints], follows: Ints) -> Ints:
    """The order of rows that are sorted by (group, content), linked within each group.

    Args:
        group: non-decreasing group of each row: mutations of one chain, time and source order.
        before, after: the projected state on both sides of each row, column by column.
        start: the state before the group's instant, read at its first row; `UNKNOWN` for none.
        follows: whether, in its chain, a group's first row comes directly after the row above it.

    Returns:
        row numbers, group by group.
    """
    index = np.arange(len(group))
    edges = np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(group))
    shared = np.flatnonzero(np.diff(edges) > 1)
    if len(shared) == 0:
        return index
    states = np.stack([np.concatenate(columns) for columns in zip(before, after, start, strict=True)])
    _, code = np.unique(states, axis=1, return_inverse=True)
    source, target, initial = np.split(code.ravel(), 3)
    for number in shared.tolist():
        begin, end = int(edges[number]), int(edges[number + 1])
        state = int(target[index[begin - 1]] if begin and follows[begin] else initial[begin])
        index[begin:end] = begin + np.array(_path(source[begin:end].tolist(), target[begin:end].tolist(), state))
    return index


def _path(source: list[int], target: list[int], start: int) -> list[int]:
    """An order of the edges that is an Eulerian path from `start` as far as there is one.

    >>> _path([1, 2, 1], [2, 1, 3], 1)
    [0, 1, 2]
    >>> _path([2, 1], [3, 2], 1)
    [1, 0]
    """
    out_edges: dict[int, list[int]] = defaultdict(list)
    balance: dict[int, int] = defaultdict(int)
    for edge in reversed(range(len(source))):
        out_edges[source[edge]].append(edge)
        balance[source[edge]] += 1
        balance[target[edge]] -= 1
    if not out_edges.get(start):
        # The least state stands for none (no cell, no value), from which an entry is most likely to have come.
        start = min((state for state in source if balance[state] > 0), default=min(source))
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
    reached = set(path)
    return path + [edge for edge in range(len(source)) if edge not in reached]
