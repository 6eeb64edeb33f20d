"""Sensitivity of the nodes of a release to one privacy unit's whole bounded changelog.

Neighbours: two changelogs that differ by all mutations of one privacy unit (add or remove). The difference of
their exact node vectors is the unit's own node vector, since a release is a sum over units. Norms are taken
over all nodes, cells and components together, each component divided by its largest value (its unit here). If a span
of time is protected instead, neighbours differ: see privacy.planning.sensitivity_in_span.

A *family* is a set of leaf sums:

    net       net change of the query per window and cell, and the initial level
    entered   entries that begin to satisfy the query in a cell, once per entry, window and cell
    left      entries that cease to satisfy it, once per entry, window and cell

For `net`, the strategy bounds what one entry can do (privacy.strategies.base). Several entries of an owner share one k.
Entry e with j_e changes has a vector of norm at most g(j_e), the bound for k = j_e; by the triangle
inequality the owner's is at most

    max { g(j_1) + g(j_2) + ... : j_1 + j_2 + ... = k }                                                            (3)

which is reached for disjoint windows if equal entries move together. If at most n of them are present at once, at the
end of any instant, then visits that do not overlap can be seen as those of one entry, and n such tracks contain all
visits: a sum of at most n terms in (3), and only g(k) for n = 1 (docs/proofs/strategies.md#owners).

Proof for `entered` and `left`. Each event adds a vector of norm <= r to one coordinate block (window, cell), and an
entry at most one to each block. N events of one entry are in N different blocks; a node of a tree with c^i leaves
holds at most c^i of them in one cell. So in each layer L1 <= N r, and the sum of squares is the largest when they fill
nodes: floor(N / c^i) full ones and the rest in one more. Events of different entries of an owner may share a block: L2
<= N r in each layer. With k changes and one cell, entering and leaving alternate, entering first: N = ceil(k/2) and
floor(k/2); but an owner's k changes may all be insertions, so there N = k enter (the usual count is for one entry), or
floor((k + n)/2) if at most n entries are there at once, since no more than n have not left yet.
With several cells a move both leaves and enters: N = k and k - 1. With a time span every block of the touched windows
may be met: N = windows x cells.

A unit that counts once in each cell (`measure: units`) is charged for its indicators: for each cell whether it has an
entry there. Changes to entries in a cell that is occupied anyway change nothing, and an entry that leaves such a cell
can be seen as another one that leaves. So the indicators are those of an owner whose entries are in different cells,
with no more changes, and (3) holds. Also, the indicator of a cell is the trajectory of one entry in one cell. Each
change makes at most one indicator rise and one fall, the first change none fall, and in each cell they alternate: u
rises of a cell go with u or u - 1 falls, and k changes with at most k rises and k - 1 falls in all. So with h(f) the
bound for f changes of one entry in one cell, in L1 or squared L2, the norm is at most

    max { h(2 u_1 - 1) + h(2 u_2) + h(2 u_3) + ... : u_1 + u_2 + ... = k }                                           (4)

since one cell at least does not fall last. The smaller of (3) and (4) is charged; in one cell, h(k). `entered` and
`left`: N events in different places, as of one entry.

Under a strategy S over cells an event is S e_c, and several events of one entry in one window add up in the nodes that
contain them: L1 <= N r as before, and L2 <= N r in each layer, as for owners.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

import numpy as np

from privacy.constraint import AtMost, Within
from privacy.planning.contribution import Contribution, Sensitivity, charged_as_one
from privacy.planning.sensitivity_in_span import events_apart, fullest, net_apart, squared_apart
from privacy.series import Family
from privacy.states import States, in_l1, in_l2_squared
from privacy.strategies.base import Strategy
from privacy.upward import above, root_above

MOST_OF_OWNER = 10_000
"""Largest number of changes of an owner: the worst split among entries, (3), takes time in the square of it."""

MOST_TRACKS = 16
"""Largest number of an owner's entries at once; more are charged as if there were no limit."""


def of_family(family: Family, strategy: Strategy, unit: Contribution) -> Sensitivity:
    """Return the sensitivity of the nodes of one family of leaf sums.

    Args:
        family: `net`, `entered` or `left`.
        strategy: the strategy in time.
        unit: contribution of one unit, in leaves of the strategy.
    """
    return of_net(strategy, unit) if family == "net" else of_events(family, strategy, unit)


