"""Largest number of odd nodes of a tree for one entry: the exact L1 and squared L2 sensitivity of linear queries.

A c-ary forest with h layers has n windows as leaves. Node m of layer i = 0 .. h - 1 covers the c^i leaves from m c^i
on, and exists if all of them do: N_i = floor(n / c^i) nodes. By the digits of n in base c the forest is a row of full
trees: N_{h-1} of them with h layers, then fewer than c with h - 1, and so on.

Theorem (docs/proofs/strategies.md#trees). Let an entry's state lie in [0, 1] and change at most k times, and let a node
hold its net change. The L1 norm and the squared L2 norm of the entry's nodes are at most M(k), the largest number of
nodes with an odd number of leaves out of at most k chosen ones. Both are reached.
Proof. For fixed times of the changes both norms are convex in the states, hence largest if all states are 0 or 1 and
the changes are toggles, +1 and -1 in turn. A node's net change is then 0 or +-1, and not 0 iff it contains an odd
number of toggles. Two toggles inside one leaf cancel in every node, so at most one toggle in a leaf counts.

`most_odd` computes M by a max-plus dynamic programme: F_l(j), the most odd nodes of a full tree of l layers with
exactly j toggles, has F_1 = (0, 1) and F_{l+1}(j) = (F_l * ... * F_l)(j) + (j mod 2), c factors. `most_odd_within`
leaves the number of toggles free but keeps them inside a span of leaves: an entry whose changes lie in a span of time.
Own result; M. Pan, "Differentially-private Continual Releases against Dynamic Databases" (arXiv:2305.03783), charges
h k.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least

Ints = NDArray[np.int64]
Pair = tuple[Ints, Ints]
"""Largest numbers of odd nodes for an even and for an odd total number of toggles."""

MOST_EXACT = 2048
"""Largest number of changes for which M is computed: the time grows with its square."""

MOST_STARTS = 1 << 16
"""Largest number of places of a span that are tried."""

_IMPOSSIBLE = -(1 << 40)


def layer_sizes(branching: int, height: int, windows: int | None) -> list[float]:
    """Return the number of nodes of each layer, leaves first; infinity without an end, 0 for layers that do not fit.

    Args:
        branching: children of a node.
        height: number of layers.
        windows: number of leaves; None without an end.

    >>> layer_sizes(2, 4, 13)
    [13.0, 6.0, 3.0, 1.0]
    """
    at_least("branching", branching, 2)
    at_least("height", height, 1)
    if windows is None:
        return [math.inf] * height
    at_least("windows", windows, 1)
    return [float(windows // branching**layer) for layer in range(height)]


@lru_cache(maxsize=4096)
def most_odd(k: int, *, branching: int, height: int, windows: int | None) -> Sequence[int]:
    """Return M(0), M(1), ..., M(k), but not beyond M(windows), after which M is constant.

    The result is exact without an end, M(j) = h j (toggles under different top nodes), and up to `MOST_EXACT` toggles.
    For more toggles it is an upper bound from the sizes of the layers, equal for all j.

    Args:
        k: largest number of changes.
        branching: children of a node.
        height: number of layers.
        windows: number of leaves; None if the release has no end.

    >>> most_odd(8, branching=2, height=9, windows=365)
    (0, 9, 16, 23, 30, 36, 42, 48, 53)
    """
    at_least("k", k, 0)
    sizes = layer_sizes(branching, height, windows)
    if windows is None:
        return range(0, height * k + 1, height)
    toggles = min(k, windows)
    if toggles > MOST_EXACT:
        return _by_layers(toggles, branching, sizes)
    # Nearby values of k share the computation: it is done for the next power of two.
    return _exact(min(1 << max(0, toggles - 1).bit_length(), windows), branching, height, windows)[: toggles + 1]


@lru_cache(maxsize=4096)
def most_odd_within(span: int, *, branching: int, height: int, windows: int | None) -> int:
    """Return the most odd nodes for any number of toggles inside `span` consecutive leaves, at any position.

    The result is exact up to `MOST_STARTS` positions; otherwise it is an upper bound: that of the endless forest, which
    has all nodes of this one and more, or else sum_i min(N_i, ceil((span - 1) / c^i) + 1), the nodes that meet the
    span.

    Args:
        span: number of consecutive leaves.
        branching: children of a node.
        height: number of layers.
        windows: number of leaves; None if the release has no end.

    >>> most_odd_within(31, branching=2, height=9, windows=None)
    52
    """
    at_least("span", span, 1)
    sizes = [size for size in layer_sizes(branching, height, windows) if size > 0]
    top = branching ** (len(sizes) - 1)
    if windows is not None:
        span = min(span, windows)
        # Nodes may be missing at the end. A shift to the left by a whole top node loses none.
        if sizes[-1] < 2 or span > top:
            places = range(min(top, windows - span + 1))
            if len(places) <= MOST_STARTS:
                return _at_best(span, places, branching, len(sizes), windows)
    # Let c^i >= span. A set of toggles under one node of layer i is odd in all layers from there on or in none. A set
    # that crosses a border of the top layer meets two nodes in each of these, and if the whole is odd then so is one of
    # the two. So a set that crosses a border of layer i may be moved by a multiple of c^i to one of the top layer, and
    # two kinds of places remain: across such a border, here 0, and under one node, from 0 on.
    period = min(top, next(size for i in range(span) if (size := branching**i) >= span))
    places = range(1 - span, period - span + 1)
    met = sum(min(size, -(-(span - 1) // branching**i) + 1) for i, size in enumerate(sizes))
    if len(places) <= MOST_STARTS:
        met = min(met, _at_best(span, places, branching, len(sizes), None))
    return int(met)


@lru_cache(maxsize=4096)
def _exact(most: int, branching: int, height: int, windows: int) -> tuple[int, ...]:
    forest = np.zeros(1, dtype=np.int32)
    for layers in range(1, height + 1):
        trees = windows // branching ** (layers - 1)
        if layers < height:
            trees %= branching
        if trees > 0:
            forest = _side_by_side(forest, _copies(_full_tree(branching, layers, most), trees, most), most)
    return tuple(np.maximum.accumulate(forest).tolist())


@lru_cache(maxsize=4096)
def _full_tree(branching: int, layers: int, most: int) -> NDArray[np.int32]:
    """Return F_layers(j) for j = 0 .. min(most, leaves)."""
    if layers == 1:
        return np.arange(min(most, 1) + 1, dtype=np.int32)
    below = _copies(_full_tree(branching, layers - 1, most), branching, most)
    return below + np.arange(len(below), dtype=np.int32) % 2


def _copies(tree: NDArray[np.int32], count: int, most: int) -> NDArray[np.int32]:
    """Return the values of `count` equal trees side by side, by doubling."""
    row = np.zeros(1, dtype=np.int32)
    while count:
        if count % 2:
            row = _side_by_side(row, tree, most)
        count //= 2
        if count:
            tree = _side_by_side(tree, tree, most)
    return row


def _side_by_side(left: NDArray[np.int32], right: NDArray[np.int32], most: int) -> NDArray[np.int32]:
    """Return the largest left[i] + right[j] for each i + j = 0 .. most."""
    few, many = sorted((left, right), key=len)
    both = np.zeros(min(len(few) + len(many) - 1, most + 1), dtype=np.int32)
    for here, value in enumerate(few.tolist()):
        reached = both[here : here + len(many)]
        np.maximum(reached, many[: len(reached)] + value, out=reached)
    return both


def _by_layers(toggles: int, branching: int, sizes: Sequence[float]) -> tuple[int, ...]:
    """Return a bound for M(0 .. toggles): layer i has at most min(j, N_i) odd nodes.

    If c is even, an odd node has an even one below it, so layers i and i + 1 together have at most N_i.
    """
    changes = np.arange(toggles + 1, dtype=np.int64)
    below = total = np.zeros_like(changes)
    for layer, size in enumerate(sizes):
        with_this = total + np.minimum(changes, int(size))
        if layer > 0 and branching % 2 == 0:
            with_this = np.minimum(with_this, below + int(sizes[layer - 1]))
        below, total = total, with_this
    return tuple(total.tolist())


def _at_best(span: int, places: range, branching: int, layers: int, windows: int | None) -> int:
    """Return the most odd nodes of toggles in leaves a .. a + span - 1, over all a in `places`; None: all nodes exist.

    Layer by layer from the leaves: the nodes that meet the span are the one at its head, whole ones, and the one at its
    tail if it is another node. Head and tail are kept for all places at once, with even and odd numbers of toggles.
    """
    first = np.arange(places.start, places.stop, dtype=np.int64)
    last = first + (span - 1)
    none = (np.zeros_like(first), np.full_like(first, _IMPOSSIBLE))
    head = (np.zeros_like(first), np.zeros_like(first))
    tail = head if span > 1 else none
    whole = (0, 0)
    for layer in range(layers):
        here, there = 1, 1
        if windows is not None:
            nodes = windows // branching**layer
            here, there = (first < nodes).astype(np.int64), (last < nodes).astype(np.int64)
        head, tail, whole = (head[0], head[1] + here), (tail[0], tail[1] + there), (whole[0], whole[1] + 1)
        inner = np.maximum(last - first - 1, 0)
        if layer == layers - 1:
            break
        together = _join(_join(head, _row(inner, whole)), tail)
        left = _join(head, _row(branching - 1 - first % branching, whole))
        right = _join(_row(last % branching, whole), tail)
        first, last = first // branching, last // branching
        head = _where(first == last, together, left)
        tail = _where(first == last, none, right)
        even, odd = _row(np.array([branching]), whole)
        whole = (int(even[0]), int(odd[0]))
    return int((np.maximum(*head) + inner * max(whole) + np.maximum(*tail)).max())


def _row(count: Ints, whole: tuple[int, int]) -> Pair:
    """Return the values of `count` whole nodes, of which as many as the parity allows are odd.

    That is best: with and under an odd node there cannot be fewer odd nodes than with an even one. The difference d is
    1 for a leaf, and one layer up it is 1 - d for even c and 1 + d for odd c.
    """
    even, odd = whole
    odd_of_even, odd_of_odd = count // 2 * 2, (count - 1) // 2 * 2 + 1
    with_odd = np.where(count > 0, count * even + odd_of_odd * (odd - even), _IMPOSSIBLE)
    return count * even + odd_of_even * (odd - even), with_odd


def _join(left: Pair, right: Pair) -> Pair:
    return (
        np.maximum(left[0] + right[0], left[1] + right[1]),
        np.maximum(left[0] + right[1], left[1] + right[0]),
    )


def _where(condition: NDArray[np.bool_], yes: Pair, no: Pair) -> Pair:
    return np.where(condition, yes[0], no[0]), np.where(condition, yes[1], no[1])
