"""Prefix sums along one axis: node j holds the cells up to j. Every range is the difference of two nodes.

The column of cell c has ones in the d - c nodes from c on, so any state costs d, and a move by k cells costs k:
prefixes suit the protection of a unit's place up to some distance (delta-neighbourhood, Fang and Chang).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privacy.cells.averages import Workload
from privacy.cells.corners import Corner
from privacy.cells.sums import Floats, Ints
from privacy.checks import at_least


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """Strategy of prefix sums for one axis (privacy.cells.base.Along).

    >>> prefixes = Prefixes(cells=3)
    >>> prefixes.spread(np.array([1, 2, 3])).tolist(), prefixes.gather(np.array([1.0, 3.0, 6.0])).tolist()
    ([1, 3, 6], [1.0, 2.0, 3.0])
    """

    kind: ClassVar[str] = "prefixes"
    name: ClassVar[str] = "prefix"
    parameters: ClassVar[dict[str, Any]] = {}
    blocks: ClassVar[bool] = True
    trivial: ClassVar[bool] = False
    cells: int

    def __post_init__(self) -> None:
        at_least("cells", self.cells, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.cells,)

    @property
    def matrix(self) -> "Prefixes":
        return self

    @property
    def nodes(self) -> int:
        return self.cells

    @property
    def filled(self) -> int:
        return self.cells

    @property
    def heaviest(self) -> int:
        """Largest weight of a cell in a node."""
        return 1

    def least_precisions(self) -> Floats:
        """S^-1 takes differences, which are at most twice as long."""
        return np.full(self.cells, 0.25)

    def boxes(self) -> list[tuple[Ints, Ints]]:
        return [(np.zeros(self.cells, dtype=np.int64), np.arange(1, self.cells + 1, dtype=np.int64))]

    def layer(self) -> Ints:
        return np.zeros(self.cells, dtype=np.int64)

    def of_nodes(self) -> Ints:
        return np.ones(self.cells, dtype=np.int64)

    def corners(self, power: int, apart: int | None = None) -> tuple[Corner, ...]:
        """Cells a and b are in A and B nodes, in min(A, B) both: linear in (A, B) on either side of A = B."""
        few, many = 1, self.cells
        step = many - few if apart is None else min(apart, many - few)
        pairs = {(at, at) for at in (few, many)} | {(few, few + step), (many, many - step)}
        return tuple(sorted({(a, b, min(a, b)) for x, y in pairs for a, b in ((x, y), (y, x))}))

    def spread(self, values: Ints) -> Ints:
        """Return the sums of prefixes: int64 [.., cells] to [.., nodes]."""
        sums: Ints = np.cumsum(values, axis=-1)
        return sums

    def gather(self, nodes: Floats) -> Floats:
        """Return cells from sums of prefixes: float64 [.., nodes] to [.., cells]."""
        return np.diff(nodes, axis=-1, prepend=0.0)

    def solve(self, queries: Floats) -> Floats:
        """Return S^-1 S^-T times queries, float64 [.., cells]: differences of the differences of adjacent cells."""
        return np.diff(-np.diff(queries, axis=-1, append=0.0), axis=-1, prepend=0.0)

    def variances(self) -> Floats:
        found = np.full(self.cells, 2.0)
        found[0] = 1.0
        return found

    def average(self, workload: Workload) -> float:
        """Ranges that begin with the first cell are one node, all others are the difference of two nodes."""
        d = self.cells
        return {"cells": 2.0 - 1.0 / d, "prefixes": 1.0, "ranges": 2.0 - 2.0 / (d + 1)}[workload]
