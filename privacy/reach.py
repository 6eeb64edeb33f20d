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
jumps: h M(m), with h the length of the interval and M the most odd nodes (privacy.odd_nodes; #trees). The same goes for
filters with the energies of privacy.energy instead of M (#filters). The smallest of the bounds is taken.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privacy import energy
from privacy.constraint import AtMost, Within
from privacy.direct import Direct
from privacy.energy import ROOM, Floats
from privacy.odd_nodes import layer_sizes, most_odd, most_odd_within
from privacy.states import States
from privacy.trees import Tree

MOST_CHANGES = 10_000
"""Beyond so many changes on an endless line a filter's energy is bounded change by change."""


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


def of_tree(tree: Tree, part: AtMost | Within, window: int, states: States, *, most: int = 1) -> float:
    """L1 or squared L2 norm of one entry's nodes.

    Args:
        most: the largest number of changes that the caller will ask for, so that they are counted once.
    """
    layers = tree_layers(tree, part, window)
    appearing = sum(states.radius + (t.appearing - 1) * states.diameter for t in layers)
    present = sum(t.present * states.diameter for t in layers) + (states.radius if tree.opening else 0.0)
    by_layer = max(appearing, present)
    if not states.hulls:
        return by_layer
    line = math.fsum(states.hulls)
    shape = {"branching": tree.branching, "height": tree.layers, "windows": tree.whole}
    if isinstance(part, AtMost):
        odd = most_odd(max(most, part.changes), **shape)
        # Told at the opening, or not: then its complement starts from nothing with one change less.
        jumping = line * odd[min(part.changes, len(odd) - 1)]
        if tree.opening:
            jumping = max(jumping, states.radius + line * odd[min(part.changes - 1, len(odd) - 1)])
    else:
        within = most_odd_within(layers[0].appearing, **shape)
        jumping = line * within + (states.radius if tree.opening else 0.0)
    return min(by_layer, float(jumping))


def of_direct(direct: Direct, part: AtMost | Within, window: int, states: States) -> float:
    """The same for overlapping windows: a leaf lies in at most ceil(width / every) of them."""
    overlap = -(-direct.width // direct.every)
    leaves = touched(part, length=window, nodes=math.inf if direct.windows is None else direct.windows)
    appearing = overlap * (states.radius + (leaves.appearing - 1) * states.diameter)
    present = overlap * leaves.present * states.diameter
    return min(max(appearing, present), direct_nodes(direct, part, window) * states.diameter)


def direct_nodes(direct: Direct, part: AtMost | Within, window: int) -> float:
    """How many sliding windows one entry can move."""
    overlap = -(-direct.width // direct.every)
    leaves = touched(part, length=window, nodes=math.inf if direct.windows is None else direct.windows)
    if isinstance(part, AtMost):
        met = overlap * leaves.appearing
    else:
        met = -(-(direct.width + leaves.appearing - 1) // direct.every)
    total = math.inf if direct.windows is None else max(0, (direct.windows - direct.width) // direct.every + 1)
    return min(met, total)


Toggles = Callable[[Floats, int | None, int], Floats]
"""Bounds for an entry on a line: energy.toggles, or a certificate."""


def of_filter(
    coefficients: Floats,
    *,
    leaves: int | None,
    opening: bool,
    part: AtMost | Within,
    window: int,
    states: States,
    toggles: Toggles = energy.toggles,
) -> list[float]:
    """Squared L2 norms of one entry's nodes y = C x, for 0, 1, ... changes; for a time span only the last counts.

    Args:
        coefficients: of C, non-negative and not increasing.
        leaves: in all, the opening among them if it is the first; None for an endless line.
        opening: whether it is.
        states: sizes in L2, squared.
    """
    if isinstance(part, Within):
        return [_within(coefficients, leaves, opening, part, window, states)]
    # One that was there at the start, where that is not told, has used up a change and may still move at every leaf.
    most = math.inf if leaves is None else leaves + int(not opening)
    changes = int(min(part.changes, most))
    column = float(energy.columns(coefficients, leaves, 1)[1])
    if changes > MOST_CHANGES:
        return [(states.radius + (changes - 1) * states.diameter) * column]
    fit = changes if leaves is None else min(changes, leaves)
    columns = energy.columns(coefficients, leaves, fit)
    visits = energy.visits(coefficients, leaves, fit)
    on_line = toggles(coefficients, leaves, fit) if states.hulls else None
    visit = max(states.radius, states.diameter / 2)
    near = energy.convex(coefficients, leaves)
    bounds = [0.0]
    for j in range(1, changes + 1):
        appearing = min(j, fit)
        apart = states.radius * columns[1] + states.diameter * (columns[appearing] - columns[1])
        seen = visit * visits[appearing]
        if not opening:  # a visit that began before the first leaf, and j - 1 changes
            apart = max(apart, states.diameter * columns[j - 1])
            # Both in one convex sequence, so that the end of that visit meets the others with the right sign.
            seen = max(seen, visit * float(near.lift(np.array([column + visits[j - 1]]), 2)[0]))
        least = min(apart, seen)
        if on_line is not None:
            least = min(least, math.fsum(states.hulls) * on_line[appearing])
        bounds.append(max(float(least) * ROOM, bounds[-1]))
    return bounds


def _within(
    coefficients: Floats, leaves: int | None, opening: bool, part: Within, window: int, states: States
) -> float:
    windows = math.inf if leaves is None else leaves - int(opening)
    met = touched(part, length=window, nodes=windows).appearing
    column = float(energy.columns(coefficients, leaves, 1)[1])
    # From the second term on (2): a change of the full diameter in every window that the span meets.
    apart = met * states.diameter * column
    if states.hulls:
        apart = min(apart, math.fsum(states.hulls) * energy.within(coefficients, leaves, met))
    if opening:
        return states.radius * column + apart
    return apart
