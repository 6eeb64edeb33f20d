"""Residuals: single cells and weighted contrasts of marginals, which have weights of both signs.

A marginal also measures every marginal that it contains. If only marginals of two keys are published, their blocks
(privacy.cells.marginals) measure the total better than anybody needs. Residuals measure each part of a marginal alone.
For a set B of axes, with n_i cells each, S has a node for each row of the marginal by B. It is a contrast: for one axis
n_i times the row's sum less the total, and a product of such contrasts along all axes of B; for no axis, the total:

    rows of B = w_B times the product of (n_i I - 1 1^T) along the axes in B and of 1^T along the others

n I - 1 1^T has the eigenvalue n on vectors of sum 0, and 0 on constants. So the rows of B are 0 on all residual spaces
but R_B. With single cells of weight w_0, n_B the number of rows of B, and N that of all cells, S^T S has there

    l_B = w_0^2 + w_B^2 n_B N

which gives least squares in two walks (privacy.cells.intersections). The sets B are all subsets of some marginals.

*Columns.* Columns of n I - 1 1^T have the inner product n (n - 1) with themselves, and -n with each other. So all
columns of S have one norm, and two columns have an inner product that depends only on the axes on which they agree:

    w_0^2 if all agree + sum over B of w_B^2 times the product over i in B of n_i (n_i - 1) or -n_i

Corners hold it for p = 2, as for privacy.cells.mixed; it may be negative. For p = 1 different cells are charged as
columns with nothing in common, which is enough for columns of any signs (docs/proofs/cells.md#residuals). Rows share
cells, so the strategy has no blocks and cannot be used for a span of time.

Source: Xiao, He, Zhang, Kifer, arXiv:2305.08175 (ResidualPlanner), whose residuals have one row less along each axis
and correlated noise; the same precision from rows of whole numbers with independent noise is written for this project.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privacy.cells.averages import Workload
from privacy.cells.corners import Corner
from privacy.cells.intersections import Kept, Walk, boxes_of, intersections, walk_of
from privacy.cells.sums import Floats, Ints

HEAVIEST = 2**20
"""Largest weight of a cell in a node: sums of a trillion units stay within 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """Strategy for all axes of a query at once (privacy.cells.base.Along).

    Attributes:
        shape: number of cells of each axis.
        kept: axes of the cells (all axes), and of each set of contrasts, with all of its subsets.
        weights: weight of the cells, and of each set of contrasts.

    >>> table = Residuals(shape=(2, 3), kept=((0, 1), (0,), ()), weights=(1, 1, 2))
    >>> table.spread(np.arange(6)).tolist()
    [0, 1, 2, 3, 4, 5, -9, 9, 30]
    >>> table.gather(table.spread(np.arange(6)).astype(float)).round(9).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """

    kind: ClassVar[str] = "residuals"
    name: ClassVar[str] = "residuals"
    blocks: ClassVar[bool] = False
    trivial: ClassVar[bool] = False
    shape: tuple[int, ...]
    kept: tuple[Kept, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        every = tuple(range(len(self.shape)))
        if not self.shape or min(self.shape) < 1:
            raise ValueError(f"shape={self.shape}: at least one axis, each with at least one cell")
        if not self.kept or self.kept[0] != every or len(set(self.kept)) < len(self.kept):
            raise ValueError(f"kept={self.kept}: all axes first, and each set once")
        for one in self.kept[1:]:
            if any(axis not in every or self.shape[axis] < 2 for axis in one) or one != tuple(sorted(set(one))):
                raise ValueError(f"kept={self.kept}: increasing numbers of axes of at least two cells")
            if any(tuple(a for a in one if a != axis) not in self.kept for axis in one):
                raise ValueError(f"kept={self.kept}: all subsets of {one}, too")
        if len(self.weights) != len(self.kept) or min(self.weights) < 1 or self.heaviest > HEAVIEST:
            raise ValueError(f"weights={self.weights}: for each of {len(self.kept)} sets, nodes up to {HEAVIEST:,}")

    @property
    def parameters(self) -> dict[str, Any]:
        return {"residuals": len(self.kept) - 1, "weights": list(self.weights)}

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of nodes of each set."""
        return tuple(math.prod(self.shape[axis] for axis in kept) for kept in self.kept)

    @property
    def matrix(self) -> "Residuals":
        return self

    @property
    def nodes(self) -> int:
        return sum(self.counts)

    @property
    def filled(self) -> int:
        """Number of nodes that each cell is in: its own one, and all contrasts."""
        return 1 + sum(self.counts[1:])

    @property
    def heaviest(self) -> int:
        """Bound on the weight of a cell in a node, also while a contrast is computed."""
        return max([self.weights[0], *(w * n for w, n in zip(self.weights[1:], self.counts[1:], strict=True))])

    def least_precisions(self) -> Floats:
        return np.full(self.cells, float(self.weights[0] ** 2))

    def layer(self) -> Ints:
        return np.repeat(np.arange(len(self.kept)), self.counts)

    def of_nodes(self) -> Ints:
        """Return the weight of each contrast, int64 [nodes]."""
        return np.repeat(self.weights, self.counts)

    def boxes(self) -> list[tuple[Ints, Ints]]:
        """Return the first and last cells of the rows that contrasts belong to; a contrast holds other cells, too."""
        return boxes_of(self.shape, self.kept)

    def corners(self, power: int, apart: int | None = None) -> tuple[Corner, ...]:
        """Return the corners of the least inner product of two cells' columns, and of one cell twice."""
        norm, least = _norm(self, power), _least(self) if power == 2 else 0
        if self.cells == 1 or apart == 0:
            return ((norm, norm, norm),)
        return ((norm, norm, least), (norm, norm, norm))

    def spread(self, values: Ints) -> Ints:
        """Return S times values: int64 [.., cells] to [.., nodes]."""
        walk = _walk(self)
        sums = walk.up(values)
        found = [weight * self._contrasts(sums[walk.place(kept)], kept) for kept, weight in self._sets()]
        return np.concatenate([self.weights[0] * values, *found], axis=-1)

    def gather(self, nodes: Floats) -> Floats:
        """Return the least-squares estimates of cells: [.., nodes] to [.., cells]."""
        walk = _walk(self)
        cells, *given = np.split(nodes, np.cumsum(self.counts)[:-1], axis=-1)
        parts: list[Floats | None] = [None] * len(walk.closed)
        parts[0] = self.weights[0] * cells
        for (kept, weight), own in zip(self._sets(), given, strict=True):
            parts[walk.place(kept)] = weight * self._contrasts(own, kept)
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

    def _sets(self) -> Iterator[tuple[Kept, int]]:
        return zip(self.kept[1:], self.weights[1:], strict=True)

    def _contrasts(self, rows: Any, kept: Kept) -> Any:
        """Return contrasts of the rows of a marginal [.., rows]; sums run along contiguous dimensions, as in walks."""
        sides = [self.shape[axis] for axis in kept]
        grid = rows.reshape((*rows.shape[:-1], *sides))
        for place, size in enumerate(sides, start=-len(sides)):
            along = np.ascontiguousarray(np.moveaxis(grid, place, -1))
            grid = np.moveaxis(size * along - along.sum(axis=-1, keepdims=True), -1, place)
        return grid.reshape(rows.shape)


def products(shape: Sequence[int], kept: Sequence[Kept], agreeing: Sequence[bool]) -> list[int]:
    """Return inner products of the contrasts of two cells, divided by the number of contrasts, for each set of axes.

    Args:
        shape: number of cells of each axis.
        kept: axes of each set of contrasts.
        agreeing: whether the two cells agree, for each axis.

    >>> products((2, 3), [(0,), (1,), (0, 1), ()], [True, False])
    [1, -1, -1, 1]
    """
    of_axis = [size - 1 if same else -1 for size, same in zip(shape, agreeing, strict=True)]
    return [math.prod(of_axis[axis] for axis in one) for one in kept]


def disagreements(shape: Sequence[int]) -> Iterator[tuple[bool, ...]]:
    """Yield on which axes two different cells can agree.

    >>> list(disagreements((2, 1)))
    [(False, True)]
    """
    several = [axis for axis, size in enumerate(shape) if size > 1]
    for number in range(2 ** len(several) - 1):
        apart = {axis for bit, axis in enumerate(several) if not number >> bit & 1}
        yield tuple(axis not in apart for axis in range(len(shape)))


def _norm(table: Residuals, power: int) -> int:
    """Return the norm of each column to a power."""
    sides = [[table.shape[axis] for axis in kept] for kept in table.kept[1:]]
    each = [math.prod((n - 1) ** power + n - 1 for n in one) for one in sides]
    pairs = [(table.weights[0], 1), *zip(table.weights[1:], each, strict=True)]
    norm: int = sum(weight**power * n for weight, n in pairs)
    return norm


@lru_cache(maxsize=64)
def _least(table: Residuals) -> int:
    """Return the least inner product of the columns of two different cells."""
    squares = [w * w * n for w, n in zip(table.weights[1:], table.counts[1:], strict=True)]
    each = (products(table.shape, table.kept[1:], agreeing) for agreeing in disagreements(table.shape))
    least: int = min(sum(square * n for square, n in zip(squares, one, strict=True)) for one in each)
    return least


@lru_cache(maxsize=64)
def _walk(table: Residuals) -> Walk:
    closed, weights = intersections(table.kept), dict(zip(table.kept, table.weights, strict=True))
    counts, alone = dict(zip(table.kept, table.counts, strict=True)), table.weights[0] ** 2
    values = [alone, *(alone + weights[one] ** 2 * counts[one] * table.cells for one in closed[1:])]
    return walk_of(table.shape, closed, values)
