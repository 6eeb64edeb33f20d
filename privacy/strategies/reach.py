"""How far the changes of one entry reach through the nodes of a strategy: squared L2 norms and L1 norms of its node
vector.

Let X_0, X_1, ... be the entry's states at the windows' ends and z_i = X_i - X_{i-1} its leaf sums. G(a, b) is the inner
product of the strategy's columns a and b: for a tree or sliding windows the number of nodes that hold both leaves.
It never grows as b moves away from a, and then (pairing, docs/proofs/strategies.md#pairing) each change costs at
most D^2 G(a, a), and the first one r^2 G(a, a) if it starts from nothing:

    ||C z||^2 <= (r^2 + (m - 1) D^2) max G(a, a)      an entry that appears, m changes                           (1)
    ||C z||^2 <= m D^2 max G(a, a)                    one that was there at the start, where that is not told    (2)

Where the opening is a node of its own, an entry that was there at the start costs r^2 there and (2) for the rest. A
layer of a tree is a disjoint release with longer windows, so (1) and (2) hold for each layer with its own number m of
touched nodes, and so they do for L1. One component in one cell moves on a line: the norm is convex in the values, so
the worst entry jumps between the ends of the interval, and a node is non-zero only if it holds an odd number of its
jumps: h M(m), with h the length of the interval and M the most odd nodes (privacy.strategies.tree_odd_nodes; #trees).
The smallest of the bounds is taken, in exact arithmetic. Filters are in privacy.strategies.factorised_filters.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from privacy.constraint import AtMost, Within
from privacy.states import States
from privacy.strategies.direct import Direct
from privacy.strategies.tree import Tree
from privacy.strategies.tree_odd_nodes import layer_sizes, most_odd, most_odd_within


@dataclass(frozen=True, slots=True)
class Touched:
    """How many nodes of one layer an entry can move, at most.

    Attributes:
        appearing: by an entry that starts from nothing.
        present: by one that was there at the start; being there used up one of `at_most`.
    """

    appearing: int
    present: int


def touched(part: AtMost | Within, *, length: int, nodes: float) -> Touched:
    """Over disjoint windows of `length` microseconds, `nodes` of them (infinity: no end).

    A span of B microseconds meets at most ceil(B / length) + 1 windows (erratum of Pan's theorem 4.3).

    >>> touched(AtMost(3), length=10, nodes=2), touched(Within(15), length=10, nodes=math.inf)
    (Touched(appearing=2, present=2), Touched(appearing=3, present=3))
    """
    if isinstance(part, AtMost):
        return Touched(int(min(part.changes, nodes)), int(min(part.changes - 1, nodes)))
    met = int(min(-(-part.span // length) + 1, nodes))
    return Touched(met, met)


def tree_layers(tree: Tree, part: AtMost | Within, window: int) -> list[Touched]:
    """Touched nodes of each layer that has any; the opening is not among them."""
    sizes = layer_sizes(tree.branching, tree.layers, tree.whole)
    return [
        touched(part, length=window * tree.branching**layer, nodes=size) for layer, size in enumerate(sizes) if size > 0
    ]


def of_tree(tree: Tree, part: AtMost | Within, window: int, states: States, *, most: int = 1) -> Fraction:
    """L1 or squared L2 norm of one entry's nodes.

    Args:
        most: the largest number of changes that the caller will ask for, so that they are counted once.
    """
    layers = tree_layers(tree, part, window)
    told = states.radius if tree.opening else Fraction(0)
    appearing = len(layers) * states.radius + sum(t.appearing - 1 for t in layers) * states.diameter
    present = told + sum(t.present for t in layers) * states.diameter
    by_layer = max(appearing, present)
    if not states.hulls:
        return by_layer
    line = sum(states.hulls, Fraction(0))
    shape = {"branching": tree.branching, "height": tree.layers, "windows": tree.whole}
    if isinstance(part, AtMost):
        odd = most_odd(max(most, part.changes), **shape)
        # Told at the opening, or not: then its complement starts from nothing with one change less.
        jumping = line * odd[min(part.changes, len(odd) - 1)]
        if tree.opening:
            jumping = max(jumping, told + line * odd[min(part.changes - 1, len(odd) - 1)])
    else:
        within = most_odd_within(layers[0].appearing, **shape)
        jumping = line * within + told
    return min(by_layer, jumping)


def of_direct(direct: Direct, part: AtMost | Within, window: int, states: States) -> Fraction:
    """The same for overlapping windows: a leaf lies in at most ceil(width / every) of them."""
    overlap = -(-direct.width // direct.every)
    leaves = touched(part, length=window, nodes=math.inf if direct.windows is None else direct.windows)
    appearing = overlap * (states.radius + (leaves.appearing - 1) * states.diameter)
    present = overlap * leaves.present * states.diameter
    return min(max(appearing, present), direct_nodes(direct, part, window) * states.diameter)


def direct_nodes(direct: Direct, part: AtMost | Within, window: int) -> int:
    """How many sliding windows one entry can move."""
    overlap = -(-direct.width // direct.every)
    leaves = touched(part, length=window, nodes=math.inf if direct.windows is None else direct.windows)
    if isinstance(part, AtMost):
        met = overlap * leaves.appearing
    else:
        met = -(-(direct.width + leaves.appearing - 1) // direct.every)
    if direct.windows is None:
        return met
    return min(met, max(0, (direct.windows - direct.width) // direct.every + 1))
