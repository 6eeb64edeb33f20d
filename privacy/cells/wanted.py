"""Queries on one axis for which strategies are fitted: a workload, or single cells and listed ranges."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privacy.cells.averages import Workload, averages
from privacy.cells.boxes import Range, of_boxes, queries_of
from privacy.cells.layers import Layers
from privacy.cells.quadratic import applied, diagonal, queries
from privacy.cells.sums import Floats

FINE = 2**40
"""Weights of layers that need not be integers are multiplied by this and rounded."""

FEW = 4096
"""On an axis with more cells, layers are fitted to all ranges instead of the listed ones, which would take long."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Queries that are to be accurate.

    Attributes:
        workload: workload of the axis.
        listed: ranges whose mean variance has the same weight as that of the workload; may repeat; empty if no range
            is listed.
    """

    workload: Workload
    listed: tuple[Range, ...] = ()

    def of_layers(self, cells: int, sizes: tuple[int, ...], weights: tuple[float, ...]) -> float:
        """Return the mean variance under layers, if the noise of a node has variance 1.

        Args:
            cells: number of cells along the axis.
            sizes: number of cells in a node of each layer.
            weights: weight of each layer, positive.
        """
        means = averages(cells, sizes, weights)
        if not self.listed:
            return means[self.workload]
        if cells > FEW:
            return (means[self.workload] + means["ranges"]) / 2
        return (means[self.workload] + _listed(cells, sizes, weights, self.listed)) / 2

    def diagonal(self, cells: int) -> Floats:
        """Return V_aa, float64 [cells], of the quadratic form whose tr(V X) is the mean variance."""
        found: Floats = diagonal(self.workload, cells) / queries(self.workload, cells)
        if self.listed:
            asked = queries_of(self.listed, cells)
            found = (found + asked.sum(axis=0) / len(asked)) / 2
        return found

    def applied(self, rows: Floats) -> Floats:
        """Return V times each row, float64 [.., cells]."""
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
