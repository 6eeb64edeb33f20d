"""Strategies over cells: which sums over the cells of a window get noise, and how each cell is estimated from them.

A strategy over cells is a matrix S of small integers, nodes by cells: for several axes the Kronecker product of one
matrix for each. It multiplies with a strategy in time: leaves x, [windows, cells], become x S^T, and each column of the
result goes through the strategy in time like a cell. Published numbers of the nodes are turned into cells by least
squares, (S^T S)^-1 S^T, which is post-processing. The variance of a number is its variance in time times q (S^T S)^-1
q^T for the linear query q over cells.

An entry with value v in cell c has the state v S e_c: strategies in time need only the largest norm of a state and the
largest distance of two states (privacy.cells.corners, privacy.states). If one state's values lie apart, or those of
several entries do, so do their images under S in each of its *blocks*: sets of rows that share no cell, such as a layer
of a tree. The squares of the blocks' weights add up to the squared norm of the largest column
(docs/proofs/cells.md#blocks).

All operations are linear in the number of nodes, and no dense matrix is ever built.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privacy.cells.averages import Workload
from privacy.cells.base import MEAN_SIZE, Along, FreshNoise, Pick, Reading, whole
from privacy.cells.boxes import Range, of_boxes
from privacy.cells.corners import Corner, products
from privacy.cells.sums import Floats, Ints, exactly_summed
from privacy.columns import Column
from privacy.counted import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """Strategy over cells: one strategy for each axis, the last axis running fastest; or one for all axes.

    Attributes:
        axes: the strategies along the axes.
        workload: for each axis, the queries that are averaged over; empty: single cells.
        listed: cells of each requested sum along each axis, None on an axis without an order: the mean over these sums
            then has the same weight as the mean over the workload.
        shares: weights of the mean over the workload and of each listed sum in place of these; empty: none.

    >>> from privacy.cells.layers import Layers
    >>> both = Product(axes=(Layers(cells=2), Layers(cells=4, sizes=(1, 2), weights=(1, 1))))
    >>> both.cells, both.nodes, both.spread(np.arange(8)).tolist()
    (8, 12, [0, 1, 2, 3, 1, 5, 4, 5, 6, 7, 9, 13])
    """

    kind: ClassVar[str] = "product"
    rounds: ClassVar[int] = 0
    share: ClassVar[float] = 0.0
    alone: ClassVar[bool] = False
    columns: ClassVar[tuple[Column, ...]] = ()
    premise: ClassVar[str | None] = None
    unsummed: ClassVar[str | None] = None
    sentence: ClassVar[str] = ""
    of: ClassVar[str] = ""
    axes: tuple[Along, ...]
    workload: tuple[Workload, ...] = ()
    listed: tuple[tuple[Range | None, ...], ...] = ()
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.axes:
            raise ValueError("axes: at least one")
        if self.workload and len(self.workload) != len(self.axes):
            raise ValueError(f"workload={self.workload}: one for each of {len(self.axes)} axes")
        if self.shares and len(self.shares) != 1 + len(self.listed):
            raise ValueError(f"shares={self.shares}: one for the workload and one for each of {len(self.listed)} sums")
        for box in self.listed:
            if len(box) != len(self.shape) or not all(map(_inside, box, self.shape)):
                raise ValueError(f"listed={box}: neighbouring cells along each of {len(self.shape)} axes, or None")

    @property
    def cells(self) -> int:
        return math.prod(axis.cells for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each axis of the query."""
        return tuple(size for axis in self.axes for size in axis.shape)

    def of_axis(self, place: int) -> Along:
        """Return the strategy along an axis of the query, which may be along others, too."""
        return [axis for axis in self.axes for _ in axis.shape][place]

    @property
    def nodes(self) -> int:
        return math.prod(axis.matrix.nodes for axis in self.axes)

    @property
    def filled(self) -> int:
        """Largest number of nodes that one cell is in."""
        return math.prod(axis.matrix.filled for axis in self.axes)

    @property
    def heaviest(self) -> int:
        """Largest weight of a cell in a node."""
        return math.prod(axis.matrix.heaviest for axis in self.axes)

    @property
    def trivial(self) -> bool:
        """Whether each cell has its own noise, so that nothing is gathered."""
        return all(axis.trivial for axis in self.axes)

    @property
    def blocks(self) -> bool:
        """Whether its rows fall into blocks."""
        return all(axis.blocks for axis in self.axes)

    def corners(self, power: int, apart: tuple[int, ...] | None = None) -> tuple[Corner, ...]:
        """Return the corners of two cells; `apart`: largest distance between them along each axis of the query."""
        found, far = [], iter(apart or ())
        for axis in self.axes:
            step = None if apart is None else max([next(far) for _ in axis.shape])
            found.append(axis.matrix.corners(power, step))
        return tuple(sorted(products(found)))

    def spread(self, values: Ints) -> Ints:
        """Return S times values: int64 [.., cells] to [.., nodes].

        Raises:
            OverflowError: a sum may exceed 64 bits, so that it would say nothing of the cells.
        """
        sizes = np.abs(values, dtype=np.float64).sum(axis=-1)
        if sizes.max(initial=0.0) * self.heaviest >= 2.0**62:
            raise OverflowError("weighted sums over cells exceed 2^62 steps; use a coarser grid or fewer cells")
        found: Ints = self._walked(values, [axis.cells for axis in self.axes], [axis.spread for axis in self.axes])
        return found

    def gather(self, nodes: Floats) -> Floats:
        """Return the best linear estimates of cells [.., cells] from nodes [.., nodes]; sums of them are exact."""
        sizes = [axis.matrix.nodes for axis in self.axes]
        found: Floats = self._walked(nodes, sizes, [axis.gather for axis in self.axes])
        return found if self.trivial else exactly_summed(found)

    def solve(self, queries: Floats) -> Floats:
        """Return the covariance of a linear query's estimate with those of the cells, [.., cells] to [.., cells]."""
        found: Floats = self._walked(queries, [axis.cells for axis in self.axes], [axis.solve for axis in self.axes])
        return found

    def least_precisions(self) -> Floats:
        """Values of each cell, float64 [cells]: S^T S minus their diagonal matrix has no eigenvalue below 0."""
        return _multiplied(axis.matrix.least_precisions() for axis in self.axes)

    def variance(self, query: Floats) -> float:
        """Return the variance of a linear query [cells], if the noise of a node has variance 1."""
        return float(query @ self.solve(query))

    def variances(self) -> Floats:
        """Return the variance of each cell, float64 [cells], if the noise of a node has variance 1."""
        return _multiplied(axis.variances() for axis in self.axes)

    def weights(self) -> Ints:
        """Return the weight of each node, int64 [nodes]."""
        found = np.ones(1, dtype=np.int64)
        for axis in self.axes:
            found = np.multiply.outer(found, axis.matrix.of_nodes()).ravel()
        return found

    def average(self) -> float:
        """Return the mean variance of the workload: of all products of queries along the axes, and of listed sums."""
        return _average(self)

    @property
    def linear(self) -> "Product":
        return self

    @property
    def decided(self) -> int:
        return self.cells

    @property
    def settings(self) -> dict[str, Any]:
        return {"cells": self.name}

    def column(self, power: int) -> int:
        return max(norm for norm, _, _ in self.corners(power))

    def sketch(self, level: Ints, pick: Pick, noise: FreshNoise) -> Ints:
        """Return the noisy nodes of a histogram [cells], int64 [nodes]; nothing is picked (`Sketcher.sketch`)."""
        return self.spread(level) + noise(self.nodes)

    def read(self, sketch: Ints) -> Reading:
        """Return the estimates that a sketch, int64 [nodes], gives.

        Raises:
            ValueError: the sketch has another number of nodes.
        """
        if sketch.shape != (self.nodes,):
            raise ValueError(f"a sketch of {counted(len(sketch), 'node')}, and the strategy has {self.nodes}")
        cells = self.gather(sketch.astype(np.float64))
        deviations, mean_norm, root = _noise_of_cells(self)
        return Reading(
            cells=cells,
            deviations=deviations,
            near=whole(cells),
            mean_norm=mean_norm,
            root=root,
        )

    def typical_deviation(self) -> float:
        return math.sqrt(self.average())

    @property
    def name(self) -> str:
        """Name in the spec's words, for people.

        >>> from privacy.cells.layers import Layers
        >>> Product(axes=(Layers(cells=3), Layers(cells=4, sizes=(1, 2), weights=(2, 1)))).name
        'each x tree 2, weights 2 1'
        """
        return " x ".join(_described(axis) for axis in self.axes)

    def _walked(self, values: Any, sizes: list[int], steps: list[Callable[[Any], Any]]) -> Any:
        """Return values after each axis' step along its own dimension."""
        grid = values.reshape(*values.shape[:-1], *sizes)
        for place, step in enumerate(steps, start=-len(steps)):
            grid = np.moveaxis(step(np.moveaxis(grid, place, -1)), -1, place)
        return grid.reshape(*values.shape[:-1], math.prod(grid.shape[-len(steps) :]))


@lru_cache(maxsize=8)
def _noise_of_cells(product: Product) -> tuple[Floats, float, float]:
    """Return deviations of cells, [cells], the mean L1 norm of their noise, and the root of the sum of variances."""
    variances = product.variances()
    deviations = np.sqrt(variances)
    deviations.flags.writeable = False
    return deviations, MEAN_SIZE * float(deviations.sum()), math.sqrt(float(variances.sum()))


def _multiplied(of_axes: Iterable[Floats]) -> Floats:
    """Return the numbers of all cells, [cells], from those along each axis."""
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
    sums = of_boxes(product.listed, product.axes).squares
    return float(np.average([found, *sums], weights=product.shares or [len(sums), *np.ones(len(sums))]))


def _described(axis: Along) -> str:
    steps = axis.parameters.get("branching", "")
    weights = axis.parameters.get("weights")
    text = f"{axis.name} {steps}".strip()
    return text if weights is None else f"{text}, weights {' '.join(map(str, weights))}"
