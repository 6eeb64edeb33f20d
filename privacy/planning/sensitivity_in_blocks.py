"""Sensitivity of a release to one privacy unit in a span of time, if its changes are counted block by block.

Under `AtOnce(n, changes=k, block=v)` time is divided into blocks of v windows, no shorter than the span, from the start
on. The counted state of a unit follows its state for k - 1 changes in a block and is then held; at the end of the
block's last window it is the state again, which is a change too: at most k in a block. Neighbours
(privacy.protection.Span) have the same states at all ends of windows except some consecutive ones, which lie in two
consecutive blocks. So the counted states are the same outside these two blocks, and inside them the two trajectories x
and x' change at most 2 k times each; the unit can be present in both at once.

Their difference C (x - x') is bounded in three ways, and the smallest is charged (docs/proofs/strategies.md#blocks):

    by changes      g(2 k) + g(2 k - 1), with g(m) the norm of one entry with m changes whose states are as far apart as
                    possible (radius = diameter): both change at most 2 k times, and in the last leaf in which they
                    differ one change serves both. With one component in one cell, whose state jumps between two ends,
                    the numbers of changes of both differ by an even number: the larger of 2 g(2 k - 1) and g(2 k) +
                    g(2 k - 2).
    by boundaries   they are apart at 2 v - 1 ends of windows, charged as 2 v: the norm of such a span (norm_apart). Its
                    states are differences: of two entries at once, or in one cell as long as the interval. In L2, in
                    several cells, they are also vectors no longer than the diameter.
    exactly         at most 16 changes in a block: the largest sum over all ends of windows, of |h - h'| for levels, or
                    of |x - x'| times the number of nodes that contain one leaf (privacy.planning.worst_in_blocks). In
                    L2 for levels and disjoint windows alone. For counts no smaller charge is possible: some neighbours
                    are that far apart.

An owner's n entries change at the ends of the same at most 2 k windows. So its trajectory is the sum of those of n
entries, each of which is bounded as above, and all norms are n times as large: n entries that move together reach this.
A unit that counts once in each cell is in at most m = min(n, cells) cells at once, whose squares add up: its states are
sqrt(m) times as large in L2, and as far apart, and m times in L1.

`entered` and `left`: each trajectory has at most 2 k events of each entry, in as many windows, so that the norms of
both are charged as those of two entries, or 2 n, in the same windows. The windows of both may differ: at most 4 k of 2
v. The largest sum of the differences of both bounds the events closer, as above.

Source: own result; the norms are those of privacy.planning.sensitivity and privacy.planning.sensitivity_in_span.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from privacy.constraint import AtOnce
from privacy.planning.contribution import Contribution, Sensitivity, charged_as_one
from privacy.planning.worst_in_blocks import Sum, worst
from privacy.states import States, apart_in_l1, apart_in_l2_squared, in_l1, in_l2_squared
from privacy.strategies.base import Strategy, of_one_width
from privacy.touched import at_most
from privacy.upward import above, root_above

_ONE = States(radius=Fraction(1), diameter=Fraction(1), hulls=())
"""States of which one change has the L1 norm of a column: the number of nodes that contain one leaf."""


def net_in_blocks(strategy: Strategy, unit: Contribution, *, closely: bool = False) -> Sensitivity:
    """Return the sensitivity of the nodes of net changes, in normalised units, for neighbours as above.

    Args:
        strategy: the strategy in time.
        unit: contribution of one unit; of an owner, the entries that count at once.
        closely: whether the computation may take longer for a smaller bound, if the strategy is certifiable.

    >>> from privacy.measure import Component
    >>> from privacy.planning.promise import Promise
    >>> from privacy.protection import Span
    >>> from privacy.strategies.tree.tree import Tree
    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> constraint = AtOnce(changes=2, block=365)
    >>> promise = Promise(constraint=constraint, window=1, windows=None, owner=False, protects=Span(365))
    >>> unit = Contribution(promise=promise, components=count, cells=1)
    >>> net_in_blocks(Tree(branching=2, height=1, refine="none", windows=None, initial_level=False), unit).l1
    6.0
    """
    changes, boundaries = _blocks(unit)
    in_one, in_two = _states(unit, in_l1, 1), _states(unit, in_l2_squared, 2)
    largest = [c.largest for c in unit.components]
    entries, squared = unit.at_once(_entries(unit))
    apart = strategy.moved_apart(boundaries, cells=unit.columns, each=unit.filled, largest=largest, entries=2 * entries)
    l1 = above(_by_boundaries(strategy, unit, in_one)) if strategy.sparse else 0.0
    l2 = root_above(_by_boundaries(strategy, unit, in_two)) + apart.rounding
    nodes, coordinates = apart.nodes, apart.coordinates
    if not strategy.of_levels:
        counted = strategy.moved(at_most(changes), cells=unit.columns, each=unit.filled, largest=largest, shared=False)
        nodes, coordinates = min(nodes, 2 * counted.nodes), min(coordinates, 2 * entries * counted.coordinates)
        l2 = min(l2, _by_changes(strategy, unit, in_two, root_above, closely) + 2 * entries * counted.rounding)
        l1 = min(l1, _by_changes(strategy, unit, in_one, above, closely)) if strategy.sparse else 0.0
    if not strategy.sparse:
        return charged_as_one(l2, nodes=1, coordinates=coordinates)
    net: Sum = "level" if strategy.of_levels else "change"
    return Sensitivity(
        l1=min(l1, _exactly(net, strategy, unit, in_one)),
        l2=min(l2, _exactly(net, strategy, unit, in_two)),
        nodes=nodes,
        node_l1=above(entries * _differences(unit, in_one)[0].diameter),
        node_l2=root_above(squared * min(apart.diameter for apart in _differences(unit, in_two))),
        coordinates=coordinates,
    )


def squared_in_blocks(strategy: Strategy, unit: Contribution) -> float:
    """Return the squared L2 norm of net changes, without rounding."""
    in_two = _states(unit, in_l2_squared, 2)
    bound = float(_by_boundaries(strategy, unit, in_two))
    if not strategy.of_levels:
        bound = min(bound, _by_changes(strategy, unit, in_two, root_above, False) ** 2)
    return min(bound, _exactly("level" if strategy.of_levels else "change", strategy, unit, in_two) ** 2)


def closer_events(strategy: Strategy, unit: Contribution) -> tuple[float, float]:
    """Return bounds in L1 and L2 of the nodes of entered or left entries, in normalised units, for neighbours as above.

    Both are infinite if they are not known.
    """
    in_one, in_two = _states(unit, in_l1, 1), _states(unit, in_l2_squared, 2)
    one, two = (
        max(_exactly("entered", strategy, unit, states), _exactly("left", strategy, unit, states))
        for states in (in_one, in_two)
    )
    return one, two


def events_in_blocks(unit: Contribution) -> tuple[int, int, tuple[int, int]]:
    """Return the most windows with events of one trajectory, and of any; and the norms of the events of both in one."""
    changes, boundaries = _blocks(unit)
    events, met = min(changes, boundaries), min(2 * changes, boundaries)
    if unit.distinct and unit.over is None:  # events are not negative, so the squares of both add up
        cells, _ = unit.at_once(_entries(unit))
        return events, met, (2 * cells, 2 * cells)
    return events, met, unit.at_once(2 * _entries(unit))


def _states(unit: Contribution, of: Callable[..., States], power: int) -> States:
    return of(unit.components, unit.cells, unit.corners(power))


def _by_changes(
    strategy: Strategy, unit: Contribution, states: States, length: Callable[[Fraction], float], closely: bool
) -> float:
    (changes, _), (entries, squared) = _blocks(unit), unit.at_once(_entries(unit))
    inside = squared if unit.distinct and states.squared else 1
    outside = 1 if inside > 1 else entries
    shifted = States(radius=states.diameter, diameter=states.diameter, hulls=states.hulls, squared=states.squared)

    def norm(number: int) -> Fraction:
        bound = strategy.norm(shifted, at_most(number), closely=closely) if number else Fraction(0)
        return Fraction(length(inside * bound))

    whole, but_one = norm(changes), norm(changes - 1)
    if unit.cells == len(unit.components) == 1:
        return above(outside * max(2 * but_one, whole + norm(changes - 2)))
    return above(outside * (whole + but_one))


def _by_boundaries(strategy: Strategy, unit: Contribution, states: States) -> Fraction:
    _, boundaries = _blocks(unit)
    entries = unit.at_once(_entries(unit))[states.squared]
    return entries * min(strategy.norm_apart(apart, boundaries) for apart in _differences(unit, states))


def _differences(unit: Contribution, states: States) -> list[States]:
    """Return the sizes of the difference of two states that may both be present, in each way to bound them."""
    sign = 4 if states.squared else 2
    if states.hulls:
        length = sum(states.hulls, Fraction(0))
        return [States(radius=length, diameter=sign * length, hulls=(sign * length,), squared=states.squared)]
    if states.squared:
        far = States(radius=states.diameter, diameter=sign * states.diameter, hulls=(), squared=True)
        return [far, apart_in_l2_squared(unit.components, 2, unit.corners(2))]
    return [apart_in_l1(unit.components, unit.cells, 2, unit.corners(1))]


def _exactly(of: Sum, strategy: Strategy, unit: Contribution, states: States) -> float:
    """Return a bound, L1 or L2, from the largest sum over two blocks; infinite if it is not known.

    Args:
        of: what is summed.
        strategy: the strategy in time.
        unit: contribution of one unit, in leaves of the strategy.
        states: sizes of the states of one entry.
    """
    constraint = _at_once(unit)
    assert constraint.changes is not None
    assert constraint.block is not None
    block, rest = divmod(constraint.block, unit.promise.window // unit.leaf)
    one_layer = strategy.of_levels or (strategy.disjoint_layers == (1,) and unit.leaf == 1)
    if rest or not strategy.sparse or not of_one_width(strategy) or (states.squared and not one_layer):
        return math.inf
    plain = not unit.promise.owner and unit.over is None and all(c.low == c.high for c in unit.components)
    largest = worst(
        of,
        states,
        changes=constraint.changes,
        block=block,
        windows=None if strategy.windows is None else strategy.windows * unit.leaf,
        plain=plain,
        alone=plain and unit.cells == 1,
    )
    if largest is None:
        return math.inf
    columns = 1 if strategy.of_levels else strategy.norm(_ONE, at_most(1))
    return (root_above if states.squared else above)(unit.at_once(_entries(unit))[states.squared] * columns * largest)


def _entries(unit: Contribution) -> int:
    """Return the number of entries of a unit that count at once."""
    return _at_once(unit).entries


def _blocks(unit: Contribution) -> tuple[int, int]:
    """Return the number of changes in two blocks, and the largest number of ends of leaves."""
    constraint = _at_once(unit)
    assert constraint.changes is not None
    assert constraint.block is not None
    return 2 * constraint.changes, -(-2 * constraint.block // unit.promise.window)


def _at_once(unit: Contribution) -> AtOnce:
    assert unit.promise.constraint.at_once is not None
    return unit.promise.constraint.at_once
