"""Norms of the columns of a matrix over cells, and the largest distance of two of them.

A matrix S has the column S e_c for each cell c, and each of its rows has one weight for all cells that it contains. For
two cells a and b and a power p (1 for L1, 2 for squared L2) let

    A, B    sums of the weights to the power p over the rows that contain a, and over those that contain b
    M       this sum over the rows that contain both

Values x in a and y in b then differ in A - M rows by |x|^p, in B - M by |y|^p and in M by |x - y|^p: linear in (A, B,
M). For a product of matrices over several axes A, B and M are products of those of the axes. So a function that is
linear in them is linear in each axis' triple, and is largest at a corner of the hull of the triples of the axis. An
axis returns only such corners.
"""

import math
from collections.abc import Iterable
from itertools import product

Corner = tuple[int, int, int]
"""(A, B, M)."""


def products(corners: Iterable[tuple[Corner, ...]]) -> set[Corner]:
    """Return the corners of a product of axes from the corners of each axis.

    >>> sorted(products([((1, 1, 0), (1, 1, 1)), ((3, 3, 1), (3, 3, 3))]))
    [(3, 3, 0), (3, 3, 1), (3, 3, 3)]
    """
    found = set()
    for each in product(*corners):
        first, second, both = zip(*each, strict=True)
        found.add((math.prod(first), math.prod(second), math.prod(both)))
    return found