def of_net(strategy: Strategy, unit: Contribution, *, closely: bool = False) -> Sensitivity:
    """Return the sensitivity of the nodes of net changes to one unit, in normalised units.

    Args:
        strategy: the strategy in time.
        unit: contribution of one unit, in leaves of the strategy.
        closely: whether the computation may take longer for a smaller bound, if the strategy is certifiable.

    Source: module docstring, and docs/proofs/strategies.md#owners for owners.

    >>> from privacy.measure import Component
    >>> from privacy.planning.promise import Promise
    >>> from privacy.strategies.tree.tree import Tree
    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> promise = Promise(constraint=AtMost(4), window=1, windows=None, owner=False)
    >>> unit = Contribution(promise=promise, components=count, cells=1)
    >>> of_net(Tree(branching=2, height=1, refine="none", windows=365, initial_level=True), unit).l1
    4.0
    >>> of_net(Tree(branching=2, height=9, refine="none", windows=365, initial_level=False), unit).l1
    30.0
    """
    if unit.promise.span is not None:
        return net_apart(strategy, unit, closely=closely)
    _refuse_spans_of_owners(unit)
    in_one, in_two = _states(unit, 1), _states(unit, 2)
    l2 = _worst(strategy, unit, in_two, root_above, closely)
    largest = [c.largest for c in unit.components]
    moved = [
        strategy.moved(
            leaves,
            cells=unit.columns,
            each=unit.filled,
            largest=largest,
            shared=unit.promise.owner,
        )
        for leaves in unit.promise.touched
    ]
    l2 += max(each.rounding for each in moved)
    nodes, coordinates = max(each.nodes for each in moved), max(each.coordinates for each in moved)
    if not strategy.sparse:
        return charged_as_one(l2, nodes=nodes, coordinates=coordinates)
    together = max(part.together() for part in unit.promise.constraint.parts) if unit.promise.owner else 1
    node_l1, node_l2 = together * in_one.diameter, together**2 * in_two.diameter
    if unit.distinct and unit.over is None:
        node_l1 = node_l2 = Fraction(min(unit.cells, 2 * together))
    return Sensitivity(
        l1=_worst(strategy, unit, in_one, above, closely),
        l2=l2,
        nodes=nodes,
        node_l1=above(node_l1),
        node_l2=root_above(node_l2),
        coordinates=coordinates,
    )


def of_events(family: Literal["entered", "left"], strategy: Strategy, unit: Contribution) -> Sensitivity:
    """Return the sensitivity of entered or left entries to one unit, in normalised units.

    Args:
        family: `entered` or `left`.
        strategy: the strategy in time; its nodes must count single windows.
        unit: contribution of one unit, in leaves of the strategy.

    Raises:
        ValueError: the strategy is not of disjoint layers, its leaves hold several windows, or a unit never leaves.

    Source: proof for `entered` and `left` in the module docstring.

    >>> from privacy.measure import Component
    >>> from privacy.planning.promise import Promise
    >>> from privacy.strategies.tree.tree import Tree
    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> promise = Promise(constraint=AtMost(5), window=1, windows=None, owner=False)
    >>> unit = Contribution(promise=promise, components=count, cells=1)
    >>> of_events("entered", Tree(branching=2, height=1, refine="none", windows=365, initial_level=False), unit).l1
    3.0
    """
    if not strategy.disjoint_layers:
        raise ValueError(f"{family}: nodes of {strategy.name} do not count single windows; use disjoint or tree")
    if unit.leaf > 1:  # a unit may come and go several times in a leaf
        raise ValueError(f"{family}: each leaf of the strategy must be one window, not {unit.leaf}")
    if unit.promise.span is not None:
        return events_apart(strategy, unit)
    _refuse_spans_of_owners(unit)
    r1 = in_l1(unit.components, unit.cells, unit.corners(1)).radius
    r2_squared = in_l2_squared(unit.components, unit.cells, unit.corners(2)).radius
    most = max(_events(family, part, strategy.windows, unit) for part in unit.promise.constraint.parts)
    if most == 0:
        raise ValueError(f"{family}: a unit that may change at most once never leaves; use at_most: 2 or more")
    shared = unit.shared or unit.over is not None  # events may fall into one node
    in_layers = [[most] if shared else fullest(most, leaves) for leaves in strategy.disjoint_layers]
    together = max(max(counts) for counts in in_layers)
    in_node = most if shared else min(most, unit.cells * strategy.disjoint_layers[-1])
    return Sensitivity(
        l1=above(len(in_layers) * most * r1),
        l2=root_above(sum(count * count for counts in in_layers for count in counts) * r2_squared),
        nodes=len(in_layers) * most,
        node_l1=above(in_node * r1),
        node_l2=root_above(in_node * together * r2_squared),
        coordinates=len(in_layers) * most * unit.filled * len(unit.components),
    )


