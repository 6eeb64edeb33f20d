"""What one entry can be: how large its states are, and how far from each other.

Each component is measured in its largest size (its unit here), so that every component is at most 1. No state counts as
0. Sizes are exact: a third that is rounded down would be charged too little.

    radius      norm of the largest state
    diameter    largest distance between two states, no state among them
    hulls       for one cell: the length of the interval that holds a component's values and 0, for each component

States lie in cells, or in the nodes of a strategy over cells (privacy.cells): there each cell is a column of weights,
and `corners` says what two of them have and have in common (privacy.cells.corners).

Of the difference of two trajectories (privacy.protection.Span) they are the sizes of what it can be: it may change its
sign, so its diameter is twice its radius.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from privacy.measure import Component


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """Sizes of a set of states in one norm: L1, or L2 squared.

    Every bound of trees and sliding windows is linear in them, so it serves both norms.

    Attributes:
        radius, diameter: as above; squared for L2.
        hulls: as above, squared for L2; empty for several cells.
        squared: whether they are those for L2; only a strategy whose noise is not of one width must know.
    """

    radius: Fraction
    diameter: Fraction
    hulls: tuple[Fraction, ...]
    squared: bool = field(default=False, repr=False)


Corners = tuple[tuple[int, int, int], ...]
"""See privacy.cells.corners; empty where each cell counts by itself."""


@lru_cache(maxsize=256)
def in_l1(components: tuple[Component, ...], cells: int, corners: Corners = ()) -> States:
    """Sizes in L1.

    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> in_l1(count, 1), in_l1(count, 20).diameter
    (States(radius=Fraction(1, 1), diameter=Fraction(1, 1), hulls=(Fraction(1, 1),)), Fraction(2, 1))
    """
    return _sizes(components, cells, corners, power=1)


@lru_cache(maxsize=256)
def in_l2_squared(components: tuple[Component, ...], cells: int, corners: Corners = ()) -> States:
    """Squares of the sizes in L2.

    >>> in_l2_squared((Component(name="sum", grid=1.0, low=-10, high=10),), 1)
    States(radius=Fraction(1, 1), diameter=Fraction(4, 1), hulls=(Fraction(4, 1),))
    """
    return _sizes(components, cells, corners, power=2)


def apart_in_l1(components: tuple[Component, ...], cells: int, entries: int, corners: Corners = ()) -> States:
    """Sizes in L1 of the difference of two trajectories, one of them none at each moment, of so many entries at once.

    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> apart_in_l1(count, 1, 3)
    States(radius=Fraction(3, 1), diameter=Fraction(6, 1), hulls=(Fraction(6, 1),))
    """
    radius = Fraction(entries * len(components) * _largest(corners))
    return States(radius=radius, diameter=2 * radius, hulls=() if cells > 1 else (2 * radius,))


def apart_in_l2_squared(components: tuple[Component, ...], entries: int, corners: Corners = ()) -> States:
    """Their squares in L2. Whatever the number of cells, the worst is on a line (privacy.strategies.tree_apart)."""
    radius = Fraction(entries * entries * len(components) * _largest(corners))
    return States(radius=radius, diameter=4 * radius, hulls=(4 * radius,), squared=True)


def near_in_l1(components: tuple[Component, ...], entries: int, corners: Corners) -> States:
    """Sizes in L1 of the difference of two trajectories that are near each other at each moment, in the same values.

    Args:
        corners: of two cells that are as near.

    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> near_in_l1(count, 1, ((9, 5, 5), (9, 9, 9))).diameter
    Fraction(8, 1)
    """
    radius = Fraction(entries * len(components) * _farthest(corners))
    return States(radius=radius, diameter=2 * radius, hulls=())


def near_in_l2_squared(components: tuple[Component, ...], entries: int, corners: Corners) -> States:
    """Their squares in L2; of many cells, whose sizes may add up to more than on a line."""
    radius = Fraction(entries * entries * len(components) * _farthest(corners))
    return States(radius=radius, diameter=4 * radius, hulls=(), squared=True)


def _farthest(corners: Corners) -> int:
    return max(one + other - 2 * both for one, other, both in corners)


def _sizes(components: tuple[Component, ...], cells: int, corners: Corners, *, power: int) -> States:
    alone = ((1, 1, 1),) if cells == 1 else ((1, 1, 0), (1, 1, 1))
    radius = Fraction(len(components) * _largest(corners))
    apart = (sum((_apart(c, corner, power) for c in components), Fraction(0)) for corner in corners or alone)
    hulls = tuple(h**power for h in _hulls(components)) if cells == 1 and not corners else ()
    return States(radius=radius, diameter=max(radius, *apart), hulls=hulls, squared=power == 2)


def _largest(corners: Corners) -> int:
    return max((whole for whole, _, _ in corners), default=1)


def _apart(component: Component, corner: tuple[int, int, int], power: int) -> Fraction:
    """How far two states are apart in one component: convex in its two values, so these are ends of its range."""
    one, other, both = corner
    ends = [Fraction(end, component.largest) for end in (component.low, component.high)]
    return max(
        abs(x) ** power * (one - both) + abs(y) ** power * (other - both) + abs(x - y) ** power * both
        for x in ends
        for y in ends
    )


def _hulls(components: tuple[Component, ...]) -> list[Fraction]:
    return [Fraction(max(c.high, 0) - min(c.low, 0), c.largest) for c in components]
