"""States of one entry: the size of the largest one, and the largest distance between two.

Each component is measured in units of its largest size, so that every component is at most 1. No state counts as 0.
Sizes are exact fractions: a third that is rounded down would be charged too little.

    radius      norm of the largest state
    diameter    largest distance between two states, no state included
    hulls       for one cell: the length of the interval that contains a component's values and 0, for each component

States lie in cells, or in the nodes of a strategy over cells (privacy.cells): there each cell is a column of weights,
and `corners` gives their weights and common weights (privacy.cells.corners).

For the difference of two trajectories (privacy.protection.Span) these are the sizes of its possible values: it may
change its sign, so its diameter is twice its radius.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from privacy.measure import Component


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """Sizes of a set of states in one norm: L1, or L2 squared.

    Every bound of trees and sliding windows is linear in them, so one class serves both norms.

    Attributes:
        radius, diameter: as above; squared for L2.
        hulls: as above, squared for L2; empty for several cells.
        squared: whether they are those for L2; only strategies with noise of several widths need this.
    """

    radius: Fraction
    diameter: Fraction
    hulls: tuple[Fraction, ...]
    squared: bool = field(default=False, repr=False)

    def times(self, factor: int) -> "States":
        """Return the sizes for a sum of `factor` states; in L2, these states must be in different cells."""
        hulls = tuple(factor * hull for hull in self.hulls)
        return States(radius=factor * self.radius, diameter=factor * self.diameter, hulls=hulls, squared=self.squared)


Corners = tuple[tuple[int, int, int], ...]
"""Corners as in privacy.cells.corners; empty if each cell has its own noise."""


@lru_cache(maxsize=256)
def in_l1(components: tuple[Component, ...], cells: int, corners: Corners = ()) -> States:
    """Return the sizes in L1, in normalised units.

    Args:
        components: components of the measure.
        cells: number of cells of the query.
        corners: corners of the strategy over cells; empty if each cell has its own noise.

    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> in_l1(count, 1), in_l1(count, 20).diameter
    (States(radius=Fraction(1, 1), diameter=Fraction(1, 1), hulls=(Fraction(1, 1),)), Fraction(2, 1))
    """
    return _sizes(components, cells, corners, power=1)


@lru_cache(maxsize=256)
def in_l2_squared(components: tuple[Component, ...], cells: int, corners: Corners = ()) -> States:
    """Return the squares of the sizes in L2, in normalised units. Args: as for `in_l1`.

    >>> in_l2_squared((Component(name="sum", grid=1.0, low=-10, high=10),), 1)
    States(radius=Fraction(1, 1), diameter=Fraction(4, 1), hulls=(Fraction(4, 1),))
    """
    return _sizes(components, cells, corners, power=2)


def apart_in_l1(components: tuple[Component, ...], cells: int, entries: int, corners: Corners = ()) -> States:
    """Return the sizes in L1 of the difference of two trajectories, of which one has no state at each moment.

    Args:
        components: components of the measure.
        cells: number of cells of the query.
        entries: largest number of entries of the unit at once.
        corners: corners of the strategy over cells; empty if each cell has its own noise.

    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> apart_in_l1(count, 1, 3)
    States(radius=Fraction(3, 1), diameter=Fraction(6, 1), hulls=(Fraction(6, 1),))
    """
    radius = Fraction(entries * len(components) * _largest(corners))
    return States(radius=radius, diameter=2 * radius, hulls=() if cells > 1 else (2 * radius,))


def apart_in_l2_squared(components: tuple[Component, ...], entries: int, corners: Corners = ()) -> States:
    """Return the squares of the sizes in L2 of such a difference, for any number of cells.

    The worst case is on a line (privacy.strategies.tree.apart).

    Args:
        components: components of the measure.
        entries: largest number of entries of the unit at once.
        corners: corners of the strategy over cells; empty if each cell has its own noise.
    """
    radius = Fraction(entries * entries * len(components) * _largest(corners))
    return States(radius=radius, diameter=4 * radius, hulls=(4 * radius,), squared=True)


def near_in_l1(components: tuple[Component, ...], entries: int, corners: Corners) -> States:
    """Return the sizes in L1 of the difference of two trajectories that are near each other, with the same values.

    Args:
        components: components of the measure.
        entries: largest number of entries of the unit at once.
        corners: corners of two cells at that distance.

    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> near_in_l1(count, 1, ((9, 5, 5), (9, 9, 9))).diameter
    Fraction(8, 1)
    """
    radius = Fraction(entries * len(components) * _farthest(corners))
    return States(radius=radius, diameter=2 * radius, hulls=())


def near_in_l2_squared(components: tuple[Component, ...], entries: int, corners: Corners) -> States:
    """Return the squares of the sizes in L2 of such a difference; over many cells they may exceed those on a line.

    Args: as for `near_in_l1`.
    """
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
    """Return the largest distance of two states in one component: it is convex, so it is reached at ends of ranges."""
    one, other, both = corner
    ends = [Fraction(end, component.largest) for end in (component.low, component.high)]
    return max(
        abs(x) ** power * (one - both) + abs(y) ** power * (other - both) + abs(x - y) ** power * both
        for x in ends
        for y in ends
    )


def _hulls(components: tuple[Component, ...]) -> list[Fraction]:
    return [Fraction(max(c.high, 0) - min(c.low, 0), c.largest) for c in components]
