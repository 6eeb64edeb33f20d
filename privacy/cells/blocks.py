"""Blocks: partitions of the cells into nodes, each with a weight. Marginals and layers of trees are blocks.

A node of a block holds the weight of the block times the sum of its cells. Each cell is in one node of each block, so
every column of S has the same norm:

    L1 = sum of the weights,    squared L2 = sum of their squares

Two cells share the blocks in which both are in one node: at least those of a single node. Blocks of weight 0 have no
nodes in S; the sums of their cells are published all the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacy.cells.corners import Corner
from privacy.cells.sums import Floats, Ints


@dataclass(frozen=True, slots=True)
class Blocks:
    """Matrix of a strategy of blocks, with the nodes block by block (privacy.cells.base.Matrix).

    Attributes:
        counts: number of nodes of each block; single cells first.
        weights: weight of each block; above 0 for single cells.

    >>> matrix = Blocks((4, 2, 1), (1, 3, 0))
    >>> matrix.nodes, matrix.layer().tolist(), matrix.corners(2)
    (6, [0, 0, 0, 0, 1, 1], ((10, 10, 0), (10, 10, 10)))
    """

    counts: tuple[int, ...]
    weights: tuple[int, ...]

    @property
    def noisy(self) -> Sequence[int]:
        """Places of the blocks that get noise."""
        return [place for place, weight in enumerate(self.weights) if weight]

    @property
    def sizes(self) -> list[int]:
        """Number of nodes of each block that gets noise."""
        return [self.counts[place] for place in self.noisy]

    @property
    def nodes(self) -> int:
        return sum(self.sizes)

    @property
    def filled(self) -> int:
        """Number of nodes that each cell is in."""
        return len(self.noisy)

    @property
    def heaviest(self) -> int:
        """Largest weight of a cell in a node."""
        return max(self.weights)

    def least_precisions(self) -> Floats:
        return np.full(self.counts[0], float(self.weights[0] ** 2))

    def layer(self) -> Ints:
        return np.repeat(self.noisy, self.sizes)

    def of_nodes(self) -> Ints:
        return np.repeat([self.weights[place] for place in self.noisy], self.sizes)

    def corners(self, power: int, apart: int | None = None) -> tuple[Corner, ...]:
        """Return the corners of one cell twice, and of two cells that share only blocks of one node."""
        whole = sum(weight**power for weight in self.weights)
        if self.counts[0] == 1 or apart == 0:
            return ((whole, whole, whole),)
        common = sum(weight**power for weight, count in zip(self.weights, self.counts, strict=True) if count == 1)
        return ((whole, whole, common), (whole, whole, whole))
