"""Sketcher with separate noise for each cell: its sketch is the noisy cells."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privacy.cells.base import FreshNoise, Pick, Reading
from privacy.cells.sums import Floats, Ints
from privacy.columns import Column
from privacy.counted import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Each:
    """A sketcher and a linear strategy whose nodes are the cells."""

    kind: ClassVar[str] = "each"
    rounds: ClassVar[int] = 0
    share: ClassVar[float] = 0.0
    alone: ClassVar[bool] = True
    columns: ClassVar[tuple[Column, ...]] = ()
    premise: ClassVar[str | None] = None
    unsummed: ClassVar[str | None] = None
    sentence: ClassVar[str] = ""
    of: ClassVar[str] = ""
    axes: ClassVar[None] = None
    cells: int

    @property
    def decided(self) -> int:
        return self.cells

    @property
    def linear(self) -> "Each":
        return self

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    def column(self, power: int) -> int:
        return 1

    def sketch(self, level: Ints, pick: Pick, noise: FreshNoise) -> Ints:
        """Return the histogram with noise in each cell, int64 [cells] (`Sketcher.sketch`)."""
        return level + noise(self.cells)  # wraps

    def read(self, sketch: Ints) -> Reading:
        """Return the estimates that a sketch, int64 [cells], gives: its values.

        Raises:
            ValueError: the sketch has another number of cells.
        """
        if sketch.shape != (self.cells,):
            raise ValueError(f"a sample: not of {counted(self.cells, 'cell')}")
        return Reading(cells=sketch, near=sketch)

    def typical_deviation(self) -> float:
        return 1.0

    def spread(self, values: Ints) -> Ints:
        """Return S times values, int64 [.., cells]: the values themselves, since each cell is a node."""
        return values

    def solve(self, queries: Floats) -> Floats:
        """Return (S^T S)^-1 times queries, float64 [.., cells]: the queries themselves."""
        return queries

    def variances(self) -> Floats:
        return np.ones(self.cells)
