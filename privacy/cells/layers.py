"""Layers of sums over adjacent cells: single cells, and trees over an ordered axis.

A node of layer l holds `weights[l]` times the sum of `sizes[l]` adjacent cells; the last node has the remaining cells.
So every cell is in one node of each layer, and every column of S has the same norm:

    L1 = sum of weights,    squared L2 = sum of squared weights

The least-squares estimate of the cells from noisy nodes takes one walk up and one down, in privacy.cells.walks (Hay,
Rastogi, Miklau, Suciu, VLDB 2010; generalised here to any weights and to cut nodes). With all noise of variance 1, let
u be the variance of a node's best estimate from the nodes below it and itself, and m the sum of its children's u:

    up      u = 1 / (w^2 + 1 / m),    z = u (w y + (sum of the children's z) / m)
    down    x = z + (u / m of the parent) (x of the parent - sum of the children's z)

A linear query inside a node is alpha times the node's estimate plus a rest, of variance R, that is independent of the
node and of all nodes above. So variances take one walk up: with alpha_i, u_i, R_i of the children, and a_i their weight
in the query,

    alpha = sum of alpha_i u_i / m,    R = sum of (R_i + alpha_i^2 u_i) - (sum of alpha_i u_i)^2 / m

and at the roots the sum of R + alpha^2 u. These are quadratic in alpha_i, so that the sum over all prefixes that end
in a node, or over all its cells, follows from the sums of 1, alpha, alpha^2 and R over them (privacy.cells.averages).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from privacy.cells import walks
from privacy.cells.averages import Workload, averages
from privacy.cells.blocks import Blocks
from privacy.cells.sums import Floats, Ints, summed
from privacy.checks import at_least


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Strategy of layers for one axis (privacy.cells.base.Along).

    Attributes:
        cells: number of cells along the axis.
        sizes: number of cells in a node of each layer: 1 first, then multiples of the size before.
        weights: weight of each layer.

    >>> tree = Layers(cells=5, sizes=(1, 2, 4), weights=(1, 1, 1))
    >>> tree.spread(np.array([1, 2, 3, 4, 5])).tolist()
    [1, 2, 3, 4, 5, 3, 7, 5, 10, 5]
    >>> tree.gather(tree.spread(np.array([1, 2, 3, 4, 5])).astype(float)).round(9).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """

    kind: ClassVar[str] = "layers"
    blocks: ClassVar[bool] = True
    cells: int
    sizes: tuple[int, ...] = (1,)
    weights: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        at_least("cells", self.cells, 1)
        if not self.sizes or self.sizes[0] != 1 or any(b <= a or b % a for a, b in pairwise(self.sizes)):
            raise ValueError(f"sizes={self.sizes}: 1 first, and each a multiple of the one before it")
        if any(size >= self.cells for size in self.sizes[:-1]) and len(self.sizes) > 1:
            raise ValueError(f"sizes={self.sizes}: a layer of one node is the last one")
        if len(self.weights) != len(self.sizes):
            raise ValueError(f"weights={self.weights}: one for each of {len(self.sizes)} layers")
        for weight in self.weights:
            at_least("weights", weight, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.cells,)

    @property
    def trivial(self) -> bool:
        return len(self.sizes) == 1

    @property
    def name(self) -> str:
        return "each" if len(self.sizes) == 1 else "tree"

    @property
    def parameters(self) -> dict[str, Any]:
        if len(self.sizes) == 1:
            return {}
        return {
            "branching": self.steps[0] if len(set(self.steps)) == 1 else list(self.steps),
            "height": len(self.sizes),
            **({"weights": list(self.weights)} if set(self.weights) != {1} else {}),
        }

    @property
    def steps(self) -> tuple[int, ...]:
        """Number of nodes below one node of each layer except the first."""
        return tuple(larger // size for size, larger in pairwise(self.sizes))

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of nodes of each layer."""
        return tuple(-(-self.cells // size) for size in self.sizes)

    @property
    def matrix(self) -> Blocks:
        return Blocks(self.counts, self.weights)

    def boxes(self) -> list[tuple[Ints, Ints]]:
        begins = np.concatenate([np.arange(count) * size for count, size in zip(self.counts, self.sizes, strict=True)])
        ends = begins + np.repeat(self.sizes, self.counts)
        return [(begins.astype(np.int64), np.minimum(ends, self.cells).astype(np.int64))]

    def up(self, values: Any, layer: int) -> Any:
        return summed(values, self.steps[layer - 1])

    def down(self, values: Floats, layer: int) -> Floats:
        """Return each parent's value for each child: [.., nodes of a layer] to [.., nodes of the layer below]."""
        return np.repeat(values, self.steps[layer - 1], axis=-1)[..., : self.counts[layer - 1]]

    spread, gather, solve, variances = walks.spread, walks.gather, walks.solve, walks.variances

    def average(self, workload: Workload) -> float:
        """Return the mean variance of the queries of a workload, if the noise of a node has variance 1."""
        return averages(self.cells, self.sizes, self.weights)[workload]
