"""Intersections of blocks of cells, and sums over them in two walks: least squares without a dense matrix.

A block keeps some axes and adds up over the others. P_K adds up over the axes that K does not keep and repeats the sum;
N_K is the number of cells in each of these sums. A symmetric matrix with the eigenvalue l_B on each residual space R_B
(privacy.cells.marginals), where l_B depends only on the smallest intersection that contains B, has the inverse

    sum over intersections K of y_K P_K,    1 / l_B = sum over K that contain B of y_K N_K

It is applied in two walks: each K gets its sums from the smallest larger intersection, and gives its result back to
it. The largest array is the table itself.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privacy.cells.sums import Floats, Ints

Kept = tuple[int, ...]
"""Axes that a block keeps, increasing."""


def intersections(kept: Iterable[Kept]) -> list[Kept]:
    """Return all intersections of blocks, larger ones before those that they contain.

    >>> intersections([(0, 1, 2), (0, 1), (1, 2)])
    [(0, 1, 2), (0, 1), (1, 2), (1,)]
    """
    found: set[frozenset[int]] = set()
    for block in map(frozenset, kept):
        found |= {block} | {block & other for other in found}
    return sorted((tuple(sorted(one)) for one in found), key=lambda one: (-len(one), one))


def boxes_of(shape: Sequence[int], kept: Sequence[Kept]) -> list[tuple[Ints, Ints]]:
    """Return, for each axis, the first cell of each node of some blocks and the cell after its last one, [nodes] each.

    Args:
        shape: number of cells of each axis.
        kept: axes that each block keeps.

    >>> [[edges.tolist() for edges in axis] for axis in boxes_of((2, 3), [(0,), ()])]
    [[[0, 1, 0], [1, 2, 2]], [[0, 0, 0], [3, 3, 3]]]
    """
    found = []
    for axis, size in enumerate(shape):
        begins: list[Ints] = []
        ends: list[Ints] = []
        for block in kept:
            sides = [shape[one] for one in block]
            if axis in block:
                begin = np.indices(sides)[block.index(axis)].ravel()
                begins, ends = [*begins, begin], [*ends, begin + 1]
            else:
                nodes = math.prod(sides)
                begins, ends = [*begins, np.zeros(nodes, dtype=np.int64)], [*ends, np.full(nodes, size)]
        found.append((np.concatenate(begins).astype(np.int64), np.concatenate(ends).astype(np.int64)))
    return found


@dataclass(frozen=True, slots=True)
class Walk:
    """Intersections of blocks as a tree below the table of all cells.

    Attributes:
        shape: number of cells of each axis.
        closed: axes of each intersection; all axes first.
        above: place of the smallest larger intersection, of which each one is a sum; -1 for the table.
        shares: y of each intersection.
    """

    shape: tuple[int, ...]
    closed: list[Kept]
    above: list[int]
    shares: list[float]

    @property
    def variance(self) -> float:
        """Variance of a cell, if the noise of a node has variance 1; it is that of all cells."""
        return sum(self.shares)

    def place(self, kept: Kept) -> int:
        return self.closed.index(kept)

    def nodes(self, place: int) -> int:
        """Return the number of nodes of an intersection."""
        return math.prod(self.shape[axis] for axis in self.closed[place])

    def up(self, values: Any) -> list[Any]:
        """Return the sums of each intersection, [.., nodes of it], of cells [.., cells].

        Sums run along the last dimension of contiguous arrays: rounding is equal for any number of rows.
        """
        lead, sums = values.shape[:-1], [values]
        for place, (kept, above) in enumerate(zip(self.closed[1:], self.above[1:], strict=True), start=1):
            over = self.closed[above]
            grid = sums[above].reshape(*lead, *(self.shape[axis] for axis in over))
            added = [at - len(over) for at, axis in enumerate(over) if axis not in kept]
            last = np.ascontiguousarray(np.moveaxis(grid, added, range(-len(added), 0)))
            nodes, each = self.nodes(place), self.nodes(above) // self.nodes(place)
            sums.append(last.reshape(*lead, nodes, each).sum(axis=-1))
        return sums

    def solve(self, queries: Floats) -> Floats:
        """Return (S^T S)^-1 times queries: float64 [.., cells] to [.., cells]."""
        return self.down([share * sums for share, sums in zip(self.shares, self.up(queries), strict=True)])

    def down(self, parts: list[Floats | None]) -> Floats:
        """Return cells [.., cells]: the sum of the parts of all intersections, repeated; None: no part."""
        found = list(parts)
        for place in reversed(range(1, len(self.closed))):
            own, above = found[place], self.above[place]
            if own is None:
                continue
            over, lead = self.closed[above], own.shape[:-1]
            sides = [self.shape[axis] if axis in self.closed[place] else 1 for axis in over]
            whole = (*lead, *(self.shape[axis] for axis in over))
            larger, repeated = found[above], np.broadcast_to(own.reshape(*lead, *sides), whole)
            total = repeated if larger is None else larger.reshape(whole) + repeated
            found[above] = total.reshape(*lead, self.nodes(above))
        cells = found[0]
        assert cells is not None
        return cells


def walk_of(shape: Sequence[int], closed: list[Kept], values: Sequence[float]) -> Walk:
    """Return the walk for a matrix with these eigenvalues.

    Args:
        shape: number of cells of each axis.
        closed: intersections, larger ones first.
        values: eigenvalue for each intersection: on the residual spaces that it is the smallest one to contain.
    """
    sets, above = [set(one) for one in closed], [-1]
    for place in range(1, len(closed)):
        larger = [other for other in range(place) if sets[other] > sets[place]]
        above.append(min(larger, key=lambda other: math.prod(shape[axis] for axis in closed[other])))
    summed = [math.prod(size for axis, size in enumerate(shape) if axis not in one) for one in sets]
    shares: list[float] = []
    for place, one in enumerate(sets):
        rest = math.fsum(shares[other] * summed[other] for other in range(place) if sets[other] > one)
        shares.append((1 / values[place] - rest) / summed[place])
    return Walk(tuple(shape), closed, above, shares)
