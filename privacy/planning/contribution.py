"""What one privacy unit contributes to a release, and how far that can move the release's nodes."""

import math
from dataclasses import dataclass

from privacy.cells.corners import Corner
from privacy.cells.product import Product
from privacy.constraint import AtOnce, Constraint
from privacy.counted import counted
from privacy.measure import Component
from privacy.protection import EVERYTHING, Protection, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Joint norms of one unit's node vector, in normalised units (component / its largest value).

    Attributes:
        l1, l2: over the whole release; where a strategy is not sparse, l1 is by Cauchy and Schwarz.
        nodes: nodes that the unit can touch.
        node_l1, node_l2: largest norm within one node (all its cells and components).
        coordinates: numbers that can differ between neighbours.
    """

    l1: float
    l2: float
    nodes: int
    node_l1: float
    node_l2: float
    coordinates: int


def charged_as_one(l2: float, *, nodes: int, coordinates: int) -> Sensitivity:
    """Of a strategy that is not sparse: its nodes as one, in L1 by Cauchy and Schwarz."""
    l1 = l2 * math.sqrt(coordinates)
    return Sensitivity(l1=l1, l2=l2, nodes=nodes, node_l1=l1, node_l2=l2, coordinates=coordinates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one unit contributes, whatever the strategy.

    Attributes:
        components: of the measure.
        cells: of the query.
        over: the strategy over cells; None where each cell has noise of its own.
        constraint: what is enforced.
        window: length of a leaf in microseconds.
        slack: m leaves in a row are at least m * window - slack long.
        owner: whether a unit may own several entries.
        protects: all that it does, or whatever it does in a span of time, or where it is.
        apart: where only that is protected, how many cells neighbours are apart along each axis, at most.
    """

    components: tuple[Component, ...]
    cells: int
    constraint: Constraint
    window: int
    owner: bool
    protects: Protection = EVERYTHING
    over: Product | None = None
    apart: tuple[int, ...] = ()
    slack: int = 0

    @property
    def columns(self) -> int:
        """Of the leaves that a strategy in time works on: cells, or nodes of a strategy over cells."""
        return self.cells if self.over is None else self.over.nodes

    @property
    def filled(self) -> int:
        """In how many columns a state is, at most, or the difference of two that are near each other."""
        each = 1 if self.over is None else self.over.filled
        return 2 * each if self.apart else each

    def corners(self, power: int) -> tuple[Corner, ...]:
        """Of the columns of any two cells; none where each cell counts by itself."""
        return () if self.over is None else self.over.corners(power, self.apart or None)

    def __post_init__(self) -> None:
        block = self.constraint.block if isinstance(self.constraint, AtOnce) else None
        if isinstance(self.protects, Span) and block is not None and block < self.protects.length + self.slack:
            raise ValueError("a block in which changes are counted is at least as long as the span")
        near = isinstance(self.protects, Span) and bool(self.protects.near)
        if near != bool(self.apart) or (near and (self.over is None or not any(self.apart))):
            raise ValueError("to protect where a unit is, say how many cells are near along each axis, some above 0")
        if near and isinstance(self.constraint, AtOnce) and self.constraint.changes is not None:
            raise ValueError("at_most: units that are near each other may use up their changes at different times")
        if isinstance(self.protects, Span) != isinstance(self.constraint, AtOnce):
            raise ValueError(
                "what a unit does in a span of time is bounded by what it is at once, and all that it ever does by its "
                "changes: give AtOnce with a Span, and another constraint without"
            )
        if isinstance(self.protects, Span) and self.over is not None and not self.over.blocks:
            raise ValueError("a mixed strategy over cells is not for a span of time: its rows fall into no blocks")
        if self.over is not None and self.over.cells != self.cells:
            raise ValueError(f"the strategy covers {counted(self.over.cells, 'cell')}, but the query has {self.cells}")
