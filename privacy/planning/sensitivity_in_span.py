"""How far one privacy unit can move the nodes of a release in a span of time (privacy.protection.Span).

Neighbours: all units are in the same states at the ends of all windows, but for one unit at w boundaries in a row, w =
ceil(span / window), where it is in the query with at most n entries in one of the two, and not at all in the other.
What is published is a function of the states at these boundaries alone (privacy.constraint.AtOnce), so nothing else
differs. Norms are as in privacy.planning.sensitivity, for every strategy its own (Strategy.norm_apart).

Where only the place of a unit is protected (Span.near), neighbours are in each query by both or by neither, with the
same values, in cells that are near. The difference of two states is v (S e_a - S e_b): r is the largest norm of these
for near cells a and b, and r, 2 r and w are all that the norms use (docs/proofs/cells.md#distance).

`entered` and `left`. An entry entered in a window if it is in a cell at its end in which it was not at the end of the
window before; so an entry has one event in a window at most. Let a window lie in the span if its end is a boundary of
it, and one more follow. In each of these w + 1 windows the events of the two trajectories differ by n at most:

    inside         one of them is none at its end, so only the other can have entered: at most n have. In all windows
                   but the first, one of them was none before, so only the other can have left; in the first, both were
                   the same before, and what left of one that is none now are all of these, of the other some
    the one after  both are the same now, and one was none before: what entered of that one are all of these, of the
                   other some, and only the other can have left

So N = w + 1 events of each of n entries, in as many windows. A node of s windows holds at most s of an entry's, and the
sum of squares is the largest when they fill nodes; events of different entries may share a node and a cell.

Source: maths of event-level and w-event privacy, Kellaris, Papadopoulos, Xiao, Papadias, VLDB 2014; norms ours.
"""

import math

from privacy.constraint import AtOnce
from privacy.planning.contribution import Contribution, Sensitivity, charged_as_one
from privacy.planning.sensitivity_in_blocks import events_in_blocks, net_in_blocks, squared_in_blocks
from privacy.states import States, apart_in_l1, apart_in_l2_squared, near_in_l1, near_in_l2_squared
from privacy.strategies.base import Strategy
from privacy.upward import above, root_above

MOST_FULL = 10_000
"""More full nodes than these are charged as one number of at least their sum of squares."""


def net_apart(strategy: Strategy, unit: Contribution, *, closely: bool = False) -> Sensitivity:
    """Sensitivity of net changes.

    >>> from privacy.measure import Component
    >>> from privacy.planning.promise import Promise
    >>> from privacy.protection import Span
    >>> from privacy.strategies.direct import Direct
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
    """Squared L2 norm of net changes, but for rounding."""
    if _renewed(unit):
        return squared_in_blocks(strategy, unit)
    return float(strategy.norm_apart(_states(unit, 2), _apart(unit)[0]))


def events_apart(strategy: Strategy, unit: Contribution) -> Sensitivity:
    """Sensitivity of the entries that entered or left, per node and cell.

    >>> from privacy.measure import Component
    >>> from privacy.planning.promise import Promise
    >>> from privacy.protection import Span
    >>> from privacy.strategies.tree import Tree
    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> promise = Promise(constraint=AtOnce(), window=1, windows=None, owner=False, protects=Span(14))
    >>> unit = Contribution(promise=promise, components=count, cells=9)
    >>> events_apart(Tree(branching=2, height=1, refine="none", windows=None, initial_level=False), unit).l1
    15.0

    In each window the events of n entries at once differ, all of one sign: by one of the two it is not there, or was
    not. Under a strategy over cells they are n r long at most, whichever cells these are.
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
    """How many of an entry's events stand in each node of `size` windows where their squares add up to the most.

    >>> fullest(15, 4)
    [4, 4, 4, 3]
    """
    full, rest = divmod(events, size)
    if full <= MOST_FULL:
        return [size] * full + [rest]
    return [math.isqrt(events * size) + 1]  # one number of at least that sum of squares


def _states(unit: Contribution, power: int) -> States:
    """Sizes of the difference of two trajectories while they are apart."""
    _, entries = _apart(unit)
    if unit.apart:
        near = near_in_l1 if power == 1 else near_in_l2_squared
        return near(unit.components, entries, unit.corners(power))
    if power == 1:
        return apart_in_l1(unit.components, unit.cells, entries, unit.corners(1))
    return apart_in_l2_squared(unit.components, entries, unit.corners(2))


def _renewed(unit: Contribution) -> bool:
    """Whether changes are counted block by block, so that what counts may differ for longer."""
    return unit.promise.counts_changes


def _apart(unit: Contribution) -> tuple[int, int]:
    """w and n."""
    assert unit.promise.boundaries is not None
    assert isinstance(unit.promise.constraint, AtOnce)
    return unit.promise.boundaries, unit.promise.constraint.entries
