"""How a query's cells are arranged: by axes, the first one slowest.

A key of a query is an axis. Listed values have no order. Ranges of numbers or of times have one, the cells for what
lies below and above them being the first and the last: so what is near in value is near in the space.
"""

import math
from dataclasses import dataclass

from privacy.checks import at_least


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One key of a query.

    Attributes:
        cells: along it.
        ordered: whether neighbouring cells hold neighbouring values.
    """

    cells: int
    ordered: bool = False

    def __post_init__(self) -> None:
        at_least("cells", self.cells, 1)


Space = tuple[Axis, ...]
"""The axes of a query: a cell's number is its place on the last one + that one's cells x (its number on the others)."""


def cells_of(space: Space) -> int:
    """How many cells there are; one without axes.

    >>> cells_of((Axis(cells=3), Axis(cells=22, ordered=True)))
    66
    """
    return math.prod(axis.cells for axis in space)
