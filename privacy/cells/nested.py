"""Nested partitions: a hierarchy along one axis, with branches of any sizes.

Layer 0 has the cells; each node of a layer above has some adjacent nodes of the layer below. Layers are blocks
(privacy.cells.blocks), also those of weight 0, and the formulas of privacy.cells.layers for least squares hold.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privacy.cells import walks
from privacy.cells.averages import Workload
from privacy.cells.blocks import Blocks
from privacy.cells.sums import Floats, Ints

Children = tuple[tuple[int, ...], ...]
"""Number of nodes of the layer below of each node, for each layer above the cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """Strategy of nested partitions for one axis (privacy.cells.base.Along).

    Attributes:
        children: number of nodes of the layer below of each node, for each layer above the cells.
        weights: weight of each layer, from the cells on; 0 for layers above them that get no noise.

    >>> tree = Nested(children=((2, 1, 2), (3,)), weights=(1, 2, 0))
    >>> tree.spread(np.arange(5)).tolist()
    [0, 1, 2, 3, 4, 2, 4, 14]
    >>> tree.gather(tree.spread(np.arange(5)).astype(float)).round(9).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """

    kind: ClassVar[str] = "nested"
    name: ClassVar[str] = "hierarchy"
    blocks: ClassVar[bool] = True
    trivial: ClassVar[bool] = False
    children: Children
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.children or any(min(layer, default=0) < 1 for layer in self.children):
            raise ValueError("children: at least one layer, and at least one node below each node")
        for below, layer in enumerate(self.children[1:]):
            if sum(layer) != len(self.children[below]):
                raise ValueError(f"children[{below + 1}]: {sum(layer)} nodes below instead of {self.counts[below + 1]}")
        if len(self.weights) != len(self.children) + 1 or self.weights[0] < 1 or min(self.weights) < 0:
            raise ValueError(f"weights={self.weights}: one for each of {len(self.children) + 1} layers, cells above 0")

    @property
    def cells(self) -> int:
        return sum(self.children[0])

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.cells,)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"height": len(self.weights), "weights": list(self.weights)}

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of nodes of each layer of the hierarchy, with noise or not."""
        return (self.cells, *(len(layer) for layer in self.children))

    @property
    def matrix(self) -> Blocks:
        return Blocks(self.counts, self.weights)

    def boxes(self) -> list[tuple[Ints, Ints]]:
        sizes = self.sizes()
        ends = [np.cumsum(sizes[layer]) for layer in self.matrix.noisy]
        begins = [np.concatenate([[0], end[:-1]]) for end in ends]
        return [(np.concatenate(begins).astype(np.int64), np.concatenate(ends).astype(np.int64))]

    def sizes(self) -> list[Ints]:
        """Return the number of cells of each node of each layer of the hierarchy, int64 [nodes of the layer] each."""
        found = [np.ones(self.cells, dtype=np.int64)]
        for layer in range(1, len(self.weights)):
            found.append(self.up(found[-1], layer))
        return found

    def up(self, values: Any, layer: int) -> Any:
        return np.add.reduceat(np.ascontiguousarray(values), _starts(self.children[layer - 1]), axis=-1)

    def down(self, values: Floats, layer: int) -> Floats:
        """Return each parent's value for each child: [.., nodes of a layer] to [.., nodes of the layer below]."""
        return np.repeat(values, self.children[layer - 1], axis=-1)

    spread, gather, solve, variances = walks.spread, walks.gather, walks.solve, walks.variances

    def of_layer(self, layer: int) -> Floats:
        """Return the variance of each node of a layer, float64 [nodes], if the noise of a node has variance 1."""
        return walks.variances(self, layer)

    def average(self, workload: Workload) -> float:
        """Return the mean variance of what a hierarchy is for: that of cells and that of layers above count half each.

        Raises:
            ValueError: the workload is not `cells`.
        """
        if workload != "cells":
            raise ValueError(f"{workload}: cells of a hierarchy have no order")
        return error(self.children, tuple(float(weight**2) for weight in self.weights))


@lru_cache(maxsize=64)
def _starts(children: tuple[int, ...]) -> Ints:
    return np.cumsum((0, *children[:-1]))


@lru_cache(maxsize=4096)
def error(children: Children, squares: tuple[float, ...]) -> float:
    """Return half the mean variance of cells plus half that of the layers above, each layer equally.

    Args:
        children: the hierarchy.
        squares: squared weight of each layer, above 0 for the cells.
    """
    u, m = [np.full(sum(children[0]), 1 / squares[0])], [np.zeros(0)]
    for layer, square in zip(children, squares[1:], strict=True):
        m.append(np.add.reduceat(u[-1], _starts(layer)))
        u.append(1 / (square + 1 / m[-1]))
    found, means = u[-1], [float(u[-1].mean())]
    for place in reversed(range(len(children))):
        share = u[place] / np.repeat(m[place + 1], children[place])
        found = u[place] * (1 - share) + share**2 * np.repeat(found, children[place])
        means.append(float(found.mean()))
    return (means[-1] + sum(means[:-1]) / len(children)) / 2
