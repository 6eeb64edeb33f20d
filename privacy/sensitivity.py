"""How far one privacy unit's whole bounded changelog can move the node values of a disjoint release.

Neighbours: two changelogs that differ by all mutations of one privacy unit (add or remove). The difference of
their exact node vectors is the unit's own node vector, since a release is a sum over units. Norms are taken
over all nodes, cells and components together, each component divided by its largest value (its unit here).

A *family* is a set of nodes that are released together:

    net       net change of the query per window and cell, and the opening node (the level at start)
    entered   entries that came to satisfy the query in a cell, once per entry, window and cell
    left      entries that ceased to, the same way

Proof for `net`. Let an entry's state at the windows' ends be x_0, x_1, x_2, ..., with x_0 its state at the start; a
window's node holds x_i - x_{i-1} (telescoping: what happened inside the window cancels) and the opening node x_0.
|x_i| <= r and |x_i - x_j| <= D for the radius r and the diameter D of the set of states, no state (0) among them. So a
node that starts from 0 is at most r, any other at most D. Let an entry touch at most m of these nodes.

    opening released       the first touched node starts from 0:        L1 <= r + (m - 1) D            (1)
    opening not released   an entry that is there at the start has x_0 for nothing, and all m windows
                           that it touches may be D:                    L1 <= m D                      (2)

and the same with squares for L2^2. AtMost(k): a touched node holds a projected change, and being there at the
start has used one up. So m = min(k, windows + 1) in (1); without the opening an entry either starts from 0, which is
(1) with m = min(k, windows), or it is (2) with m = min(k - 1, windows). Within(B): the kept times lie in [t, t + B],
which meets at most ceil(B/W) + 1 windows [iW, (i+1)W), and the opening node comes on top. All of these are reached, by
an entry that swings between two states at distance D of which one has size r.

An owner of several entries shares one k among them. Entry e with j_e changes has a vector of norm at most g(j_e),
the bound above for k = j_e; by the triangle inequality the owner's is at most

    max { g(j_1) + g(j_2) + ... : j_1 + j_2 + ... = k }                                                (3)

reached when equal entries move together.

Proof for `entered` and `left`. Each event adds a vector of norm <= r to one coordinate block (window, cell), and an
entry at most one to each block. N events of one entry stand in N different blocks: L1 <= N r, L2 <= sqrt(N) r. Events
of different entries of an owner may share a block: L2 <= N r. With k changes and one cell, entering and leaving take
turns, entering first: N = ceil(k/2) and floor(k/2); but an owner's k changes may all be insertions, so there
N = k enter (the usual count is for one entry). With several cells a move both leaves and enters: N = k and k - 1. With
a time span every block of the touched windows may be met: N = windows x cells.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privacy.constraint import AtMost, Constraint, Within, parts
from privacy.measure import Component

Family = Literal["net", "entered", "left"]

MOST_OF_OWNER = 10_000
"""Most changes of an owner: the worst split of them among entries, (3), takes time in the square of their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Joint norms of one unit's node vector, in normalised units (component / its largest value).

    Attributes:
        l1, l2: over the whole release.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """The windows of a release: their length in microseconds and how many, if it ever ends.

    Attributes:
        opening: whether the level at start is released as one more node.
    """

    window: int
    windows: int | None
    opening: bool

    @property
    def nodes(self) -> float:
        return math.inf if self.windows is None else self.windows + int(self.opening)


def of_net(
    *,
    components: tuple[Component, ...],
    cells: int,
    constraint: Constraint,
    horizon: Horizon,
    owner: bool,
) -> Sensitivity:
    """Sensitivity of the net changes (1) and, for an owner of several entries, (2).

    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> year = Horizon(window=1, windows=365, opening=True)
    >>> one = of_net(components=count, cells=1, constraint=AtMost(4), horizon=year, owner=False)
    >>> one.l1, one.l2
    (4.0, 2.0)
    >>> many = of_net(components=count, cells=20, constraint=AtMost(4), horizon=year, owner=False)
    >>> many.l1, round(many.l2**2, 9)
    (7.0, 7.0)
    """
    r1, r2 = _radius(components)
    d1, d2 = _diameter(components, cells)
    l1 = l2 = 0.0
    nodes = 1
    for part in parts(constraint):
        nodes = max(nodes, _touched(part, horizon))
        if not owner:
            l1 = max(l1, _farthest(part, r1, d1, horizon))
            l2 = max(l2, math.sqrt(_farthest(part, r2**2, d2**2, horizon)))
            continue
        if not isinstance(part, AtMost):
            raise ValueError("a time span does not bound an owner's entries; use at_most")
        if part.changes > MOST_OF_OWNER:
            raise ValueError(f"at_most={part.changes} is too many for an owner; at most {MOST_OF_OWNER:,} are allowed")
        shares = [AtMost(j) for j in range(1, part.changes + 1)]
        l1 = max(l1, _best_split([_farthest(j, r1, d1, horizon) for j in shares]))
        l2 = max(l2, _best_split([math.sqrt(_farthest(j, r2**2, d2**2, horizon)) for j in shares]))
    together = _most_changes(constraint) if owner else 1
    moves = together if owner else nodes
    return Sensitivity(
        l1=l1,
        l2=l2,
        nodes=nodes,
        node_l1=together * d1,
        node_l2=together * d2,
        coordinates=moves * len(components) * min(cells, 2),
    )


