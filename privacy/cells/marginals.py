"""Weighted marginals: sums over some axes of a table of listed cells, each with its own noise.

A block (privacy.cells.blocks) keeps some axes and adds up over the others: all axes (the cells), some (a marginal), or
none (the total). S has the nodes of a few blocks, those of block A with the weight w_A.

*Least squares.* Let n_i be the number of cells of axis i, N_A the product of the n_i of the axes that A does *not*
keep, and P_A the matrix that adds up over these axes and repeats the sum. Along one axis, the identity and the matrix
of ones have the same two eigenspaces: constants, and vectors of sum 0. So all P_A commute. For each set B of axes, let
R_B be the product of the vectors of sum 0 along the axes in B and of constants along the others (the *residual* space
of B). P_A has the eigenvalue N_A on R_B if A contains B, and 0 otherwise, hence

    S^T S = sum of w_A^2 P_A  has on R_B  the eigenvalue  l_B = sum over A that contain B of w_A^2 N_A.

l_B depends only on the smallest intersection of blocks that contains B. So the inverse is a sum over these
intersections K, with the numbers y_K for which 1 / l_B = sum over K that contain B of y_K N_K:

    (S^T S)^-1 = sum of y_K P_K

It is applied in two walks (privacy.cells.intersections). No dense matrix is built.

Source of the residual spaces: Xiao, He, Zhang, Kifer, "An Optimal and Scalable Matrix Mechanism for Noisy Marginals
under Convex Loss Functions" (ResidualPlanner), arXiv:2305.08175. Blocks with weights >= 0 in place of residuals, and
the inverse over intersections, are written for this project.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privacy.cells.averages import Workload
from privacy.cells.blocks import Blocks
from privacy.cells.intersections import Kept, Walk, boxes_of, intersections, walk_of
from privacy.cells.sums import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginals:
    """Strategy for all axes of a query at once (privacy.cells.base.Along).

    Attributes:
        shape: number of cells of each axis.
        kept: axes that each block keeps; all axes first.
        weights: weight of each block.

    >>> table = Marginals(shape=(2, 3), kept=((0, 1), (0,), ()), weights=(1, 1, 2))
    >>> table.spread(np.arange(6)).tolist()
    [0, 1, 2, 3, 4, 5, 3, 12, 30]
    >>> table.gather(table.spread(np.arange(6)).astype(float)).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """

    kind: ClassVar[str] = "marginals"
    name: ClassVar[str] = "marginals"
    blocks: ClassVar[bool] = True
    trivial: ClassVar[bool] = False
    shape: tuple[int, ...]
    kept: tuple[Kept, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        every = tuple(range(len(self.shape)))
        if not self.shape or min(self.shape) < 1:
            raise ValueError(f"shape={self.shape}: at least one axis, each with at least one cell")
        if not self.kept or self.kept[0] != every or len(set(self.kept)) < len(self.kept):
            raise ValueError(f"kept={self.kept}: all axes first, and each block once")
        if any(one != tuple(sorted(set(one) & set(every))) for one in self.kept):
            raise ValueError(f"kept={self.kept}: increasing numbers of axes below {len(every)}")
        if len(self.weights) != len(self.kept) or min(self.weights) < 1:
            raise ValueError(f"weights={self.weights}: one above 0 for each of {len(self.kept)} blocks")

    @property
    def parameters(self) -> dict[str, Any]:
        return {"blocks": len(self.kept), "weights": list(self.weights)}

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of nodes of each block."""
        return tuple(math.prod(self.shape[axis] for axis in kept) for kept in self.kept)

    @property
    def matrix(self) -> Blocks:
        return Blocks(self.counts, self.weights)

    def boxes(self) -> list[tuple[Ints, Ints]]:
        """Return the first and last cells of nodes; a node of a block has all cells of the axes that it adds up."""
        return boxes_of(self.shape, self.kept)

    def spread(self, values: Ints) -> Ints:
        """Return S times values: int64 [.., cells] to [.., nodes]."""
        walk = _walk(self)
        sums = walk.up(values)
        return np.concatenate(
            [weight * sums[walk.place(kept)] for kept, weight in zip(self.kept, self.weights, strict=True)], axis=-1
        )

    def gather(self, nodes: Floats) -> Floats:
        """Return the least-squares estimates of cells: [.., nodes] to [.., cells]."""
        walk = _walk(self)
        given = dict(zip(self.kept, np.split(nodes, np.cumsum(self.counts)[:-1], axis=-1), strict=True))
        weight = dict(zip(self.kept, self.weights, strict=True))
        parts = [weight[one] * given[one] if one in given else None for one in walk.closed]
        return walk.solve(walk.down(parts))

    def solve(self, queries: Floats) -> Floats:
        """Return (S^T S)^-1 times queries: float64 [.., cells] to [.., cells]."""
        return _walk(self).solve(queries)

    def variances(self) -> Floats:
        """Return the variance of each cell, float64 [cells], if the noise of a node has variance 1; all are equal."""
        return np.full(self.cells, _walk(self).variance)

    def average(self, workload: Workload) -> float:
        """Return the variance of a cell; there are no prefixes and ranges without an order.

        Raises:
            ValueError: the workload is not `cells`.
        """
        if workload != "cells":
            raise ValueError(f"{workload}: cells of listed keys have no order")
        return _walk(self).variance


@lru_cache(maxsize=64)
def _walk(table: Marginals) -> Walk:
    closed, values = intersections(table.kept), []
    for one in map(set, closed):
        own = (block for block in zip(table.kept, table.weights, table.counts, strict=True) if one <= set(block[0]))
        values.append(sum(weight**2 * (table.cells // count) for _, weight, count in own))
    return walk_of(table.shape, closed, values)
