"""L1 and squared L2 norms of a tree's nodes for two trajectories that differ at few consecutive boundaries.

Let g be the difference of a unit's two states at each boundary: 0 outside w consecutive boundaries, and inside them one
state or the negative of the other, since one of the two trajectories has no state there. So |g| <= r and
|g - g'| <= 2 r, and g may be chosen freely at each boundary. A node between boundaries a and b holds g(b) - g(a): at
most 2 r if both lie inside, r if one does.

By layers. Boundaries of nodes of s leaves are multiples of s, at most ceil(w / s) of them inside:

    L1 <= 2 r ceil(w / s),    squared L2 <= (4 ceil(w / s) - 2) r^2                                                 (4)

On a line. For one component in one cell g(b) lies in [-r, r] and both norms are convex in g, so the worst g is +-r at
each boundary inside. A max-plus dynamic programme over the nodes finds the best signs for each place of the w
boundaries. A place is a position among the leaves of a node of the first layer whose nodes are as long as w; each layer
above it adds 2 r, in the places that contain a boundary of all these layers. Several components have the same worst
signs.
For squared L2 the line is the worst case: with several cells, or several entries of an owner, multiply each cell by a
random sign and add the cells up to one. The expected inner product of two cells is 0, so the expected squared norm is
unchanged, and some choice of signs gives at least this value. On that line |g| <= r still holds.
In L1 two states in different cells are 2 r apart with any signs, and (4) is reached.
For odd c the signs that alternate at the leaves alternate in every layer, so (4) is reached on a line too.

At a horizon that cuts nodes (Tree.cut) the last boundary, t, ends a node of every layer, and nothing follows it. If g
is not 0 there, the boundaries inside are t and those before it, m of them multiples of s. They end m + 1 nodes of the
layer:

    L1 <= (2 m + 1) r,    squared L2 <= (4 m + 1) r^2                                                              (5)

The larger of (4) and (5), each added up over the layers, is charged. If boundary 0 is inside, no node ends there: (5)
is then larger than necessary by r in each layer, which covers the node of the initial level.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privacy.states import States
from privacy.strategies.tree.norms import Forest
from privacy.strategies.tree.odd_nodes import layer_sizes

MOST_EXACT = 128
"""Largest number of boundaries for which signs are searched; for more, (4) is charged, at most a quarter larger. In
such long spans direct levels have less error than trees anyway, and a search over 365 boundaries took 20 seconds."""

_IMPOSSIBLE = -(1 << 40)


def norm(forest: Forest, states: States, boundaries: int, *, cut: int | None = None) -> Fraction:
    """Return the L1 or squared L2 norm of the nodes that one unit moves.

    Neighbours: trajectories of one unit that differ at consecutive boundaries (privacy.protection.Span).

    Args:
        forest: the nodes.
        states: sizes of the trajectories' difference in that norm, in normalised units (privacy.states).
        boundaries: largest number of consecutive boundaries at which the trajectories differ.
        cut: the boundary at which the last node of each layer ends, if the forest has whole nodes instead.
    """
    ratio = int(states.diameter / states.radius)
    there_are = layer_sizes(forest.branching, forest.layers, forest.windows)
    met = [-(-boundaries // forest.branching**layer) for layer in range(forest.layers)]
    initial = states.radius if forest.initial else Fraction(0)
    by_layers, at_cut, by_nodes = Fraction(0), Fraction(0), initial
    for layer, (ends, there) in enumerate(zip(met, there_are, strict=True)):
        if there > 0:
            apart = 2 * states.radius + (ends - 1) * states.diameter
            last = states.radius + _before(cut, boundaries, forest.branching**layer) * states.diameter
            by_layers += apart
            at_cut += last
            by_nodes += min(max(apart, last), int(min(there, ends + 1)) * states.diameter)
    layers = sum(there > 0 for there in there_are)
    if states.hulls and forest.branching % 2 == 0 and boundaries <= MOST_EXACT:
        by_layers = states.radius * signs(boundaries, branching=forest.branching, layers=layers, ratio=ratio)
    return min(max(by_layers, at_cut), by_nodes)


def nodes(forest: Forest, boundaries: int) -> int:
    """Return the number of nodes that one unit can move, including the node of the initial level."""
    there_are = layer_sizes(forest.branching, forest.layers, forest.windows)
    met = [-(-boundaries // forest.branching**layer) + 1 for layer in range(forest.layers)]
    return sum(int(min(m, there)) for m, there in zip(met, there_are, strict=True)) + int(forest.initial)


def _before(cut: int | None, boundaries: int, size: int) -> int:
    """Return m of (5): multiples of a node's size among the boundaries inside before a cut; 0 without a cut.

    >>> _before(9, 2, 8), _before(9, 2, 4), _before(10, 2, 8), _before(9, 100, 8)
    (1, 1, 0, 2)
    """
    if cut is None:
        return 0
    return (cut - 1) // size - (max(cut - boundaries + 1, 0) - 1) // size


@lru_cache(maxsize=4096)
def signs(boundaries: int, *, branching: int, layers: int, ratio: int) -> int:
    """Return the norm for the worst signs at consecutive boundaries of a forest without end, for r = 1.

    Args:
        boundaries: number of consecutive boundaries.
        branching: children of a node.
        layers: number of layers.
        ratio: cost of a node between opposite signs: 2 in L1, 4 in squared L2.

    >>> signs(1, branching=2, layers=3, ratio=4), signs(4, branching=2, layers=1, ratio=4)
    (6, 14)
    """
    lower = min(layers, next(j for j in range(64) if branching**j >= boundaries))
    if lower == 0:
        return 2 * layers
    best, span = 0, branching ** (lower - 1)
    for places in np.array_split(np.arange(boundaries), -(-boundaries // 64)):
        first = span * (-(-(boundaries + 1) // span) + 1)  # a boundary of all layers, with room before it
        inside = _inside(first - places, boundaries, span)
        best = max(best, int(_best(inside, branching, lower, ratio).max()))
    return best + 2 * (layers - lower)


def _inside(starts: NDArray[np.int64], boundaries: int, span: int) -> NDArray[np.bool_]:
    """Return which boundaries are inside, [places, boundaries], over whole top nodes that contain every place."""
    last = int(starts.max()) + boundaries + 1
    at = np.arange(-(-last // span) * span + 1)
    found: NDArray[np.bool_] = (at >= starts[:, None]) & (at < starts[:, None] + boundaries)
    return found


def _best(inside: NDArray[np.bool_], branching: int, layers: int, ratio: int) -> NDArray[np.int64]:
    """Return the largest norm for each place; nodes are [places, nodes, sign at begin, sign at end], signs -1, 0, 1."""
    sign = np.arange(-1, 2)
    cost = np.array([0, 1, ratio])[np.abs(sign[:, None] - sign)]
    allowed = np.where(inside[..., None] == (sign != 0), 0, _IMPOSSIBLE)
    found = cost + allowed[:, :-1, :, None] + allowed[:, 1:, None, :]
    for _ in range(layers - 1):
        found = np.maximum(_chained(found, branching) + cost, _IMPOSSIBLE)
    return _chained(found, found.shape[1])[:, 0, 1, 1]


def _chained(found: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return runs of `count` nodes as one node, with the best signs between them."""
    groups = found.reshape(len(found), -1, count, 3, 3)
    whole: NDArray[np.int64] = groups[:, :, 0]
    for place in range(1, count):
        whole = (whole[..., :, :, None] + groups[:, :, place, None, :, :]).max(axis=-2)
    return whole
