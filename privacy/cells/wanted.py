"""What is asked of one axis while strategies for it are sought: a workload, or cells beside listed ranges."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privacy.cells.averages import Workload, averages
from privacy.cells.boxes import Range, of_boxes, queries_of
from privacy.cells.layers import Layers
from privacy.cells.quadratic import applied, diagonal, queries
from privacy.cells.sums import Floats

FINE = 2**40
"""Weights of layers that need not be whole are so many times themselves, rounded."""

FEW = 4096
"""On an axis with more cells layers are sought for all ranges in place of the listed ones, which would take long."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be near.

    Attributes:
        workload: of the axis.
        listed: ranges whose mean variance counts as much as that of the workload; may repeat; empty: none.
    """

    workload: Workload
    listed: tuple[Range, ...] = ()

    def of_layers(self, cells: int, sizes: tuple[int, ...], weights: tuple[float, ...]) -> float:
        """The mean variance, where the noise of a node has variance 1."""
        means = averages(cells, sizes, weights)
        if not self.listed:
            return means[self.workload]
        if cells > FEW:
            return (means[self.workload] + means["ranges"]) / 2
        return (means[self.workload] + _listed(cells, sizes, weights, self.listed)) / 2

    def diagonal(self, cells: int) -> Floats:
        """V_aa of the quadratic form whose tr(V X) is the mean variance, [cells]."""
        found: Floats = diagonal(self.workload, cells) / queries(self.workload, cells)
        if self.listed:
            asked = queries_of(self.listed, cells)
            found = (found + asked.sum(axis=0) / len(asked)) / 2
        return found

    def applied(self, rows: Floats) -> Floats:
        """V times each row, [.., cells]."""
        cells = rows.shape[-1]
        found = applied(self.workload, rows) / queries(self.workload, cells)
        if not self.listed:
            return found
        asked = queries_of(self.listed, cells)
        whole: Floats = (found + (rows @ asked.T) @ asked / len(asked)) / 2
        return whole


@lru_cache(maxsize=4096)
def _listed(cells: int, sizes: tuple[int, ...], weights: tuple[float, ...], ranges: tuple[Range, ...]) -> float:
    layers = Layers(cells=cells, sizes=sizes, weights=tuple(max(1, round(weight * FINE)) for weight in weights))
    found = of_boxes([(one,) for one in ranges], [layers]).squares
    return float(np.mean(found)) * FINE**2
