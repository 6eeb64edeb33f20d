"""What one privacy unit contributes to a release, and how far that can move the release's nodes."""

import math
from dataclasses import dataclass

from privacy.constraint import AtOnce, Constraint
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
        constraint: what is enforced.
        window: length of a leaf in microseconds.
        owner: whether a unit may own several entries.
        protects: all that it does, or whatever it does in a span of time.
    """

    components: tuple[Component, ...]
    cells: int
    constraint: Constraint
    window: int
    owner: bool
    protects: Protection = EVERYTHING

    def __post_init__(self) -> None:
        if isinstance(self.protects, Span) != isinstance(self.constraint, AtOnce):
            raise ValueError(
                "what a unit does in a span of time is bounded by what it is at once, and all that it ever does by its "
                "changes: give AtOnce with a Span, and another constraint without"
            )
