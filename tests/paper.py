"""Numbers as the paper states them, and the corrected numbers, for comparison.

The paper: M. Pan, "Differentially-private Continual Releases against Dynamic Databases", arXiv:2305.03783. Its HDCR
is a c-ary tree of h layers, the leaves among them, on windows of length W; its SWCR are sliding windows of length W
every P. Functions whose names end in `_claimed` return the paper's numbers; they calibrate no noise. Times are integers
in one common unit, which the greatest common divisor of W and P needs.
"""

import math
from collections.abc import Sequence
from typing import Literal

from privacy.checks import at_least
from privacy.strategies.tree.odd_nodes import layer_sizes, most_odd_within


def time_bounded_nodes_claimed(span: int, window: int, *, branching: int, height: int) -> float:
    """Theorem 4.3: sum_i (ceil(B / W) / c^i + 1) nodes for an entry that changes within B; also in 4.9, 5.3 and eq. 23.

    This is wrong: the ceiling belongs in each layer. If c^i divides ceil(B / W) for all i < h, both numbers agree.
    Otherwise the paper's number is too small and not always whole.

    >>> time_bounded_nodes_claimed(1, 1, branching=2, height=3)
    4.75
    """
    windows = _windows(span, window)
    return math.fsum(windows / branching**layer + 1 for layer, _ in enumerate(layer_sizes(branching, height, None)))


