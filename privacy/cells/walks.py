"""Least squares over layers of sums in two walks, one up and one down; the formulas are in privacy.cells.layers.

The nodes of each layer share no cell and contain all cells, and the cells of a node are those of its children in the
layer below. The strategy defines the children: adjacent nodes along an axis (Layers), or in a square (Quadtree).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from privacy.cells.blocks import Blocks
from privacy.cells.sums import Floats, Ints


class Layered(Protocol):
    """Interface of a strategy of layers, single cells first."""

    def __hash__(self) -> int: ...

    @property
    def matrix(self) -> Blocks: ...

    def up(self, values: Any, layer: int) -> Any:
        """Return sums over children: [.., nodes of the layer below] to [.., nodes of a layer]."""
        ...

    def down(self, values: Floats, layer: int) -> Floats:
        """Return each parent's value for each child: [.., nodes of a layer] to [.., nodes of the layer below]."""
        ...


def spread(layers: Layered, values: Ints) -> Ints:
    """Return S times values: int64 [.., cells] to [.., nodes]."""
    weights, sums = layers.matrix.weights, values
    found = [weights[0] * values]
    for layer, weight in enumerate(weights[1:], start=1):
        sums = layers.up(sums, layer)
        if weight:
            found.append(weight * sums)
    return np.concatenate(found, axis=-1)


def gather(layers: Layered, nodes: Floats) -> Floats:
    """Return the least-squares estimates of cells: [.., nodes] to [.., cells]."""
    model, matrix = _model(layers), layers.matrix
    noisy = iter(np.split(nodes, np.cumsum(matrix.sizes)[:-1], axis=-1))
    values = next(noisy) / matrix.weights[0]
    below: list[tuple[Floats, Floats]] = []
    for layer, weight in enumerate(matrix.weights[1:], start=1):
        sums = layers.up(values, layer)
        below.append((values, sums))
        values = model.u[layer] * ((weight * next(noisy) if weight else 0.0) + sums / model.m[layer])
    for layer in reversed(range(1, len(matrix.weights))):
        own, sums = below.pop()
        values = own + model.u[layer - 1] * layers.down((values - sums) / model.m[layer], layer)
    return values


def solve(layers: Layered, queries: Floats) -> Floats:
    """Return (S^T S)^-1 applied to queries [.., cells]: a query's covariance with each cell."""
    matrix = layers.matrix
    nodes = np.zeros((*queries.shape[:-1], matrix.nodes))
    nodes[..., : queries.shape[-1]] = queries / matrix.weights[0]
    return gather(layers, nodes)


def variances(layers: Layered, least: int = 0) -> Floats:
    """Return the variance of each cell, float64 [cells], if the noise of a node has variance 1.

    Args:
        layers: the strategy.
        least: layer whose nodes take the place of the cells.
    """
    model = _model(layers)
    found = model.u[-1]
    for layer in reversed(range(1 + least, len(layers.matrix.weights))):
        u = model.u[layer - 1]
        share = u / layers.down(model.m[layer], layer)
        found = u * (1 - share) + share**2 * layers.down(found, layer)
    return found


@dataclass(frozen=True, slots=True)
class _Model:
    """u and m of each layer's nodes; the cells have no m."""

    u: list[Floats]
    m: list[Floats]


@lru_cache(maxsize=16)
def _model(layers: Layered) -> _Model:
    u, m = [1.0 / layers.matrix.least_precisions()], [np.zeros(0)]
    for layer, weight in enumerate(layers.matrix.weights[1:], start=1):
        m.append(layers.up(u[-1], layer))
        u.append(1.0 / (weight**2 + 1.0 / m[-1]))
    return _Model(u, m)
