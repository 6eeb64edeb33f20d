"""How large the columns of a matrix over cells are, and how far two of them can be from each other.

A matrix S has the column S e_c for each cell c, and each of its rows one weight for all cells that it holds. For two
cells a and b and a power p (1 for L1, 2 for squared L2) let

    A, B    sums of the weights to the power p over the rows that hold a, that hold b
    M       the same over the rows that hold both

Values x in a and y in b then differ in A - M rows by |x|^p, in B - M by |y|^p and in M by |x - y|^p: linear in (A, B,
M). For a product of matrices over several axes A, B and M are products of those of the axes, so what is linear in them
is linear in each axis' triple, and the largest at a corner of the hull of the triples that the axis has. An axis gives
such corners alone.
"""

import math
from collections.abc import Iterable
from itertools import product

Corner = tuple[int, int, int]
"""(A, B, M)."""


def products(corners: Iterable[tuple[Corner, ...]]) -> set[Corner]:
    """Of all axes.

    >>> sorted(products([((1, 1, 0), (1, 1, 1)), ((3, 3, 1), (3, 3, 3))]))
    [(3, 3, 0), (3, 3, 1), (3, 3, 3)]
    """
    found = set()
    for each in product(*corners):
        first, second, both = zip(*each, strict=True)
        found.add((math.prod(first), math.prod(second), math.prod(both)))
    return found
