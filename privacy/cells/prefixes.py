"""Prefix sums along one axis: node j holds the cells up to j. Every range is the difference of two nodes.

The column of cell c has ones in the d - c nodes from it on, so everything costs d and a move by few cells as many:
prefixes are for what protects where a unit is, up to some distance (delta-neighbourhood, Fang and Chang).
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
    """A strategy for one axis, see privacy.cells.along.

    >>> prefixes = Prefixes(cells=3)
    >>> prefixes.spread(np.array([1, 2, 3])).tolist(), prefixes.gather(np.array([1.0, 3.0, 6.0])).tolist()
    ([1, 3, 6], [1.0, 2.0, 3.0])
    """

    kind: ClassVar[str] = "prefixes"
    blocks: ClassVar[bool] = True
    cells: int

    def __post_init__(self) -> None:
        at_least("cells", self.cells, 1)

    @property
    def name(self) -> str:
        return "prefix"

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    @property
    def nodes(self) -> int:
        return self.cells

    @property
    def filled(self) -> int:
        return self.cells

    def least_precisions(self) -> Floats:
        """S^-1 takes differences, which are at most twice as long."""
        return np.full(self.cells, 0.25)

    def ranges(self) -> tuple[Ints, Ints]:
        return np.zeros(self.cells, dtype=np.int64), np.arange(1, self.cells + 1, dtype=np.int64)

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
        sums: Ints = np.cumsum(values, axis=-1)
        return sums

    def gather(self, nodes: Floats) -> Floats:
        return np.diff(nodes, axis=-1, prepend=0.0)

    def solve(self, queries: Floats) -> Floats:
        """S^-1 S^-T: the differences of what each cell has more than the one after it."""
        return np.diff(-np.diff(queries, axis=-1, append=0.0), axis=-1, prepend=0.0)

    def variances(self) -> Floats:
        found = np.full(self.cells, 2.0)
        found[0] = 1.0
        return found

    def average(self, workload: Workload) -> float:
        """The ranges that begin with the first cell are one node each, the others a difference of two."""
        d = self.cells
        return {"cells": 2.0 - 1.0 / d, "prefixes": 1.0, "ranges": 2.0 - 2.0 / (d + 1)}[workload]
