"""Strategies over cells: which sums over the cells of a window get noise, and how each cell is made from them.

A strategy over cells is a matrix S of small whole numbers, nodes by cells: for several axes the Kronecker product of
one matrix for each. It multiplies with a strategy in time: leaves x, [windows, cells], become x S^T, and each column of
that goes through the strategy in time as a cell does without. What is published of the nodes of cells is turned into
cells by least squares, (S^T S)^-1 S^T, which is post-processing. The variance of a number is that in time times q (S^T
S)^-1 q^T for the cells' linear query q.

An entry with value v in cell c has the state v S e_c: all that strategies in time need of it are its largest norm and
the largest distance of two (privacy.cells.corners, privacy.states). Where one state's values lie apart, or several
entries', S does as well in each of its *blocks*: sets of rows that share no cell, such as a layer of a tree. The
squares of the blocks' weights add up to the squared norm of the largest column (docs/proofs/cells.md#blocks).

All of it is linear in the nodes, and no dense matrix is ever made.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from privacy.cells.along import Along
from privacy.cells.averages import Workload
from privacy.cells.boxes import Range, of_boxes
from privacy.cells.corners import Corner, products
from privacy.cells.layers import Layers
from privacy.cells.mixed import Mixed
from privacy.cells.prefixes import Prefixes
from privacy.cells.quadtree import Quadtree
from privacy.cells.sums import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A strategy over cells: one strategy for each axis, the last axis running fastest; or one for all of them.

    Attributes:
        workload: for each axis, which queries are averaged over; empty: each cell.
        listed: for each sum that is asked for, its cells along each axis, None on one without an order: the mean over
            these then counts as much as that over the workload.

    >>> both = Product(axes=(Layers(cells=2), Layers(cells=4, sizes=(1, 2), weights=(1, 1))))
    >>> both.cells, both.nodes, both.spread(np.arange(8)).tolist()
    (8, 12, [0, 1, 2, 3, 1, 5, 4, 5, 6, 7, 9, 13])
    """

    axes: tuple[Along, ...]
    workload: tuple[Workload, ...] = ()
    listed: tuple[tuple[Range | None, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.axes:
            raise ValueError("axes: at least one")
        if self.workload and len(self.workload) != len(self.axes):
            raise ValueError(f"workload={self.workload}: one for each of {len(self.axes)} axes")
        for box in self.listed:
            if len(box) != len(self.shape) or not all(map(_inside, box, self.shape)):
                raise ValueError(f"listed={box}: neighbouring cells along each of {len(self.shape)} axes, or None")

    @property
    def cells(self) -> int:
        return math.prod(axis.cells for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis of the query."""
        first = self.axes[0]
        return first.shape if isinstance(first, Quadtree) else tuple(axis.cells for axis in self.axes)

    @property
    def nodes(self) -> int:
        return math.prod(axis.nodes for axis in self.axes)

    @property
    def filled(self) -> int:
        """In how many nodes a cell is, at most."""
        return math.prod(axis.filled for axis in self.axes)

    @property
    def trivial(self) -> bool:
        """Whether each cell has noise of its own, so that nothing is gathered."""
        return all(axis.name == "each" for axis in self.axes)

    @property
    def blocks(self) -> bool:
        """Whether its rows fall into blocks."""
        return all(axis.blocks for axis in self.axes)

    def corners(self, power: int, apart: tuple[int, ...] | None = None) -> tuple[Corner, ...]:
        """Of two cells; `apart`: at most so far from each other along each axis."""
        steps = (None,) * len(self.axes) if apart is None else apart
        return tuple(sorted(products(a.corners(power, step) for a, step in zip(self.axes, steps, strict=True))))

    def spread(self, values: Ints) -> Ints:
        """[.., cells] to [.., nodes]."""
        found: Ints = self._walked(values, [axis.cells for axis in self.axes], [axis.spread for axis in self.axes])
        return found

    def gather(self, nodes: Floats) -> Floats:
        """[.., nodes] to [.., cells]: the best linear estimate of the cells."""
        found: Floats = self._walked(nodes, [axis.nodes for axis in self.axes], [axis.gather for axis in self.axes])
        return found

    def solve(self, queries: Floats) -> Floats:
        """[.., cells] to [.., cells]: the covariance of a linear query's estimate with those of the cells."""
        found: Floats = self._walked(queries, [axis.cells for axis in self.axes], [axis.solve for axis in self.axes])
        return found

    def least_precisions(self) -> Floats:
        """Of each cell, [cells]: S^T S with these taken from its diagonal has no eigenvalue below 0."""
        return _multiplied(axis.least_precisions() for axis in self.axes)

    def variance(self, query: Floats) -> float:
        """Of a linear query, [cells], where the noise of a node has variance 1."""
        return float(query @ self.solve(query))

    def covariance(self, one: Floats, other: Floats) -> float:
        """Of two linear queries, [cells] each."""
        return float(one @ self.solve(other))

    def variances(self) -> Floats:
        """Of each cell, [cells]."""
        return _multiplied(axis.variances() for axis in self.axes)

    def weights(self) -> Ints:
        """Of each node, [nodes]."""
        found = np.ones(1, dtype=np.int64)
        for axis in self.axes:
            found = np.multiply.outer(found, axis.of_nodes()).ravel()
        return found

    def average(self) -> float:
        """The mean variance of the workload: of all products of queries along the axes; and of what is listed."""
        return _average(self)

    @property
    def name(self) -> str:
        """In the spec's words, for people.

        >>> Product(axes=(Layers(cells=3), Layers(cells=4, sizes=(1, 2), weights=(2, 1)))).name
        'each x tree 2, weights 2 1'
        """
        return " x ".join(_described(axis) for axis in self.axes)

    def _walked(self, values: Any, sizes: list[int], steps: list[Callable[[Any], Any]]) -> Any:
        """Each axis' step along its own dimension."""
        grid = values.reshape(*values.shape[:-1], *sizes)
        for place, step in enumerate(steps, start=-len(steps)):
            grid = np.moveaxis(step(np.moveaxis(grid, place, -1)), -1, place)
        return grid.reshape(*values.shape[:-1], math.prod(grid.shape[-len(steps) :]))


def _multiplied(of_axes: Iterable[Floats]) -> Floats:
    """Numbers of all cells, [cells], from those along each axis."""
    found = np.ones(1)
    for along in of_axes:
        found = np.multiply.outer(found, along).ravel()
    return found


def _inside(cells: Range | None, size: int) -> bool:
    return cells is None or 0 <= cells[0] < cells[1] <= size


@lru_cache(maxsize=256)
def _average(product: Product) -> float:
    cells: Workload = "cells"
    asked = product.workload or (cells,) * len(product.axes)
    found = 1.0
    for axis, workload in zip(product.axes, asked, strict=True):
        found *= axis.average(workload)
    if not product.listed:
        return found
    return (found + float(of_boxes(product.listed, product.axes).squares.mean())) / 2


KINDS: dict[str, type[Layers] | type[Prefixes] | type[Mixed] | type[Quadtree]] = {
    kind.kind: kind for kind in (Layers, Prefixes, Mixed, Quadtree)
}


def _described(axis: Along) -> str:
    steps = axis.parameters.get("branching", "")
    weights = axis.parameters.get("weights")
    text = f"{axis.name} {steps}".strip()
    return text if weights is None else f"{text}, weights {' '.join(map(str, weights))}"
