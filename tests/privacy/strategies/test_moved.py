"""Norms and counts of what one unit moves, compared with all trajectories of a few windows.

The matrix of a strategy comes from its own steps, with one leaf at a time and without noise.
"""

import itertools
from functools import cache

import numpy as np
import pytest

from privacy.measure import Measure
from privacy.series import Series
from privacy.states import States, apart_in_l1, apart_in_l2_squared, in_l1, in_l2_squared
from privacy.strategies.base import Floats, Moved, Strategy
from privacy.strategies.direct.direct import Direct
from privacy.strategies.direct.weighted import WeightedLevels
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.sliding import Sliding
from privacy.strategies.tree.tree import Tree
from privacy.strategies.window_budgets import best_shares
from privacy.touched import Touched, at_most

WINDOWS = 5
WEIGHTS = (1.0, 3.0, 2.0, 5.0, 4.0)
STEPS = 1 << 30
COUNT = Measure(kind="count").components
LEVEL = Series(kind="level")
SHARES = best_shares(WEIGHTS, WINDOWS, repeated=False, power=1)

STRATEGIES: list[tuple[Strategy, Series]] = [
    *((Tree(branching=2, height=h, refine="none", windows=WINDOWS, initial_level=True), LEVEL) for h in (1, 3)),
    (Sliding(width=2, every=1, windows=WINDOWS), Series(kind="sliding", width=2)),
    (Sliding(width=3, every=2, windows=WINDOWS), Series(kind="sliding", width=3, every=2)),
    (Direct(windows=WINDOWS), LEVEL),
    (WeightedLevels(windows=WINDOWS, worth=WEIGHTS, shares=SHARES), LEVEL),
    (Factorised(kernel=Coefficients(), windows=WINDOWS, initial_level=True), LEVEL),
]
every_strategy = pytest.mark.parametrize(
    ("strategy", "series"), STRATEGIES, ids=[s.name + s.variant for s, _ in STRATEGIES]
)

CELLS = {1: np.eye(3), 2: np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])}
"""States of one entry, a row for each, by the number of columns that each is in."""


def nodes_moved(strategy: Strategy, series: Series, trajectories: Floats) -> Floats:
    """Return the node vectors [trajectories, nodes, columns] in widths of the noise, of states at all boundaries."""
    leaves = STEPS * np.eye(1 + WINDOWS, dtype=np.int64)
    found, _, _ = strategy.step(
        None,
        leaves,
        series=[series],
        sample=lambda nodes: np.zeros((len(nodes.end), 1 + WINDOWS), dtype=np.int64),
    )
    matrix, stretch = found / STEPS, strategy.stretch(strategy.nodes(WINDOWS))
    if stretch is not None:
        matrix = matrix / stretch[:, None]
    moved: Floats = np.einsum("nb,tbc->tnc", matrix, np.diff(trajectories, axis=1, prepend=0.0))
    return moved


@cache
def paths(states: int, leaves: Touched) -> list[tuple[tuple[int, ...], int]]:
    """Return the states at all boundaries (0: none) of each entry that can move these leaves, and its changes."""
    found = []
    for path in itertools.product(range(1 + states), repeat=1 + WINDOWS):
        moved = [place for place, (before, after) in enumerate(itertools.pairwise(path)) if before != after]
        made = int(path[0] > 0) + len(moved)
        near = max(moved, default=0) - min(moved, default=0) < leaves.appearing
        if near if leaves.in_a_row else made <= leaves.appearing:
            found.append((path, made))
    return found


def columns_of(states: Floats, leaves: Touched) -> Floats:
    """Return these paths in columns, [paths, boundaries, columns]."""
    with_none = np.vstack([np.zeros_like(states[0]), states])
    found: Floats = with_none[np.array([path for path, _ in paths(len(states), leaves)])]
    return found


def hold(strategy: Strategy, moved: Moved, vectors: Floats) -> None:
    there = np.abs(vectors) > 1e-6
    assert there.sum(axis=(1, 2)).max() <= moved.coordinates
    if strategy.sparse:
        assert there.any(axis=2).sum(axis=1).max() <= moved.nodes


