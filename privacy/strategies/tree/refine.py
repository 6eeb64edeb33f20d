"""Estimates of a tree's nodes that use all noisy nodes.

The children of a node add up to it, so its noise z_a and theirs are related by

    r_a = z_a - (sum of the children's z)

which can also be computed from the noisy nodes, because the exact values cancel. Every correction here is computed from
these relations alone.

Bottom up. The best estimate u^ of a node from itself and all nodes below it is the weighted mean of itself (variance 1,
in units of one node's variance) and the sum of its children's best estimates (variance s, the sum of their variances),
which are independent. So the weight of the node itself is v = s / (1 + s), the weight of the children's sum is 1 - v,
and its variance is v; for a leaf v = 1.
Source: J. Honaker, "Efficient Use of Differentially Private Binary Trees" (2015).

Least squares. The best estimate of a root is its u^. That of a child b of a is

    u_b = u^_b + (v_b / s_a) (u_a - sum of u^ over the children of a)

Proof. For normal noise the best linear estimate is the conditional mean. Nodes outside the children's own trees inform
about the children only through their sum, and given the sum, independent normal variables share its surplus in
proportion to their variances.
Source: M. Hay, V. Rastogi, G. Miklau, D. Suciu, "Boosting the Accuracy of Differentially Private Histograms Through
Consistency", VLDB 2010, theorems 3 and 4, for whole trees; a horizon may cut the last node of each layer.

A range in closed form. Let p_b be 1 for windows in the range and 0 for others, and p_a = (sum of v_b p_b) / s_a over
the children of a: for a whole node the share of its windows that lie in the range. By the formula for u_b, from the
leaves up (and with 0 for p above a root),

    estimate of the range = sum over all nodes b of (p_b - p_a) u^_b        (a the parent of b)

The u^ of one family are independent, and the sum of v_b (p_b - p_a) over a family is 0, so families are uncorrelated
with each other and with all nodes above them. Hence the variance is the sum of v_b (p_b - p_a)^2, or of
(v_a - s_a) p_a^2 with s = 0 for leaves: on each layer only the nodes at the ends of the range and a cut node have a p
other than 0 and 1.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from privacy.series import Ints
from privacy.strategies.base import Floats

Numbers = TypeVar("Numbers", Ints, Floats)


def node_variances(branching: int, height: int) -> Floats:
    """Return v of the whole nodes of each layer, float64 [height], leaves first, in units of one node's variance.

    >>> node_variances(2, 3).round(4).tolist()
    [1.0, 0.6667, 0.5714]
    """
    variances = [1.0]
    while len(variances) < height:
        below = branching * variances[-1]
        variances.append(below / (1 + below))
    return np.array(variances)


def bottom_up(noise: Sequence[Ints], branching: int) -> list[Floats]:
    """Return the bottom-up estimates minus the nodes' own noisy values.

    Args:
        noise: for each layer, leaves first, int64 [nodes, cells]. The children of node a are c a, ..., c a + c - 1, as
            far as they exist.
        branching: children of a node, c.

    Returns:
        For each layer float64 [nodes, cells]. A node's value depends only on the nodes below it, bit by bit.

    >>> bottom_up([np.array([[1], [3]]), np.array([[1]])], 2)[1].tolist()
    [[1.0]]
    """
    variances, _ = _variances([len(nodes) for nodes in noise], branching)
    corrections: list[Floats] = [np.zeros(noise[0].shape)]
    for layer in range(1, len(noise)):
        surplus = over_children(corrections[-1], branching, len(noise[layer])) - _relation(noise, layer, branching)
        corrections.append((1 - variances[layer]) * surplus)
    return corrections


def least_squares(noise: Sequence[Ints], branching: int) -> list[Floats]:
    """Return the least-squares estimates minus the nodes' own noisy values.

    Arguments and result are as for `bottom_up`: arrays [nodes, cells] by layer, roots last. A node's value depends only
    on the tree of its root.

    >>> leaves, roots = least_squares([np.array([[1], [3]]), np.array([[1]])], 2)
    >>> leaves.tolist(), roots.tolist()
    ([[-1.0], [-1.0]], [[1.0]])
    """
    variances, families = _variances([len(nodes) for nodes in noise], branching)
    upward = bottom_up(noise, branching)
    corrections = [upward[-1]]
    for layer in reversed(range(1, len(noise))):
        below = over_children(upward[layer - 1], branching, len(noise[layer]))
        surplus = (corrections[-1] + _relation(noise, layer, branching) - below) / families[layer]
        spread = np.repeat(surplus, branching, axis=0)[: len(noise[layer - 1])]
        corrections.append(upward[layer - 1] + variances[layer - 1] * spread)
    return corrections[::-1]


def least_squares_variances(begins: Ints, ends: Ints, *, branching: int, height: int, windows: int) -> Floats:
    """Return the variances of the least-squares estimates of ranges, float64 [ranges], in units of one node's.

    Args:
        begins, ends: int64 [ranges], boundaries, at most `windows`.
        branching: children of a node.
        height: number of layers.
        windows: end of the forest, which cuts its last nodes.
    """
    total = np.zeros(len(begins))
    whole = cut = whole_family = 0.0
    share: Floats = np.zeros(len(begins))  # p of the cut node
    low, high, count = begins.astype(np.float64), ends.astype(np.float64), windows
    for layer in range(height):
        span = branching**layer
        if windows % span:
            # The cut node contains the whole nodes below it after the end of the last whole one, and a cut one if any.
            begin = windows // span * branching
            inside = np.clip(high, begin, count) - np.clip(low, begin, count)
            family = (count - begin) * whole + cut
            share = (whole * inside + cut * share) / family
            cut = family / (1 + family)
            total += (cut - family) * share**2
        whole = whole_family / (1 + whole_family) if layer else 1.0
        low, high, count = begins / span, ends / span, windows // span
        total += (whole - whole_family) * _squares(np.minimum(low, count), np.minimum(high, count))
        whole_family = branching * whole
    return total


def least_squares_weights(begins: Ints, ends: Ints, *, branching: int, nodes: Sequence[int]) -> Floats:
    """Return the weight of each node's noise in the least-squares estimates of ranges, [ranges, nodes], roots first.

    Args:
        begins, ends: int64 [ranges], boundaries.
        branching: children of a node.
        nodes: number of nodes of each layer, leaves first.
    """
    variances, families = _variances(nodes, branching)
    window = np.arange(nodes[0])[:, None]
    shares: list[Floats] = [((begins <= window) & (window < ends)).astype(np.float64)]
    for layer in range(1, len(nodes)):
        shares.append(over_children(variances[layer - 1] * shares[-1], branching, nodes[layer]) / families[layer])
    held = shares[-1]
    rows = [variances[-1] * held]
    for layer in reversed(range(1, len(nodes))):
        handed = np.repeat((1 - variances[layer]) * held - shares[layer], branching, axis=0)
        held = shares[layer - 1] + handed[: nodes[layer - 1]]
        rows.append(variances[layer - 1] * held)
    return np.concatenate(rows).T


def over_children(values: Numbers, branching: int, parents: int) -> Numbers:
    """Return the sums over the children of each parent, [parents, cells].

    Children are added one by one in a fixed order, so that rounding does not depend on the number of parents.

    Args:
        values: values of the children, [nodes, cells].
        branching: children of a node.
        parents: number of parents.
    """
    families = values[: branching * parents]
    total: Numbers = np.zeros_like(values, shape=(parents, values.shape[1]))
    for child in range(branching):
        there = families[child::branching]
        total[: len(there)] += there
    return total


def _relation(noise: Sequence[Ints], layer: int, branching: int) -> Ints:
    """Return the relations of a layer's nodes with their children, [nodes, cells]."""
    relation: Ints = noise[layer] - over_children(noise[layer - 1], branching, len(noise[layer]))
    return relation


def _variances(nodes: Sequence[int], branching: int) -> tuple[list[Floats], list[Floats]]:
    """Return v and s of each layer's nodes, [nodes, 1]."""
    variances, families = [np.ones((nodes[0], 1))], [np.zeros((nodes[0], 1))]
    for count in nodes[1:]:
        family = over_children(variances[-1], branching, count)
        families.append(family)
        variances.append(family / (1 + family))
    return variances, families


def _squares(low: Floats, high: Floats) -> Floats:
    """Return the sums over the unit intervals of the squared length of each that lies between low and high."""
    first, last = np.ceil(low), np.floor(high)
    squares = (first - low) ** 2 + (last - first) + (high - last) ** 2
    return np.where(first > last, (high - low) ** 2, squares)
