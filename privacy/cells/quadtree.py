"""A quadtree over two ordered axes: each region is halved along both, down to single cells.

Layer l holds the sums over 2^l by 2^l neighbouring cells, cut at the edges of the space, up to one node for all of it:
splits are public. A listed axis beside the ordered ones is never merged: each of its values has a quadtree of its own.
Every cell is in one node of each layer, so every column of S has the same norm, as for privacy.cells.layers, and so
have the formulas of least squares. Nodes of regions that cannot be halved any more stand in the next layer again.

Weights are geometric (Cormode, Procopiuc, Srivastava, Shen, Yu, ICDE 2012, arXiv:1103.5170): the border of a box meets
O(2^(h - l)) nodes of layer l, and the sum of n_l / epsilon_l^2 over layers whose epsilon_l add up to one number is
least for epsilon_l in proportion to the cube root of n_l. So weights grow by the cube root of 2 with each layer towards
the cells, as whole numbers.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privacy.cells import walks
from privacy.cells.averages import Workload
from privacy.cells.corners import Corner
from privacy.cells.space import Space
from privacy.cells.sums import Floats, Ints, summed

COARSEST = 8
"""Weight of the whole, so that the weights of layers are near to geometric ones."""

BOXES = 64
"""Over so many boxes, spread evenly, the mean variance of prefixes and of ranges is taken."""

AT_ONCE = 1 << 22
"""Numbers that are worked on at once for that."""


def geometric(layers: int) -> tuple[int, ...]:
    """Weights that grow by the cube root of 2, the first one for all cells together.

    >>> geometric(7)
    (8, 10, 13, 16, 20, 25, 32)
    """
    return tuple(round(COARSEST * 2 ** (layer / 3)) for layer in range(layers)) if layers > 1 else (1,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadtree:
    """A strategy for all axes of a query at once, see privacy.cells.along.

    Attributes:
        shape: cells of each axis.
        ordered: whether an axis is halved, for each; two are.
        weights: of each layer, from single cells to the whole.

    >>> tree = quadtree((4, 3), (True, True))
    >>> tree.nodes, tree.weights, tree.spread(np.arange(12))[-1] == sum(range(12)) * tree.weights[-1]
    (17, (13, 10, 8), np.True_)
    """

    kind: ClassVar[str] = "quadtree"
    blocks: ClassVar[bool] = True
    shape: tuple[int, ...]
    ordered: tuple[bool, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.ordered) or sum(self.ordered) != 2 or min(self.shape) < 1:
            raise ValueError("a quadtree is over two ordered axes; use tree for one")
        if len(self.weights) != _layers(self.shape, self.ordered) or min(self.weights) < 1:
            raise ValueError(f"weights={self.weights}: one for each of {_layers(self.shape, self.ordered)} layers")

    @property
    def name(self) -> str:
        return "quadtree"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"height": len(self.weights), "weights": list(self.weights)}

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Nodes of each layer, along each axis."""
        return [
            tuple(
                -(-size // 2**layer) if halved else size for size, halved in zip(self.shape, self.ordered, strict=True)
            )
            for layer in range(len(self.weights))
        ]

    @property
    def counts(self) -> tuple[int, ...]:
        """Nodes of each layer."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def nodes(self) -> int:
        return sum(self.counts)

    @property
    def filled(self) -> int:
        """In how many nodes a cell is."""
        return len(self.weights)

    def least_precisions(self) -> Floats:
        return np.full(self.cells, float(self.weights[0] ** 2))

    def ranges(self) -> tuple[Ints, Ints]:
        raise ValueError("a node of a quadtree is a box; ask for boxes")

    def boxes(self) -> list[tuple[Ints, Ints]]:
        """For each axis the cells of each node: the first, and one past the last, [nodes] each."""
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

    def layer(self) -> Ints:
        return np.repeat(np.arange(len(self.weights)), self.counts)

    def of_nodes(self) -> Ints:
        return np.repeat(np.array(self.weights), self.counts)

    def corners(self, power: int, apart: int | None = None) -> tuple[Corner, ...]:
        """A cell twice; and two cells on both sides of a border of all layers, with the whole alone in common."""
        if apart is not None:
            raise ValueError("a quadtree is not for a distance; use tree or prefix")
        whole = sum(weight**power for weight in self.weights)
        if self.cells == 1:
            return ((whole, whole, whole),)
        common = self.weights[-1] ** power if self.counts[-1] == 1 else 0
        return ((whole, whole, common), (whole, whole, whole))

    def up(self, values: Any, layer: int) -> Any:
        grid = values.reshape(*values.shape[:-1], *self.shapes[layer - 1])
        return self._halved(grid).reshape(*values.shape[:-1], self.counts[layer])

    def down(self, values: Floats, layer: int) -> Floats:
        grid = values.reshape(*values.shape[:-1], *self.shapes[layer])
        return self._dealt(grid, self.shapes[layer - 1]).reshape(*values.shape[:-1], self.counts[layer - 1])

    def spread(self, values: Ints) -> Ints:
        return walks.spread(self, values)

    def gather(self, nodes: Floats) -> Floats:
        return walks.gather(self, nodes)

    def solve(self, queries: Floats) -> Floats:
        return walks.solve(self, queries)

    def variances(self) -> Floats:
        return walks.variances(self)

    def average(self, workload: Workload) -> float:
        """The mean variance of each cell; of prefixes and ranges that of some boxes, the same ones always."""
        return _average(self, workload)

    def _halved(self, values: Any) -> Any:
        """Sums over two neighbours along each ordered axis; one that is whole stays."""
        for place, halved in enumerate(self.ordered, start=-len(self.shape)):
            if halved:
                values = np.moveaxis(summed(np.moveaxis(values, place, -1), 2), -1, place)
        return values

    def _dealt(self, values: Floats, shape: tuple[int, ...]) -> Floats:
        """To each node below what its parent has, in the shape of the layer below."""
        for place, (size, halved) in enumerate(zip(shape, self.ordered, strict=True), start=-len(shape)):
            if halved:
                values = np.repeat(values, 2, axis=place)
                values = np.moveaxis(np.moveaxis(values, place, -1)[..., :size], -1, place)
        return values


def quadtree(shape: tuple[int, ...], ordered: tuple[bool, ...]) -> Quadtree:
    """All layers, with geometric weights."""
    return Quadtree(shape=shape, ordered=ordered, weights=geometric(_layers(shape, ordered))[::-1])


def quadtree_over(space: Space) -> Quadtree:
    """The quadtree of a query's axes.

    Raises:
        ValueError: not two of them have an order.
    """
    return quadtree(tuple(axis.cells for axis in space), tuple(axis.ordered for axis in space))


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
            # Fractions of multiples of irrational numbers are spread evenly.
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