def entry_squared(strategy: Strategy, unit: Contribution) -> float:
    """Return the squared L2 norm of what one entry moves, without rounding: accurate enough to choose by for owners."""
    if unit.promise.span is not None:
        return squared_apart(strategy, unit)
    states = _states(unit, 2)
    return max(float(strategy.norm(states, leaves)) for leaves in unit.promise.touched)


def _states(unit: Contribution, power: int) -> States:
    sizes = in_l1 if power == 1 else in_l2_squared
    return sizes(unit.components, unit.cells, unit.corners(power))


def _worst(
    strategy: Strategy, unit: Contribution, states: States, length: Callable[[Fraction], float], closely: bool
) -> float:
    """Return the unit's norm: `length` of one entry's bounds, or the worst split of changes among entries."""
    worst = 0.0
    for part, leaves in zip(unit.promise.constraint.parts, unit.promise.touched, strict=True):
        if not unit.promise.owner or part.changes is None:
            bound = strategy.norm(states, leaves, closely=closely)
            worst = max(worst, length(bound))
            continue
        if part.changes > MOST_OF_OWNER:
            raise ValueError(f"at_most={part.changes} is too many for an owner; at most {MOST_OF_OWNER:,} are allowed")
        bounds = strategy.norms(states, part.changes, closely=closely)
        found = _best_split([length(bound) for bound in bounds], part.together())
        worst = max(worst, min(found, length(_of_cells(strategy, unit, part.changes, states, closely))))
    return worst


def _of_cells(strategy: Strategy, unit: Contribution, changes: int, states: States, closely: bool) -> Fraction:
    """Return the bound of a unit that counts once in each cell, as `states` are; infinite if it does not exist.

    Source: (4) in the module docstring.
    """
    if not unit.distinct or unit.over is not None:
        return Fraction(2**1000)
    one = (in_l2_squared if states.squared else in_l1)(unit.components, 1)
    if unit.cells == 1:
        return max(strategy.norms(one, changes, closely=closely))
    flips = [above(bound) for bound in strategy.norms(one, 2 * changes - 1, closely=closely)]
    rest = _best_splits([max(pair) for pair in zip(flips[:-1:2], flips[1::2], strict=True)], unit.cells - 1)
    return max(Fraction(flips[2 * u]) + rest[changes - 1 - u] for u in range(changes))


def _events(family: Literal["entered", "left"], part: AtMost | Within, windows: int | None, unit: Contribution) -> int:
    """Return N of the proof."""
    nodes = math.inf if windows is None else windows
    if part.changes is None:
        return part.touched(unit.promise.window, unit.promise.slack).nodes(1, nodes).appearing * unit.cells
    k = part.changes
    if unit.cells == 1:
        events = (k + (part.together() if unit.shared else 1)) // 2 if family == "entered" else k // 2
    else:
        events = k if family == "entered" else k - 1
    return events if unit.shared else int(min(events, nodes * unit.cells))


def _refuse_spans_of_owners(unit: Contribution) -> None:
    if unit.promise.owner:
        for part in unit.promise.constraint.parts:
            part.together()


def _best_split(gain: list[float], parts: int) -> float:
    """Return the largest sum of gain[j - 1] over at most `parts` j that add up to len(gain); rounded up.

    >>> _best_split([1.0, 1.5, 3.0], 3), _best_split([1.0, 1.75, 2.0], 2), _best_split([1.0, 1.75, 2.0], 1)
    (3.0, 2.75, 2.0)
    """
    return above(_best_splits(gain, parts)[-1])


def _best_splits(gain: list[float], parts: int) -> list[Fraction]:
    """Return these sums, not rounded, for j that add up to 0, 1, ..., len(gain)."""
    if not gain:
        return [Fraction(0)]
    # Values are integers times a power of two, so that sums are exact: they stay below 2^62.
    digits = 62 - math.frexp(max(gain) * len(gain))[1]
    gains = np.array([math.ceil(math.ldexp(g, digits)) for g in gain], dtype=np.int64)
    best = np.zeros(len(gain) + 1, dtype=np.int64)
    if parts > MOST_TRACKS:  # as many as there are changes
        for size in range(1, len(best)):
            best[size] = (best[:size][::-1] + gains[:size]).max()
        parts = 0
    for _ in range(parts):
        one_more = best.copy()
        for size in range(1, len(best)):
            one_more[size] = max(best[size], (best[:size][::-1] + gains[:size]).max())
        best = one_more
    return [Fraction(int(sum_)) / Fraction(2) ** digits for sum_ in best]