def time_bounded_nodes(span: int, window: int, *, branching: int, height: int) -> int:
    """Theorem 4.3 corrected: sum_i (ceil(B / (c^i W)) + 1), reached, for any query on the changes within B.

    The span [t, t + B] meets at most ceil(B / V) + 1 of the windows of length V, with equality if t is the last moment
    of a window. The last moment of a top node is the last moment of a window in every layer. B must also cover the
    deletion, which definition 4.1 leaves out; otherwise each layer may have one more node.

    >>> time_bounded_nodes(1, 1, branching=2, height=3)
    6
    """
    windows = _windows(span, window)
    return sum(-(-windows // branching**layer) + 1 for layer, _ in enumerate(layer_sizes(branching, height, None)))


def time_bounded_odd_nodes(span: int, window: int, *, branching: int, height: int) -> int:
    """Most nodes for linear queries of states in [0, 1], which telescope: only an odd number of toggles counts.

    >>> time_bounded_odd_nodes(30, 1, branching=2, height=9), time_bounded_nodes(30, 1, branching=2, height=9)
    (52, 72)
    """
    return most_odd_within(_windows(span, window) + 1, branching=branching, height=height, windows=None)


def most_span(ends: Sequence[int], span: int) -> int:
    """MostSpan corrected: how many of the ranges (-inf, t_0], (t_0, t_1], ... the times [s, s + B] can meet.

    Range i ends at t_i and range j begins after t_{j-1}: both are met iff t_{j-1} - t_i < B, or i = j. The paper's code
    counts only up to pairs with t_j - t_i >= B. It counts nothing if no such pair exists, and too little at the end.

    Args:
        ends: t_0 < t_1 < ...

    >>> most_span([1, 2, 3], 10), most_span([0, 10, 11, 12, 13], 9), most_span([12], 13)
    (3, 4, 1)
    """
    at_least("span", span, 0)
    at_least("number of ends", len(ends), 1)
    most, first = 1, 0
    for last in range(1, len(ends)):
        if ends[last] <= ends[last - 1]:
            raise ValueError(f"ends must increase, not {ends[last - 1]}, {ends[last]}")
        while first < last and ends[last - 1] - ends[first] >= span:
            first += 1
        most = max(most, last - first + 1)
    return most


def cover_nodes_claimed(branching: int, height: int) -> int:
    """Theorem 4.4: 2 (c - 1) h nodes cover any range of at most c^h windows. True, but never reached for h >= 2.

    >>> cover_nodes_claimed(8, 3)
    42
    """
    return 2 * (branching - 1) * height


def exact_nodes(branching: int, height: int) -> int:
    """Theorem 4.4 made exact: the most nodes in a least cover of a range of at most c^h windows, anywhere in a forest.

    It is c for one layer, 3 for c = h = 2, else 2 (c - 1)(h - 1) + c - 2. Proof: top nodes in the middle, and on either
    side at most c - 1 nodes of each lower layer. Both sides full are 2 c^(h-1) - 2 windows, which leaves room for
    c - 2 top nodes, or one more if c^(h-1) = 2. If they are not full, each node that they lack makes room for at most
    one top node more: c - 1 of them need one less on the sides, c of them leave no sides at all. Reached from window
    2 to c^h - 1 (2 to 5 for c = h = 2). What fails in appendix A is ceil(log_c(r - l)) < h, for r - l > c^(h-1).

    >>> exact_nodes(8, 3)
    34
    """
    layer_sizes(branching, height, None)
    if height == 1:
        return branching
    if branching == height == 2:
        return 3
    return 2 * (branching - 1) * (height - 1) + branching - 2


def least_height_claimed(leaves: int, branching: int) -> int:
    """Theorems 4.7 to 4.9: ceil(log_c(W / T)) layers, T the length of a leaf. None for a window of one leaf: no noise.

    >>> least_height_claimed(1, 2)
    0
    """
    at_least("leaves", leaves, 1)
    at_least("branching", branching, 2)
    height = 0
    while branching**height < leaves:
        height += 1
    return height


def least_height(leaves: int, branching: int) -> int:
    """Number of layers by `least_height_claimed`, but at least one, the layer of leaves.

    >>> least_height(1, 2), least_height(8, 2), least_height(9, 2)
    (1, 3, 4)
    """
    return max(1, least_height_claimed(leaves, branching))


def derived_wins_claimed(width: int, every: int, branching: int) -> bool:
    """Equation 22: sliding windows from a tree need less noise than direct ones if 2 (c - 1) h^3 < (W / P)^2.

    Sufficient (for pure epsilon and h >= 1), but too strict: with 7 windows over each moment and c = 2 it is False.

    >>> derived_wins_claimed(7, 1, 2), derived_wins(7, 1, 2, definition="pure")
    (False, True)
    """
    height = least_height_claimed(_leaves(width, every), branching)
    return cover_nodes_claimed(branching, height) * height**2 * every**2 < width**2


def derived_wins(width: int, every: int, branching: int, *, definition: Literal["pure", "zcdp"], span: int = 0) -> bool:
    """Whether sliding windows from a tree of least height have less variance than direct ones, for every query.

    One change meets h nodes of the tree, or ceil(W / P) sliding windows, and k changes k times as many of either
    (theorem 4.8). Changes within B meet `time_bounded_nodes`, or ceil((W + B) / P) windows (theorem 4.9; B = 0 is one
    change). The variance of a node grows with the square of that number for pure epsilon and in proportion to it for
    zCDP; a window from the tree sums up to `exact_nodes`. Windows of one length may need fewer, and linear queries
    less noise, so the planner compares exact variances instead.

    Args:
        width, every, span: W, P and B.

    >>> derived_wins(7, 1, 2, definition="zcdp"), derived_wins(90, 1, 2, definition="zcdp")
    (False, True)
    """
    leaf = math.gcd(width, every)
    height = least_height(_leaves(width, every), branching)
    tree = time_bounded_nodes(span, leaf, branching=branching, height=height)
    direct = sliding_windows_met(width, every, span=span)
    if definition == "pure":
        return tree**2 * exact_nodes(branching, height) < direct**2
    return tree * exact_nodes(branching, height) < direct


def sliding_windows_met(width: int, every: int, *, span: int = 0) -> int:
    """Theorems 4.5 and 4.6: at most ceil((W + B) / P) sliding windows hold a time of [s, s + B]; correct, and reached.

    Windows that hold a time from s to s + B end in [s, s + B + W). For one change B = 0; k changes meet k times this
    number. Two people differ in twice this number of reports (corollaries 5.4 and 5.5), or in all reports.

    >>> sliding_windows_met(30, 7), sliding_windows_met(30, 7, span=14)
    (5, 7)
    """
    _leaves(width, every)
    at_least("span", span, 0)
    return -(-(width + span) // every)


def _windows(span: int, window: int) -> int:
    """Return ceil(B / W)."""
    at_least("span", span, 0)
    at_least("window", window, 1)
    return -(-span // window)


def _leaves(width: int, every: int) -> int:
    """Return the number of leaves in a sliding window, if all windows begin and end with a leaf."""
    at_least("width", width, 1)
    at_least("every", every, 1)
    return width // math.gcd(width, every)
