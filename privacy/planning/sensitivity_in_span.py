"""Sensitivity of the nodes of a release to one privacy unit in a span of time (privacy.protection.Span).

Neighbours: all units have the same states at all times, except one unit in one span of time, in which it is absent from
one of the two. So its states differ at most at w consecutive ends of windows, w = ceil(span / window), where it is in
the query with at most n entries in one of the two, and not at all in the other. Net changes are a function of the
states at these boundaries alone (privacy.constraint.AtOnce), so nothing else differs. Norms are as in
privacy.planning.sensitivity, from each strategy's Strategy.norm_apart.

If only the place of a unit is protected (Span.near), neighbours are in each query in both changelogs or in neither,
with the same values, in cells that are near. The difference of two states is v (S e_a - S e_b): r is the largest norm
of these for near cells a and b, and the norms use only r, 2 r and w (docs/proofs/cells.md#distance).

`entered` and `left` are functions of the unit's mutations in a window and of its state before: a visit within one
window has entered and left. An entry has one event in each window and cell, of which the first n of a unit in a window
count if they enter, and the last n if they leave (transforms.aggregation.leaf_sums). Let the unit be absent in one of
the two changelogs from time s on, and in the states of the other again at time t (within `length` after s): the same up
to s, and from t on. The windows that contain [s, t] are at most w + 1. For `entered`, in each except the one with t,
the events up to s are the same, and only the other changelog has events after s: they differ by at most n. In the one
with t both have up to n events, in any cells. For `left` time is reversed: these are in the window with s. So w windows
differ by at most n events of one changelog, and one window by n of each: N = w + 1 events of each of n entries, and n
events that *return*. In one cell, where all have one sign, events and returning events cancel, and only N counts.

A node of s windows contains at most s of an entry's N events, and the sum of squares is largest if they fill nodes;
events of different entries may share a node and a cell. Returning events have the other sign: in other cells their
squares are added; values of both signs may add up with the events in a node.

A unit that counts once in each cell is in at most m = min(n, cells) of them at a time, and has at most one event in
each window and cell. So m takes the place of n in L1, and of n^2 in squares: its cells are different, and their squares
add up. Returning events are in at most cells - m other cells.

Source: event-level and w-event privacy, Kellaris, Papadopoulos, Xiao, Papadias, VLDB 2014; the norms are own results.
"""

import math
from fractions import Fraction

from privacy.planning.contribution import Contribution, Sensitivity, charged_as_one
from privacy.planning.sensitivity_in_blocks import (
    closer_events,
    events_in_blocks,
    net_in_blocks,
    squared_in_blocks,
)
from privacy.states import States, apart_in_l1, apart_in_l2_squared, in_l1, near_in_l1, near_in_l2_squared
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
    entries, _ = unit.at_once(entries)
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
    16.0

    Under a strategy over cells, whose weights are not negative, the norm of n events is at most n r, for any cells.
    """
    if unit.apart:
        raise ValueError("what entered and left depends on where a unit was before, which may be near or not")
    if unit.over is not None and _renewed(unit):
        raise ValueError("what entered and left has no strategy over cells where changes are counted block by block")
    boundaries, most = _apart(unit)
    events, met, (entries, squared) = boundaries + 1, boundaries + 1, unit.at_once(most)
    if _renewed(unit):
        events, met, (entries, squared) = events_in_blocks(unit)
    if strategy.windows is not None:
        events, met = min(events, strategy.windows), min(met, strategy.windows)
    one = apart_in_l1(unit.components, unit.cells, 1, unit.corners(1)).times(entries).radius
    two = apart_in_l2_squared(unit.components, 1, unit.corners(2)).times(squared).radius
    crossed, moved, longer = (0, 0, 0) if _renewed(unit) else _returning(unit)
    in_layers = [fullest(events, leaves) for leaves in strategy.disjoint_layers]
    together = max(max(counts) for counts in in_layers)
    squares = sum(squares_with(counts, crossed, moved) for counts in in_layers)
    closer = closer_events(strategy, unit) if _renewed(unit) else (math.inf, math.inf)
    return Sensitivity(
        l1=min(above(len(in_layers) * (events * one + longer)), closer[0]),
        l2=min(root_above(squares * two), closer[1]),
        nodes=len(in_layers) * met,
        node_l1=above(together * one + longer),
        node_l2=root_above(squares_with([together], crossed, moved) * two),
        coordinates=len(in_layers) * (met + 1) * min(unit.columns, entries * unit.filled) * len(unit.components),
    )


def _returning(unit: Contribution) -> tuple[Fraction, Fraction, Fraction]:
    """Return the additional cost of returning events.

    Returns:
        Share of the components that add up with events, and of those in other cells, for squares; and the L1 norm.
    """
    number, (entries, _) = len(unit.components), unit.at_once(_apart(unit)[1])
    if unit.distinct and unit.over is None:
        others = Fraction(min(entries, unit.cells - entries))
        return Fraction(0), others / entries, others
    signed = sum(c.low < 0 < c.high for c in unit.components)
    elsewhere = number - signed if unit.cells > 1 else 0
    states = in_l1(unit.components, unit.cells, unit.corners(1))
    longer = entries * (states.diameter - states.radius)
    return Fraction(signed, number), Fraction(elsewhere, number), longer


def squares_with(counts: list[int], crossed: Fraction | int, elsewhere: Fraction | int) -> Fraction | int:
    """Return the sum of squares of the nodes of a layer and of one more event.

    Args:
        counts: number of an entry's events in each node, the largest first.
        crossed: share of the components that add up with the events of a node.
        elsewhere: share of the components in other cells.
    """
    return sum(count * count for count in counts) + crossed * (2 * counts[0] + 1) + elsewhere


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
    one, squared = unit.at_once(entries)
    if power == 1:
        return apart_in_l1(unit.components, unit.cells, 1, unit.corners(1)).times(one)
    return apart_in_l2_squared(unit.components, 1, unit.corners(2)).times(squared)


def _renewed(unit: Contribution) -> bool:
    """Return whether changes are counted block by block, so that counted states may differ for longer."""
    return unit.promise.counts_changes


def _apart(unit: Contribution) -> tuple[int, int]:
    """Return w and n."""
    assert unit.promise.boundaries is not None
    assert unit.promise.constraint.at_once is not None
    return unit.promise.boundaries, unit.promise.constraint.at_once.entries