def bound(strategy: Strategy, norms: list[tuple[States, float]], vectors: Floats) -> None:
    for states, claimed in norms:
        sizes = (vectors**2).sum(axis=(1, 2)) if states.squared else np.abs(vectors).sum(axis=(1, 2))
        if states.squared or strategy.sparse:
            assert sizes.max() <= claimed * (1 + 1e-6)


@pytest.mark.few(27)
@every_strategy
@pytest.mark.parametrize("each", CELLS)
@pytest.mark.parametrize(
    "leaves", [at_most(1), at_most(2), at_most(4), Touched(1, 1, in_a_row=True), Touched(2, 2, in_a_row=True)], ids=str
)
def test_one_entry_moves_no_more_than_is_charged(
    strategy: Strategy, series: Series, each: int, leaves: Touched
) -> None:
    states = CELLS[each]
    vectors = nodes_moved(strategy, series, columns_of(states, leaves))
    arguments = {"cells": states.shape[1], "each": each, "shared": False}
    moved = strategy.moved(leaves, largest=[STEPS], **arguments)
    twice = strategy.moved(leaves, largest=[STEPS] * 2, **arguments)

    hold(strategy, moved, vectors)
    assert twice.coordinates == 2 * moved.coordinates
    if each == 1:
        norms = [of(COUNT, 3) for of in (in_l1, in_l2_squared)]
        bound(strategy, [(one, float(strategy.norm(one, leaves))) for one in norms], vectors)


@every_strategy
def test_entries_of_an_owner_move_no_more_coordinates_than_are_charged(strategy: Strategy, series: Series) -> None:
    """Up to two entries share three changes, in two cells."""
    one, two, three = (columns_of(np.eye(2), at_most(changes)) for changes in (1, 2, 3))
    both = (one[:, None] + two[None]).reshape(-1, *two.shape[1:])
    moved = strategy.moved(at_most(3), cells=2, each=1, largest=[STEPS], shared=True)

    hold(strategy, moved, nodes_moved(strategy, series, np.concatenate([both, three])))


@pytest.mark.parametrize(
    "strategy",
    [
        Tree(branching=2, height=1, refine="none", windows=1, initial_level=False),
        Sliding(width=1, every=1, windows=1),
        Factorised(kernel=Coefficients(), windows=1, initial_level=False),
    ],
    ids=lambda strategy: strategy.name,
)
def test_entries_of_an_owner_that_come_together_move_as_many_coordinates(strategy: Strategy) -> None:
    """Five entries come in one window, each into a separate cell."""
    assert strategy.moved(at_most(5), cells=5, each=1, largest=[STEPS], shared=True).coordinates >= 5


@pytest.mark.few(11)
@every_strategy
@pytest.mark.parametrize(("boundaries", "entries"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_neighbours_in_a_span_are_no_further_apart_than_is_charged(
    strategy: Strategy, series: Series, boundaries: int, entries: int
) -> None:
    """At each boundary one of the two trajectories has no state, the other up to `entries`."""
    some = [sum(one) for one in itertools.combinations_with_replacement([np.zeros(3), *np.eye(3)], entries)]
    values = np.array(some + [-one for one in some])
    apart = np.zeros((0, 1 + WINDOWS, 3))
    for begin in range(2 + WINDOWS - boundaries):
        inside = np.array(list(itertools.product(values, repeat=boundaries)))
        apart = np.concatenate([apart, np.zeros((len(inside), 1 + WINDOWS, 3))])
        apart[-len(inside) :, begin : begin + boundaries] = inside
    vectors = nodes_moved(strategy, series, apart)
    norms = [apart_in_l1(COUNT, 3, entries), apart_in_l2_squared(COUNT, entries)]

    arguments = {"cells": 3, "each": 1, "entries": entries}
    moved = strategy.moved_apart(boundaries, largest=[STEPS], **arguments)
    twice = strategy.moved_apart(boundaries, largest=[STEPS] * 2, **arguments)

    hold(strategy, moved, vectors)
    assert twice.coordinates == 2 * moved.coordinates
    bound(strategy, [(one, float(strategy.norm_apart(one, boundaries))) for one in norms], vectors)
