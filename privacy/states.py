"""What one entry can be: how large its states are, and how far from each other.

Each component is measured in its largest size (its unit here), so that every component is at most 1. No state counts as
0. Sizes are exact: a third that is rounded down would be charged too little.

    radius      norm of the largest state
    diameter    largest distance between two states, no state among them
    hulls       for one cell: the length of the interval that holds a component's values and 0, for each component

Of the difference of two trajectories (privacy.protection.Span) they are the sizes of what it can be: it may change its
sign, so its diameter is twice its radius.
"""

from dataclasses import dataclass
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
    """

    radius: Fraction
    diameter: Fraction
    hulls: tuple[Fraction, ...]


@lru_cache(maxsize=256)
def in_l1(components: tuple[Component, ...], cells: int) -> States:
    """Sizes in L1.

    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> in_l1(count, 1), in_l1(count, 20).diameter
    (States(radius=Fraction(1, 1), diameter=Fraction(1, 1), hulls=(Fraction(1, 1),)), Fraction(2, 1))
    """
    radius = Fraction(len(components))
    diameter = max(radius, sum(_widths(components), Fraction(0)))
    return States(
        radius=radius,
        diameter=max(diameter, 2 * radius) if cells > 1 else diameter,
        hulls=() if cells > 1 else tuple(_hulls(components)),
    )


@lru_cache(maxsize=256)
def in_l2_squared(components: tuple[Component, ...], cells: int) -> States:
    """Squares of the sizes in L2.

    >>> in_l2_squared((Component(name="sum", grid=1.0, low=-10, high=10),), 1)
    States(radius=Fraction(1, 1), diameter=Fraction(4, 1), hulls=(Fraction(4, 1),))
    """
    radius = Fraction(len(components))
    diameter = max(radius, sum((w * w for w in _widths(components)), Fraction(0)))
    return States(
        radius=radius,
        diameter=max(diameter, 2 * radius) if cells > 1 else diameter,
        hulls=() if cells > 1 else tuple(h * h for h in _hulls(components)),
    )


def apart_in_l1(components: tuple[Component, ...], cells: int, entries: int) -> States:
    """Sizes in L1 of the difference of two trajectories, one of them none at each moment, of so many entries at once.

    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> apart_in_l1(count, 1, 3)
    States(radius=Fraction(3, 1), diameter=Fraction(6, 1), hulls=(Fraction(6, 1),))
    """
    radius = Fraction(entries * len(components))
    return States(radius=radius, diameter=2 * radius, hulls=() if cells > 1 else (2 * radius,))


def apart_in_l2_squared(components: tuple[Component, ...], entries: int) -> States:
    """Their squares in L2. Whatever the number of cells, the worst is on a line (privacy.strategies.tree_apart)."""
    radius = Fraction(entries * entries * len(components))
    return States(radius=radius, diameter=4 * radius, hulls=(4 * radius,))


def _widths(components: tuple[Component, ...]) -> list[Fraction]:
    """Within a cell component i moves by at most high_i - low_i; into another cell both states count in full."""
    return [Fraction(c.high - c.low, c.largest) for c in components]


def _hulls(components: tuple[Component, ...]) -> list[Fraction]:
    return [Fraction(max(c.high, 0) - min(c.low, 0), c.largest) for c in components]
