"""Quadtrees over two ordered axes: each region is halved along both axes, down to single cells.

Layer l holds the sums over 2^l by 2^l adjacent cells, cut at the edges of the space, up to one node for all cells:
splits are public. A listed axis is never merged with the ordered ones: each of its values has a separate quadtree.
Every cell is in one node of each layer, so every column of S has the same norm, as for privacy.cells.layers, whose
formulas of least squares apply. Nodes of regions that cannot be halved any more are repeated in the next layer.

Weights are geometric (privacy.cells.geometric).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privacy.cells import walks
from privacy.cells.averages import Workload
from privacy.cells.base import Sketcher
from privacy.cells.blocks import Blocks
from privacy.cells.choice import CellChoice
from privacy.cells.geometric import geometric
from privacy.cells.offer import CellTerms, CellUse, lightest
from privacy.cells.product import Product
from privacy.cells.sums import Floats, Ints, summed
from privacy.problems import RuleError

BOXES = 64
"""Number of boxes, evenly distributed, over which the mean variance of prefixes and of ranges is taken."""

AT_ONCE = 1 << 22
"""Size of the arrays that are processed at a time for this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadtree:
    """Strategy for all axes of a query at once (privacy.cells.base.Along).

    Attributes:
        shape: number of cells of each axis.
        ordered: whether each axis is halved; two are.
        weights: weight of each layer, from single cells to the whole.

    >>> tree = quadtree((4, 3), (True, True))
    >>> tree.matrix.nodes, tree.weights, tree.spread(np.arange(12))[-1] == sum(range(12)) * tree.weights[-1]
    (17, (13, 10, 8), np.True_)
    """

    kind: ClassVar[str] = "quadtree"
    name: ClassVar[str] = "quadtree"
    blocks: ClassVar[bool] = True
    trivial: ClassVar[bool] = False
    shape: tuple[int, ...]
    ordered: tuple[bool, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.ordered) or sum(self.ordered) != 2 or min(self.shape) < 1:
            raise ValueError("a quadtree is over two ordered axes; use tree for one")
        if len(self.weights) != _layers(self.shape, self.ordered) or min(self.weights) < 1:
            raise ValueError(f"weights={self.weights}: one for each of {_layers(self.shape, self.ordered)} layers")

    @property
    def parameters(self) -> dict[str, Any]:
        return {"height": len(self.weights), "weights": list(self.weights)}

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Number of nodes of each layer along each axis."""
        return [
            tuple(
                -(-size // 2**layer) if halved else size for size, halved in zip(self.shape, self.ordered, strict=True)
            )
            for layer in range(len(self.weights))
        ]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of nodes of each layer."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def matrix(self) -> Blocks:
        return Blocks(self.counts, self.weights)

    def boxes(self) -> list[tuple[Ints, Ints]]:
        found = []
        for axis, (size, halved) in enumerate(zip(self.shape, self.ordered, strict=True)):
            begins, ends = [], []
            for layer, shape in enumerate(self.shapes):
                width = 2**layer if halved else 1
                begin = np.indices(shape)[axis].ravel() * width
                begins.append(begin)
                ends.append(np.minimum(begin + width, size))
            found.append((np.concatenate(begins).astype(np.int64), np.concatenate(ends).astype(np.int64)))
        return found

    def up(self, values: Any, layer: int) -> Any:
        grid = values.reshape(*values.shape[:-1], *self.shapes[layer - 1])
        return self._halved(grid).reshape(*values.shape[:-1], self.counts[layer])

    def down(self, values: Floats, layer: int) -> Floats:
        """Return each parent's value for each child: [.., nodes of a layer] to [.., nodes of the layer below]."""
        grid = values.reshape(*values.shape[:-1], *self.shapes[layer])
        return self._dealt(grid, self.shapes[layer - 1]).reshape(*values.shape[:-1], self.counts[layer - 1])

    spread, gather, solve, variances = walks.spread, walks.gather, walks.solve, walks.variances

    def average(self, workload: Workload) -> float:
        """Return the mean variance of each cell; for prefixes and ranges, that of a fixed set of boxes."""
        return _average(self, workload)

    def _halved(self, values: Any) -> Any:
        """Return the sums over two adjacent values along each ordered axis; an axis of one value is unchanged."""
        for place, halved in enumerate(self.ordered, start=-len(self.shape)):
            if halved:
                values = np.moveaxis(summed(np.moveaxis(values, place, -1), 2), -1, place)
        return values

    def _dealt(self, values: Floats, shape: tuple[int, ...]) -> Floats:
        """Return the values of parents, given to each node below, in the shape of the layer below."""
        for place, (size, halved) in enumerate(zip(shape, self.ordered, strict=True), start=-len(shape)):
            if halved:
                values = np.repeat(values, 2, axis=place)
                values = np.moveaxis(np.moveaxis(values, place, -1)[..., :size], -1, place)
        return values


def quadtree(shape: tuple[int, ...], ordered: tuple[bool, ...]) -> Quadtree:
    """Return the quadtree of all layers, with geometric weights."""
    return Quadtree(shape=shape, ordered=ordered, weights=geometric(_layers(shape, ordered))[::-1])


class QuadtreeOffer:
    """Offer of quadtrees (privacy.cells.offer.CellOffer)."""

    settings: ClassVar[tuple[str, ...]] = ()
    sketched: ClassVar[type[Sketcher]] = Product

    def strategies(self, terms: CellTerms) -> tuple[Product, ...]:
        tree = quadtree(tuple(axis.cells for axis in terms.space), tuple(axis.ordered for axis in terms.space))
        return (Product(axes=(tree,), workload=(terms.choice.along,), listed=terms.choice.listed),)

    def sketcher(self, terms: CellTerms) -> Product | None:
        return lightest(self.strategies(terms))

    def problems(self, choice: CellChoice, use: CellUse) -> Iterator[RuleError]:
        if use.ordered == 1:
            yield RuleError("a quadtree is over two keys with an order; use tree for one", "cells", "strategy")
        if choice.marginals or use.nested:
            message = "a quadtree gives no noise to sums over other keys; use tree or auto, or list the cells alone"
            yield RuleError(message, "cells", "strategy")
        if use.apart:
            yield RuleError("a quadtree is not for a distance; use tree, prefix or auto", "cells", "strategy")


def _layers(shape: tuple[int, ...], ordered: tuple[bool, ...]) -> int:
    longest = max((size for size, halved in zip(shape, ordered, strict=True) if halved), default=1)
    return 1 + (longest - 1).bit_length()


@lru_cache(maxsize=16)
def _average(tree: Quadtree, workload: Workload) -> float:
    if workload == "cells":
        return float(tree.variances().mean())
    boxes = max(8, min(BOXES, AT_ONCE // tree.cells))
    found = 0.0
    for box in range(boxes):
        query = np.ones(tree.shape)
        for axis, (size, halved) in enumerate(zip(tree.shape, tree.ordered, strict=True)):
            # Fractional parts of multiples of an irrational number are evenly distributed.
            roots = _ROOTS[2 * axis % len(_ROOTS)], _ROOTS[(2 * axis + 1) % len(_ROOTS)]
            first, last = sorted(int(size * ((box + 1) * root**0.5 % 1)) for root in roots)
            if not halved:
                last = first
            inside = np.zeros(size)
            inside[0 if workload == "prefixes" and halved else first : last + 1] = 1.0
            query *= inside.reshape([-1 if place == axis else 1 for place in range(len(tree.shape))])
        found += float(query.ravel() @ tree.solve(query.ravel()))
    return found / boxes


_ROOTS = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)
