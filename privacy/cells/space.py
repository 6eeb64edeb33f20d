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
        children: of a hierarchy, the number of nodes below each node, for each layer above the cells
            (privacy.cells.nested); empty without one.
    """

    cells: int
    ordered: bool = False
    children: tuple[tuple[int, ...], ...] = ()

    @property
    def listed(self) -> bool:
        """Whether its cells have neither an order nor a hierarchy."""
        return not (self.ordered or self.children)

    def __post_init__(self) -> None:
        at_least("cells", self.cells, 1)
        if self.children and (self.ordered or sum(self.children[0]) != self.cells):
            raise ValueError(f"children: a hierarchy of the {self.cells} cells of an axis without an order")


Space = tuple[Axis, ...]
"""Axes of a query: a cell's number is its place on the last axis + cells of that axis x (its number on the others)."""


def cells_of(space: Space) -> int:
    """Return the number of cells; one without axes.

    >>> cells_of((Axis(cells=3), Axis(cells=22, ordered=True)))
    66
    """
    return math.prod(axis.cells for axis in space)
