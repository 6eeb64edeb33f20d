"""How far a tree's nodes move between trajectories that are apart at few boundaries: squared L2 and L1 norms.

Let g be the difference of a unit's two states at each boundary: 0 outside w consecutive ones, and inside them the
negative of one state or the other, since one of the two is none. So |g| <= r and |g - g'| <= 2 r, and g may be chosen
freely at each. A node between boundaries a and b holds g(b) - g(a): at most 2 r where both lie inside, r where one
does.

By layers. Boundaries of nodes of s leaves are multiples of s, at most ceil(w / s) of them inside:

    L1 <= 2 r ceil(w / s),    squared L2 <= (4 ceil(w / s) - 2) r^2                                                 (4)

On a line. For one component in one cell g(b) lies in [-r, r], both norms are convex in g, so the worst g is +-r at each
boundary inside: a max-plus dynamic programme over the nodes finds the best signs for each place of the w boundaries
(a place is one among the leaves of a node of the first layer whose nodes are as long as w; the layers above it gain 2 r
each, in the places that hold a boundary of all of them). Several components have the worst signs alike.
For squared L2 the line is the worst of all: with several cells, or several entries of an owner, give each cell a
random sign of its own and add the cells up to one. Inner products between cells vanish in the mean, so the squared norm
stays, and some choice of signs has no less. On that line |g| <= r still.
In L1 two states in different cells are 2 r apart with any signs, and (4) is reached.
For odd c the signs that alternate at the leaves alternate in every layer, so (4) is reached on a line too.

At a horizon that cuts nodes (Tree.cut) the last boundary, t, ends a node of every layer, and nothing follows it. If g
is not 0 there, what is inside is t and the boundaries before it, m of them multiples of s. They end m + 1 nodes of the
layer:

    L1 <= (2 m + 1) r,    squared L2 <= (4 m + 1) r^2                                                              (5)

Of (4) and (5), each added up over the layers, the larger is charged. Where boundary 0 is inside, no node ends there:
(5) has r to spare in each layer, which is room enough for the node of the initial level.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privacy.states import States
from privacy.strategies.tree_norms import Forest
from privacy.strategies.tree_odd_nodes import layer_sizes

MOST_EXACT = 128
"""Boundaries up to which signs are searched; beyond, (4) is charged, up to a quarter more. In so long spans levels by
themselves have less error than trees in any case, and to search 365 boundaries took a plan 20 seconds."""

_IMPOSSIBLE = -(1 << 40)


def norm(forest: Forest, states: States, boundaries: int, *, cut: int | None = None) -> Fraction:
    """L1 or squared L2 norm of what one unit moves.

    Args:
        states: sizes in that norm, of trajectories that are apart (privacy.states).
        boundaries: at most so many, in a row.
        cut: the boundary at which the last node of each layer ends, if the forest holds whole ones in their places.
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
    """How many nodes one unit can move, that of the initial level among them."""
    there_are = layer_sizes(forest.branching, forest.layers, forest.windows)
    met = [-(-boundaries // forest.branching**layer) + 1 for layer in range(forest.layers)]
    return sum(int(min(m, there)) for m, there in zip(met, there_are, strict=True)) + int(forest.initial)


def _before(cut: int | None, boundaries: int, size: int) -> int:
    """m of (5): multiples of a node's size among the boundaries that are inside before a cut; 0 without one.

    >>> _before(9, 2, 8), _before(9, 2, 4), _before(10, 2, 8), _before(9, 100, 8)
    (1, 1, 0, 2)
    """
    if cut is None:
        return 0
    return (cut - 1) // size - (max(cut - boundaries + 1, 0) - 1) // size


@lru_cache(maxsize=4096)
def signs(boundaries: int, *, branching: int, layers: int, ratio: int) -> int:
    """The norm for the worst signs at so many boundaries in a row of a forest without end, for r = 1.

    Args:
        ratio: what a node between opposite signs costs: 2 in L1, 4 in squared L2.

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
    """[places, boundaries] of a stretch of whole top nodes that holds every place."""
    last = int(starts.max()) + boundaries + 1
    at = np.arange(-(-last // span) * span + 1)
    found: NDArray[np.bool_] = (at >= starts[:, None]) & (at < starts[:, None] + boundaries)
    return found


def _best(inside: NDArray[np.bool_], branching: int, layers: int, ratio: int) -> NDArray[np.int64]:
    """The largest norm for each place. Nodes are [places, nodes, sign at begin, sign at end], signs -1, 0, 1."""
    sign = np.arange(-1, 2)
    cost = np.array([0, 1, ratio])[np.abs(sign[:, None] - sign)]
    allowed = np.where(inside[..., None] == (sign != 0), 0, _IMPOSSIBLE)
    found = cost + allowed[:, :-1, :, None] + allowed[:, 1:, None, :]
    for _ in range(layers - 1):
        found = np.maximum(_chained(found, branching) + cost, _IMPOSSIBLE)
    return _chained(found, found.shape[1])[:, 0, 1, 1]


def _chained(found: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Runs of `count` nodes as one, by the best signs between them."""
    groups = found.reshape(len(found), -1, count, 3, 3)
    whole: NDArray[np.int64] = groups[:, :, 0]
    for place in range(1, count):
        whole = (whole[..., :, :, None] + groups[:, :, place, None, :, :]).max(axis=-2)
    return whole
