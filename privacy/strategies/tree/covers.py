"""Smallest sets of nodes of a forest that add up to a range of windows.

A forest has branching c and h layers. Node j of layer i spans the windows from boundary j c^i to (j + 1) c^i. Layer 0
holds the windows, and layer h - 1 has no parents: the number of windows determines the number of top nodes.

Cover: the nodes that lie in the range and whose parent does not. They are disjoint and fill the range. No cover is
smaller: each node of another cover lies inside one of these nodes, and each of these needs at least one. For the size
of the largest cover of at most c^h windows, see tests/paper.py, `exact_nodes`. For a prefix it is c if h = 1, else
(c - 1) h: c^h - 1 windows take c - 1 of each layer.
Source: M. Pan, "Differentially-private Continual Releases against Dynamic Databases", section 4.

Walk: nodes may also be subtracted. Boundaries are places and a node is a step between two of them, so the fewest signed
nodes are a shortest walk from one boundary to the other. To reach a higher layer a walk turns to the last boundary of
that layer before it or to the next one: boundaries further away are reached by the higher layer with fewer steps. The
last node of a layer may be cut: it is then a step to the forest's end, and so is the last node of each layer above it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacy.checks import at_least
from privacy.series import Ints

_FAR = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """For each range, the runs of adjacent nodes of each layer that add up to it.

    Attributes:
        first, last: int64 [height, 2, ranges], one run on either side of the range. Nodes first, ..., last - 1 are
            added; if last < first, nodes last, ..., first - 1 are subtracted.
    """

    first: Ints
    last: Ints

    @property
    def sizes(self) -> Ints:
        """Number of nodes of each layer, int64 [height, ranges]."""
        sizes: Ints = np.abs(self.last - self.first).sum(axis=1)
        return sizes


def cover_runs(begins: Ints, ends: Ints, *, branching: int, height: int) -> Runs:
    """Return the minimal covers of ranges.

    Args:
        begins, ends: int64 [ranges], boundaries with 0 <= begin <= end.
        branching: children of a node, at least 2.
        height: number of layers, at least 1.

    Raises:
        ValueError: `branching` or `height` is too small.

    >>> runs = cover_runs(np.array([1]), np.array([7]), branching=2, height=3)
    >>> runs.first[:2, :, 0].tolist(), runs.last[:2, :, 0].tolist()  # leaves 1 and 6, and nodes 1 and 2 above them
    ([[1, 6], [1, 2]], [[2, 7], [2, 3]])
    """
    at_least("branching", branching, 2)
    at_least("height", height, 1)
    first = np.zeros((height, 2, len(begins)), dtype=np.int64)
    last = np.zeros_like(first)
    low, high = begins, ends
    for layer in range(height - 1):
        up, down = -(-low // branching), high // branching
        inside = up > down  # the whole range lies under one parent
        first[layer, 0], last[layer, 0] = low, np.where(inside, high, up * branching)
        first[layer, 1], last[layer, 1] = np.where(inside, high, down * branching), high
        low, high = np.where(inside, 0, up), np.where(inside, 0, down)
    first[-1, 0], last[-1, 0] = low, high
    return Runs(first=first, last=last)


def walk_runs(begins: Ints, ends: Ints, *, branching: int, nodes: Sequence[int]) -> Runs:
    """Return shortest walks of signed nodes from begins to ends.

    Args:
        begins, ends: int64 [ranges], boundaries.
        branching: children of a node.
        nodes: number of nodes of each layer, leaves first. If c nodes of a layer hold more than the nodes below them,
            the last one is cut.

    >>> seven = walk_runs(np.array([0]), np.array([7]), branching=8, nodes=[8, 1])
    >>> seven.sizes.ravel().tolist(), seven.first[0, 1].tolist(), seven.last[0, 1].tolist()
    ([1, 1], [8], [7])
    """
    height = len(nodes)
    # On each layer either end is at the last boundary before it or at the next: [height, 2, ranges].
    low, high = (
        np.stack([[at // branching**layer + turn for turn in (0, 1)] for layer in range(height)])
        for at in (begins, ends)
    )
    # For each pair of places the choice is to walk on this layer (4) or to climb to one of 4 pairs above it.
    choices = []
    left = np.zeros((2, 2, len(begins)), dtype=np.int64)
    for layer in reversed(range(height)):
        walk = np.abs(high[layer][None] - low[layer][:, None])
        steps = np.full((5, *walk.shape), _FAR)
        if layer + 1 < height:
            # [from, to, ranges]; a boundary of the layer above is one of this layer, or the forest's end for both.
            down = np.abs(low[layer][:, None] - np.minimum(branching * low[layer + 1], nodes[layer]))
            up = np.abs(high[layer][:, None] - np.minimum(branching * high[layer + 1], nodes[layer]))
            for pair in range(4):
                steps[pair] = down[:, None, pair // 2] + up[None, :, pair % 2] + left[pair // 2, pair % 2]
        steps[4] = walk
        choice = steps.argmin(axis=0)
        exists = (low[layer] <= nodes[layer])[:, None] & (high[layer] <= nodes[layer])[None]
        left = np.where(exists, steps.min(axis=0), _FAR)
        choices.append(choice)
    choices.reverse()

    first = np.zeros((height, 2, len(begins)), dtype=np.int64)
    last = np.zeros_like(first)
    each = np.arange(len(begins))
    turn_low = turn_high = np.zeros_like(each)
    walking = np.ones(len(begins), dtype=bool)
    for layer in range(height):
        choice = choices[layer][turn_low, turn_high, each]
        here = low[layer][turn_low, each], high[layer][turn_high, each]
        if layer + 1 < height:
            turn_low, turn_high = (choice // 2) % 2, choice % 2
            above = (
                np.minimum(branching * low[layer + 1][turn_low, each], nodes[layer]),
                np.minimum(branching * high[layer + 1][turn_high, each], nodes[layer]),
            )
        else:
            above = here
        stops = choice == 4
        first[layer, 0], last[layer, 0] = here[0], np.where(stops, here[1], above[0])
        first[layer, 1], last[layer, 1] = np.where(stops, here[1], above[1]), here[1]
        first[layer][:, ~walking] = last[layer][:, ~walking] = 0
        walking &= ~stops
    return Runs(first=first, last=last)
