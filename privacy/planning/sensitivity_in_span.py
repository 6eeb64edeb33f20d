"""Sensitivity of the nodes of a release to one privacy unit in a span of time (privacy.protection.Span).

Neighbours: all units have the same states at the ends of all windows, except one unit at w consecutive boundaries, w =
ceil(span / window), where it is in the query with at most n entries in one of the two, and not at all in the other.
Published numbers are a function of the states at these boundaries alone (privacy.constraint.AtOnce), so nothing else
differs. Norms are as in privacy.planning.sensitivity, from each strategy's Strategy.norm_apart.

If only the place of a unit is protected (Span.near), neighbours are in each query in both changelogs or in neither,
with the same values, in cells that are near. The difference of two states is v (S e_a - S e_b): r is the largest norm
of these for near cells a and b, and the norms use only r, 2 r and w (docs/proofs/cells.md#distance).

`entered` and `left`. An entry enters in a window if at its end it is in a cell in which it was not at the end of the
window before; so an entry has at most one event in a window. Let a window lie in the span if its end is a boundary of
the span, and add the window after it. In each of these w + 1 windows the events of the two trajectories differ by at
most n:

    inside         one of them has no state at its end, so only the other can have entered: at most n entries have. In
                   all windows except the first, one of them had no state before, so only the other can have left; in
                   the first, both had the same states before, and all of these left the one without state now, and some
                   of them left the other
    the one after  both have the same states now, and one had none before: all of these entered that one, and some of
                   them entered the other, and only the other can have left

So there are N = w + 1 events of each of n entries, in as many windows. A node of s windows contains at most s of an
entry's events, and the sum of squares is largest if they fill nodes; events of different entries may share a node and a
cell.

Source: event-level and w-event privacy, Kellaris, Papadopoulos, Xiao, Papadias, VLDB 2014; the norms are own results.
"""

import math

from privacy.planning.contribution import Contribution, Sensitivity, charged_as_one
from privacy.planning.sensitivity_in_blocks import events_in_blocks, net_in_blocks, squared_in_blocks
from privacy.states import States, apart_in_l1, apart_in_l2_squared, near_in_l1, near_in_l2_squared
from privacy.strategies.base import Strategy
from privacy.upward import above, root_above

MOST_FULL = 10_000
"""For more full nodes, one number of at least their sum of squares is charged."""


def net_apart(strategy: Strategy, unit: Contribution, *, closely: bool = False) -> Sensitivity:
    """Return the sensitivity of the nodes of net changes, in normalised units, for neighbours as above.

    Args:
        strategy: the strategy in time.
        unit: contribution of one unit, in leaves of the strategy.
        closely: not used; no bound in a span of time needs it.

    >>> from privacy.constraint import AtOnce
    >>> from privacy.measure import Component
    >>> from privacy.planning.promise import Promise
    >>> from privacy.protection import Span
    >>> from privacy.strategies.direct.direct import Direct
    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> promise = Promise(constraint=AtOnce(), window=1, windows=None, owner=False, protects=Span(14))
    >>> unit = Contribution(promise=promise, components=count, cells=9)
    >>> net_apart(Direct(windows=None), unit).l1
    14.0
    """
    if _renewed(unit):
        return net_in_blocks(strategy, unit, closely=closely)
    boundaries, entries = _apart(unit)
    in_one, in_two = _states(unit, 1), _states(unit, 2)
    largest = [c.largest for c in unit.components]
    moved = strategy.moved_apart(boundaries, cells=unit.columns, each=unit.filled, largest=largest, entries=entries)
    l2 = root_above(strategy.norm_apart(in_two, boundaries)) + moved.rounding
    if not strategy.sparse:
        return charged_as_one(l2, nodes=moved.nodes, coordinates=moved.coordinates)
    return Sensitivity(
        l1=above(strategy.norm_apart(in_one, boundaries)),
        l2=l2,
        nodes=moved.nodes,
        node_l1=above(in_one.diameter),
        node_l2=root_above(in_two.diameter),
        coordinates=moved.coordinates,
    )


def squared_apart(strategy: Strategy, unit: Contribution) -> float:
    """Return the squared L2 norm of net changes, without rounding."""
    if _renewed(unit):
        return squared_in_blocks(strategy, unit)
    return float(strategy.norm_apart(_states(unit, 2), _apart(unit)[0]))


def events_apart(strategy: Strategy, unit: Contribution) -> Sensitivity:
    """Return the sensitivity of entered or left entries, in normalised units, for neighbours as above.

    >>> from privacy.constraint import AtOnce
    >>> from privacy.measure import Component
    >>> from privacy.planning.promise import Promise
    >>> from privacy.protection import Span
    >>> from privacy.strategies.tree.tree import Tree
    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> promise = Promise(constraint=AtOnce(), window=1, windows=None, owner=False, protects=Span(14))
    >>> unit = Contribution(promise=promise, components=count, cells=9)
    >>> events_apart(Tree(branching=2, height=1, refine="none", windows=None, initial_level=False), unit).l1
    15.0

    In each window the events of n entries at once differ, all of one sign: in one of the two changelogs the unit is
    absent, or was absent. Under a strategy over cells their norm is at most n r, for any cells.
    """
    if unit.apart:
        raise ValueError("what entered and left depends on where a unit was before, which may be near or not")
    if unit.over is not None and _renewed(unit):
        raise ValueError("what entered and left has no strategy over cells where changes are counted block by block")
    boundaries, entries = _apart(unit)
    events, entries = events_in_blocks(unit) if _renewed(unit) else (boundaries + 1, entries)
    events = events if strategy.windows is None else min(events, strategy.windows)
    one = apart_in_l1(unit.components, unit.cells, entries, unit.corners(1)).radius
    two = apart_in_l2_squared(unit.components, entries, unit.corners(2)).radius
    in_layers = [fullest(events, leaves) for leaves in strategy.disjoint_layers]
    together = max(max(counts) for counts in in_layers)
    return Sensitivity(
        l1=above(len(in_layers) * events * one),
        l2=root_above(sum(count * count for counts in in_layers for count in counts) * two),
        nodes=len(in_layers) * events,
        node_l1=above(together * one),
        node_l2=root_above(together * together * two),
        coordinates=len(in_layers) * events * min(unit.columns, entries * unit.filled) * len(unit.components),
    )


def fullest(events: int, size: int) -> list[int]:
    """Return the number of an entry's events in each node of `size` windows that maximises the sum of their squares.

    >>> fullest(15, 4)
    [4, 4, 4, 3]
    """
    full, rest = divmod(events, size)
    if full <= MOST_FULL:
        return [size] * full + [rest]
    return [math.isqrt(events * size) + 1]  # one number of at least that sum of squares


def _states(unit: Contribution, power: int) -> States:
    """Return the sizes of the difference of two trajectories while they are apart."""
    _, entries = _apart(unit)
    if unit.apart:
        near = near_in_l1 if power == 1 else near_in_l2_squared
        return near(unit.components, entries, unit.corners(power))
    if power == 1:
        return apart_in_l1(unit.components, unit.cells, entries, unit.corners(1))
    return apart_in_l2_squared(unit.components, entries, unit.corners(2))


def _renewed(unit: Contribution) -> bool:
    """Return whether changes are counted block by block, so that counted states may differ for longer."""
    return unit.promise.counts_changes


def _apart(unit: Contribution) -> tuple[int, int]:
    """Return w and n."""
    assert unit.promise.boundaries is not None
    assert unit.promise.constraint.at_once is not None
    return unit.promise.boundaries, unit.promise.constraint.at_once.entries
