"""Arrangement of a query's cells: by axes, the first one slowest.

A key of a query is an axis. Listed values have no order. Ranges of numbers or times have one; their first and last cell
hold the values below and above all ranges. So values that are near each other are near in the space.
"""

import math
from dataclasses import dataclass

from privacy.checks import at_least


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One key of a query.

    Attributes:
        cells: number of cells along it.
        ordered: whether adjacent cells hold adjacent values.
    """

    cells: int
    ordered: bool = False

    def __post_init__(self) -> None:
        at_least("cells", self.cells, 1)


Space = tuple[Axis, ...]
"""Axes of a query: a cell's number is its place on the last axis + cells of that axis x (its number on the others)."""


def cells_of(space: Space) -> int:
    """Return the number of cells; one without axes.

    >>> cells_of((Axis(cells=3), Axis(cells=22, ordered=True)))
    66
    """
    return math.prod(axis.cells for axis in space)