def of_events(
    family: Literal["entered", "left"],
    *,
    components: tuple[Component, ...],
    cells: int,
    constraint: Constraint,
    horizon: Horizon,
    owner: bool,
) -> Sensitivity:
    """Sensitivity of the entries that entered or left, per window and cell.

    >>> count = (Component(name="count", grid=1.0, low=1, high=1),)
    >>> year = Horizon(window=1, windows=365, opening=False)
    >>> of_events("entered", components=count, cells=1, constraint=AtMost(5), horizon=year, owner=False).l1
    3.0
    """
    r1, r2 = _radius(components)
    most = 0
    in_node = 0
    for part in parts(constraint):
        windows = horizon.windows if horizon.windows is not None else math.inf
        if isinstance(part, AtMost):
            k = part.changes
            if cells == 1 and not (owner and family == "entered"):
                events = (k + 1) // 2 if family == "entered" else k // 2
            else:
                events = k if family == "entered" else k - 1
            blocks = events if owner else min(events, windows * cells)
        else:
            blocks = min(_windows_met(part.span, horizon), windows) * cells
        most = max(most, int(blocks))
        in_node = max(in_node, int(blocks if owner else min(blocks, cells)))
    if most == 0:
        raise ValueError(f"{family}: a unit that may change at most once never leaves; use at_most: 2 or more")
    spread = float(most) if owner else math.sqrt(most)
    return Sensitivity(
        l1=most * r1,
        l2=spread * r2,
        nodes=most,
        node_l1=in_node * r1,
        node_l2=(in_node if owner else math.sqrt(in_node)) * r2,
        coordinates=most * len(components),
    )


def _touched(part: AtMost | Within, horizon: Horizon) -> int:
    """How many nodes an entry can touch, the opening node among them where it is released."""
    if isinstance(part, AtMost):
        return int(min(part.changes, horizon.nodes))
    return int(min(_windows_met(part.span, horizon) + int(horizon.opening), horizon.nodes))


def _farthest(part: AtMost | Within, radius: float, diameter: float, horizon: Horizon) -> float:
    """The larger of (1) and (2) for one entry; from squares of r and D it is a squared L2 norm."""
    from_nothing = radius + (_touched(part, horizon) - 1) * diameter
    if horizon.opening:
        return from_nothing
    if isinstance(part, AtMost):
        return max(from_nothing, min(part.changes - 1, horizon.nodes) * diameter)
    return _touched(part, horizon) * diameter


def _radius(components: tuple[Component, ...]) -> tuple[float, float]:
    """L1 and L2 of the largest state: each component is at most 1 in its own unit, and all can be at once."""
    return float(len(components)), math.sqrt(len(components))


def _diameter(components: tuple[Component, ...], cells: int) -> tuple[float, float]:
    """Largest L1 and L2 distance between two states, the missing one among them.

    Within a cell component i moves by at most high_i - low_i; into another cell both states count in full.
    """
    within = [(c.high - c.low) / c.largest for c in components]
    r1, r2 = _radius(components)
    d1, d2 = max(r1, sum(within)), max(r2, math.sqrt(sum(w * w for w in within)))
    return (max(d1, 2 * r1), max(d2, math.sqrt(2) * r2)) if cells > 1 else (d1, d2)


def _windows_met(span: int, horizon: Horizon) -> int:
    """Windows that a closed time span can meet: ceil(B/W) + 1 (erratum of 004, theorem 4.3)."""
    return -(-span // horizon.window) + 1


def _most_changes(constraint: Constraint) -> int:
    return max(part.changes for part in parts(constraint) if isinstance(part, AtMost))


def _best_split(gain: list[float]) -> float:
    """Largest gain[j_1 - 1] + gain[j_2 - 1] + ... with j_1 + j_2 + ... = len(gain)."""
    gains = np.array(gain)
    best = np.zeros(len(gain) + 1)
    for size in range(1, len(best)):
        best[size] = (best[:size][::-1] + gains[:size]).max()
    return float(best[-1])
