"""Contribution of one privacy unit to a release, and how far it moves the release's nodes."""

import math
from dataclasses import dataclass

from privacy.cells.corners import Corner
from privacy.cells.product import Product
from privacy.counted import counted
from privacy.measure import Component
from privacy.planning.constraint_rules import change_problems
from privacy.planning.demand import Demand
from privacy.planning.promise import Promise
from privacy.planning.unit_rules import unit_problems
from privacy.problems import enforce, placed


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Joint norms of one unit's node vector, in normalised units (component / its largest value).

    Neighbours are as the promise of the release defines them (privacy.protection).

    Attributes:
        l1, l2: norms over the whole release; if a strategy is not sparse, l1 is by Cauchy and Schwarz.
        nodes: largest number of nodes that the unit touches.
        node_l1, node_l2: largest norm within one node (all its cells and components).
        coordinates: largest number of values that differ between neighbours.
    """

    l1: float
    l2: float
    nodes: int
    node_l1: float
    node_l2: float
    coordinates: int


def charged_as_one(l2: float, *, nodes: int, coordinates: int) -> Sensitivity:
    """Return the sensitivity of a strategy that is not sparse: its nodes as one, in L1 by Cauchy and Schwarz.

    Args:
        l2: joint L2 norm, in normalised units.
        nodes: number of nodes.
        coordinates: largest number of values that differ between neighbours.
    """
    l1 = l2 * math.sqrt(coordinates)
    return Sensitivity(l1=l1, l2=l2, nodes=nodes, node_l1=l1, node_l2=l2, coordinates=coordinates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """Contribution of one unit to a query under any strategy in time.

    Attributes:
        promise: promise whose windows are the leaves of the strategy in time.
        components: components of the measure.
        cells: number of cells of the query.
        over: the strategy over cells; None if each cell has its own noise.
        apart: largest number of cells along each axis between neighbours, if only a place is protected.
        distinct: whether a unit counts once in each cell, for any number of its entries there.
        leaf: number of windows in one leaf.

    Raises:
        ValueError: the strategy over cells or the distances do not fit the query or the promise.
    """

    promise: Promise
    components: tuple[Component, ...]
    cells: int
    over: Product | None = None
    apart: tuple[int, ...] = ()
    distinct: bool = False
    leaf: int = 1

    @classmethod
    def of(cls, demand: Demand, promise: Promise, *, leaf: int = 1, over: Product | None = None) -> "Contribution":
        """Return the contribution to a query under a strategy whose leaves have `leaf` windows.

        Args:
            demand: demand of the query.
            promise: promise of the release.
            leaf: number of windows in one leaf.
            over: the strategy over cells; None if each cell has its own noise.
        """
        return cls(
            promise=promise.in_leaves(leaf),
            components=demand.measure.components,
            cells=demand.cells,
            over=over,
            apart=demand.apart,
            distinct=demand.measure.distinct,
            leaf=leaf,
        )

    @property
    def shared(self) -> bool:
        """Whether several entries of one unit may add up in one cell."""
        return self.promise.owner and not self.distinct

    def at_once(self, entries: int) -> tuple[int, int]:
        """Return the norms of a number of entries at one time in L1 and, squared, in L2: multiples of one state's.

        Entries in one cell add up. A unit that counts once in each cell is in that number of different cells.
        """
        if not self.distinct:
            return entries, entries**2
        return min(entries, self.cells), min(entries, self.cells)

    @property
    def columns(self) -> int:
        """Number of columns of a strategy in time: cells, or nodes of a strategy over cells."""
        return self.cells if self.over is None else self.over.nodes

    @property
    def filled(self) -> int:
        """Largest number of columns in which a state is, or the difference of two near states."""
        each = 1 if self.over is None else self.over.filled
        return 2 * each if self.apart else each

    def corners(self, power: int) -> tuple[Corner, ...]:
        """Return the corners of the columns of any two cells; empty if each cell has its own noise."""
        return () if self.over is None else self.over.corners(power, self.apart or None)

    def __post_init__(self) -> None:
        near = self.promise.span is not None and bool(self.promise.span.near)
        if near != bool(self.apart) or (near and (self.over is None or not any(self.apart))):
            raise ValueError("to protect where a unit is, say how many cells are near along each axis, some above 0")
        if self.distinct and not self.promise.alone:
            enforce(unit_problems(over=self.over is not None, quantiles=False, ranges=False, near=near))
        if self.promise.span is None:
            with placed("privacy", "constraint"):
                enforce(change_problems(self.promise.constraint))
        if self.promise.span is not None and self.over is not None and not self.over.blocks:
            raise ValueError("this strategy over cells does not support a span of time: its rows share cells")
        if self.over is not None and self.over.cells != self.cells:
            raise ValueError(f"the strategy covers {counted(self.over.cells, 'cell')}, but the query has {self.cells}")
