"""What one privacy unit contributes to a release, and how far that can move the release's nodes."""

import math
from dataclasses import dataclass

from privacy.cells.corners import Corner
from privacy.cells.product import Product
from privacy.constraint import AtOnce
from privacy.counted import counted
from privacy.measure import Component
from privacy.planning.demand import Demand
from privacy.planning.promise import MISMATCH, Promise


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
    """What one unit contributes to a query, whatever the strategy.

    Attributes:
        promise: its windows are the leaves of the strategy in time.
        components: of the measure.
        cells: of the query.
        over: the strategy over cells; None where each cell has noise of its own.
        apart: where only a place is protected, how many cells neighbours are apart along each axis, at most.

    Raises:
        ValueError: the strategy over cells or the distances do not fit the query or the promise.
    """

    promise: Promise
    components: tuple[Component, ...]
    cells: int
    over: Product | None = None
    apart: tuple[int, ...] = ()

    @classmethod
    def of(cls, demand: Demand, promise: Promise, *, leaf: int = 1, over: Product | None = None) -> "Contribution":
        """The contribution to a query under a strategy whose leaves have `leaf` windows."""
        return cls(
            promise=promise.in_leaves(leaf),
            components=demand.measure.components,
            cells=demand.cells,
            over=over,
            apart=demand.apart,
        )

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
        near = self.promise.span is not None and bool(self.promise.span.near)
        if near != bool(self.apart) or (near and (self.over is None or not any(self.apart))):
            raise ValueError("to protect where a unit is, say how many cells are near along each axis, some above 0")
        if self.promise.span is None and isinstance(self.promise.constraint, AtOnce):
            raise ValueError(MISMATCH)
        if self.promise.span is not None and self.over is not None and not self.over.blocks:
            raise ValueError("a mixed strategy over cells is not for a span of time: its rows fall into no blocks")
        if self.over is not None and self.over.cells != self.cells:
            raise ValueError(f"the strategy covers {counted(self.over.cells, 'cell')}, but the query has {self.cells}")
