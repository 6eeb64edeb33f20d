"""Sensitivity to one unit under a strategy over cells, compared with all trajectories of small sizes, and reached."""

import itertools
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from privacy.cells.layers import Layers
from privacy.cells.marginals import Marginals
from privacy.cells.mixed import Mixed
from privacy.cells.nested import Nested
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.cells.residuals import Residuals
from privacy.constraint import AtMost, AtOnce
from privacy.measure import Component
from privacy.planning.contribution import Contribution, Sensitivity
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_events, of_net
from privacy.protection import EVERYTHING, Protection, Span
from privacy.states import in_l1
from privacy.strategies.base import Strategy
from privacy.strategies.direct.direct import Direct
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.tree.tree import Tree
from tests.privacy.test_apart import nodes_of

WINDOWS = 4
SCALE = 2**24
COUNT = (Component(name="count", grid=1.0 / SCALE, low=SCALE, high=SCALE),)
SIGNED = (Component(name="sum", grid=1.0 / SCALE, low=-SCALE // 2, high=SCALE),)
OVER = [
    Product(axes=(Layers(cells=4, sizes=(1, 2), weights=(1, 2)),)),
    Product(axes=(Layers(cells=3, sizes=(1, 2, 4), weights=(1, 1, 2)),)),
    Product(axes=(Prefixes(cells=3),)),
    Product(axes=(Layers(cells=2), Layers(cells=2, sizes=(1, 2), weights=(1, 1)))),
    Product(axes=(Prefixes(cells=2), Layers(cells=2, sizes=(1, 2), weights=(2, 1)))),
    Product(axes=(Marginals(shape=(2, 2), kept=((0, 1), (0,), ()), weights=(2, 1, 1)),)),
    Product(axes=(Nested(children=((2, 1), (2,)), weights=(1, 2, 1)),)),
    Product(axes=(Marginals(shape=(2,), kept=((0,), ()), weights=(2, 1)), Nested(children=((2,),), weights=(1, 2)))),
]
CIRCLE = Mixed(alone=bytes([2, 2, 2]), rows=(bytes([1, 2, 0]), bytes([2, 0, 1]), bytes([0, 1, 2])))
MIXED = [Product(axes=(CIRCLE,)), Product(axes=(Layers(cells=2), Mixed(alone=bytes([1, 2]), rows=(bytes([3, 1]),))))]
RESIDUALS = [
    Product(axes=(Residuals(shape=(2, 2), kept=((0, 1), (0,), (1,), ()), weights=(2, 1, 2, 3)),)),
    Product(
        axes=(Residuals(shape=(2,), kept=((0,), ()), weights=(1, 2)), Layers(cells=2, sizes=(1, 2), weights=(1, 1)))
    ),
    Product(axes=(Residuals(shape=(3,), kept=((0,), ()), weights=(1, 1)),)),
]
SPARSE: list[Strategy] = [
    *(
        Tree(branching=2, height=h, refine="none", windows=WINDOWS, initial_level=initial)
        for h in (1, 3)
        for initial in (True, False)
    ),
    Direct(windows=WINDOWS),
]
FILTER = Factorised(kernel=Coefficients(), windows=WINDOWS, initial_level=True)


@lru_cache(maxsize=8)
def trajectories(cells: int, ends: tuple[float, ...]) -> np.ndarray:
    """Return every way to be in one cell or none at each boundary, [ways, boundaries, cells], with these values."""
    states = np.concatenate([np.zeros((1, cells)), *(end * np.eye(cells) for end in ends)])
    return states[np.array(list(itertools.product(range(len(states)), repeat=WINDOWS + 1)))]


def changes(ways: np.ndarray) -> np.ndarray:
    return np.diff(ways, axis=1, prepend=0).any(axis=2).sum(axis=1)


@lru_cache(maxsize=32)
def in_time(strategy: Strategy) -> np.ndarray:
    """Return the matrix [nodes, boundaries] that computes nodes from levels."""
    return nodes_of(strategy, np.eye(WINDOWS + 1), SCALE)


def farthest(strategy: Strategy, over: Product, ways: np.ndarray) -> tuple[float, float]:
    nodes = np.einsum("nb,wbc->wnc", in_time(strategy), ways @ over.spread(np.eye(over.cells, dtype=np.int64)))
    return float(np.abs(nodes).sum(axis=(1, 2)).max()), float(np.sqrt((nodes**2).sum(axis=(1, 2))).max())


def claimed(
    strategy: Strategy,
    over: Product,
    constraint: AtMost | AtOnce,
    *,
    protects: Protection = EVERYTHING,
    components: tuple[Component, ...] = COUNT,
    owner: bool = False,
) -> Sensitivity:
    unit = Contribution(
        promise=Promise(constraint=constraint, window=1, windows=None, owner=owner, protects=protects),
        components=components,
        cells=over.cells,
        over=over,
    )
    return of_net(strategy, unit)


@pytest.mark.slow
@pytest.mark.few(16)
@pytest.mark.parametrize("over", [*OVER, *MIXED, *RESIDUALS], ids=str)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_no_entry_moves_the_nodes_of_cells_further_than_charged_and_one_moves_them_as_far(over, k):
    ways = trajectories(over.cells, (1.0,))
    ways = ways[changes(ways) <= k]
    for strategy in [*SPARSE, FILTER]:
        charged = claimed(strategy, over, AtMost(k))
        one, two = farthest(strategy, over, ways)
        assert one <= charged.l1 * (1 + 1e-12), strategy
        assert two <= charged.l2 * (1 + 1e-12), strategy
        if isinstance(strategy, Tree) and strategy.height == 1 and strategy.initial_level and over is not MIXED[1]:
            assert two == pytest.approx(charged.l2)
            assert over in RESIDUALS or one == pytest.approx(charged.l1)
    charged = claimed(SPARSE[0], over, AtMost(k))
    moved = np.diff(ways, axis=1, prepend=0) @ over.spread(np.eye(over.cells, dtype=np.int64))
    assert np.count_nonzero(moved, axis=(1, 2)).max() <= charged.coordinates
    assert np.abs(moved).sum(axis=2).max() <= charged.node_l1


@pytest.mark.slow
@pytest.mark.parametrize("over", [*OVER[:3], *RESIDUALS], ids=str)
def test_values_of_both_signs_are_charged_at_their_ends(over):
    ways = trajectories(over.cells, (1.0, -0.5))
    ways = ways[changes(ways) <= 2]
    charged = claimed(SPARSE[0], over, AtMost(2), components=SIGNED)
    one, two = farthest(SPARSE[0], over, ways)
    assert two == pytest.approx(charged.l2)
    assert one <= charged.l1 if over in RESIDUALS else one == pytest.approx(charged.l1)


@pytest.mark.parametrize("over", [MIXED[0], RESIDUALS[0]], ids=str)
def test_rows_that_share_cells_are_refused_for_a_span(over):
    with pytest.raises(ValueError, match="share cells"):
        claimed(SPARSE[0], over, AtOnce(), protects=Span(2))


def test_values_of_both_signs_in_mixed_rows_are_charged_enough():
    ways = trajectories(3, (1.0, -0.5))
    ways = ways[changes(ways) <= 2]
    charged = claimed(SPARSE[0], MIXED[0], AtMost(2), components=SIGNED)
    one, two = farthest(SPARSE[0], MIXED[0], ways)
    assert one <= charged.l1 * (1 + 1e-12)
    assert two == pytest.approx(charged.l2)


@pytest.mark.slow
@pytest.mark.few(9)
@pytest.mark.parametrize("over", OVER, ids=str)
@pytest.mark.parametrize("boundaries", [1, 2, 3])
def test_no_two_courses_that_are_apart_in_a_span_go_further_than_charged(over, boundaries):
    ways = trajectories(over.cells, (1.0, -1.0))
    there = ways.any(axis=2)
    inside = [
        ~there[:, [b for b in range(WINDOWS + 1) if not first <= b < first + boundaries]].any(axis=1)
        for first in range(WINDOWS + 1)
    ]
    ways = ways[np.any(inside, axis=0)]
    for strategy in [*SPARSE, FILTER]:
        charged = claimed(strategy, over, AtOnce(), protects=Span(boundaries))
        one, two = farthest(strategy, over, ways)
        assert one <= charged.l1 * (1 + 1e-12), strategy
        assert two <= charged.l2 * (1 + 1e-12), strategy
        if isinstance(strategy, Direct):
            assert (one, two) == pytest.approx((charged.l1, charged.l2))


@pytest.mark.slow
@pytest.mark.parametrize("over", [*OVER[1:3], RESIDUALS[2]], ids=str)
def test_two_entries_of_an_owner_share_their_changes(over):
    each = trajectories(over.cells, (1.0,))
    few = [each[changes(each) == k] for k in range(4)]
    for strategy in SPARSE:
        charged = claimed(strategy, over, AtMost(3), owner=True)
        for k in (2, 3):
            random = np.random.default_rng(k)
            one, other = (part[random.integers(0, len(part), 3000)] for part in (few[k], few[3 - k]))
            l1, l2 = farthest(strategy, over, one + other)
            assert l1 <= charged.l1 * (1 + 1e-12), strategy
            assert l2 <= charged.l2 * (1 + 1e-12), strategy


def test_two_entries_at_once_in_a_span_are_charged_twice_as_far():
    over, random = OVER[1], np.random.default_rng(5)
    each = trajectories(over.cells, (1.0,))
    signs = random.choice((-1, 1), (4000, WINDOWS + 1, 1))
    pairs = each[random.integers(0, len(each), (2, 4000))].sum(axis=0) * signs
    pairs[:, 3:] = 0
    for strategy in [*SPARSE, FILTER]:
        charged = claimed(strategy, over, AtOnce(2), protects=Span(3), owner=True)
        one, two = farthest(strategy, over, pairs)
        assert one <= charged.l1 * (1 + 1e-12), strategy
        assert two <= charged.l2 * (1 + 1e-12), strategy


def events_of(family: str, cells: int, changes: int) -> np.ndarray:
    """Return every way in which an entry with `k` changes enters or leaves cells in two windows, [ways, 2, cells].

    A state is a cell, or none (-1); each change changes it, in either window; each cell counts once in a window.
    """
    found = set()
    for states in itertools.product(range(-1, cells), repeat=changes):
        path = (-1, *states)
        for cut in range(changes + 1):
            counted = set()
            for place, (before, after) in enumerate(itertools.pairwise(path)):
                cell = after if family == "entered" else before
                if before != after and cell >= 0:
                    counted.add((int(place >= cut), cell))
            found.add(frozenset(counted))
    ways = np.zeros((len(found), 2, cells))
    for way, counted in zip(ways, found, strict=True):
        for window, cell in counted:
            way[window, cell] = 1
    return ways


@pytest.mark.parametrize("over", [*OVER[:3], *MIXED, *RESIDUALS[:2]], ids=str)
@pytest.mark.parametrize("family", ["entered", "left"])
def test_no_entry_enters_or_leaves_sums_over_cells_further_than_charged_and_one_does_as_far(over, family):
    for k in (2, 3, 4):
        unit = Contribution(
            promise=Promise(constraint=AtMost(k), window=1, windows=None, owner=False),
            components=COUNT,
            cells=over.cells,
            over=over,
        )
        disjoint = Tree(branching=2, height=1, refine="none", windows=2, initial_level=False)
        layers = Tree(branching=2, height=2, refine="none", windows=2, initial_level=False)
        ways = events_of(family, over.cells, k)
        leaves = ways @ over.spread(np.eye(over.cells, dtype=np.int64))
        for strategy, nodes in (
            (disjoint, leaves),
            (layers, np.concatenate([leaves, leaves.sum(axis=1, keepdims=True)], axis=1)),
        ):
            charged = of_events(family, strategy, unit)
            one, two = np.abs(nodes).sum(axis=(1, 2)), np.sqrt((nodes**2).sum(axis=(1, 2)))
            assert one.max() <= charged.l1 * (1 + 1e-12)
            assert two.max() <= charged.l2 * (1 + 1e-12)
            if k == 2 and over in (OVER[0], MIXED[0]):  # all columns of one norm
                assert one.max() == pytest.approx(charged.l1)
            assert np.count_nonzero(nodes, axis=(1, 2)).max() <= charged.coordinates
            assert np.abs(nodes).sum(axis=2).max() <= charged.node_l1 * (1 + 1e-12)
            assert np.sqrt((nodes**2).sum(axis=2)).max() <= charged.node_l2 * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("over", OVER, ids=str)
@pytest.mark.parametrize("boundaries", [1, 2])
def test_entries_that_enter_or_leave_within_a_span_are_charged_and_reach_the_charge(over, boundaries):
    """In one course the entry is absent at some consecutive boundaries; otherwise both are equal.

    Only a visit within a window reaches the event that is charged in addition (tests/privacy/test_visits.py).
    """
    ways = trajectories(over.cells, (1.0,))
    columns = over.spread(np.eye(over.cells, dtype=np.int64))
    unit = Contribution(
        promise=Promise(constraint=AtOnce(), window=1, windows=None, owner=False, protects=Span(boundaries)),
        components=COUNT,
        cells=over.cells,
        over=over,
    )
    strategy = Tree(branching=2, height=1, refine="none", windows=WINDOWS, initial_level=False)
    for family in ("entered", "left"):
        charged = of_events(family, strategy, unit)
        most = [0.0, 0.0]
        for first in range(WINDOWS + 2 - boundaries):
            without = ways.copy()
            without[:, first : first + boundaries] = 0
            signed = (ways, without) if family == "entered" else (-ways, -without)
            now, then = (np.maximum(np.diff(one, axis=1), 0) for one in signed)
            nodes = (now - then) @ columns
            most[0] = max(most[0], np.abs(nodes).sum(axis=(1, 2)).max())
            most[1] = max(most[1], np.sqrt((nodes**2).sum(axis=(1, 2))).max())
            assert np.count_nonzero(nodes, axis=(1, 2)).max() <= charged.coordinates
        assert most[0] <= charged.l1 * (1 + 1e-12)
        assert most[1] <= charged.l2 * (1 + 1e-12)
        if all(axis.name != "prefix" for axis in over.axes):  # whose longest column cannot be entered twice in a row
            states = in_l1(COUNT, over.cells, over.corners(1))
            assert most[0] == pytest.approx(charged.l1 - float(states.diameter - states.radius))
    renewed = replace(unit, promise=replace(unit.promise, constraint=AtOnce(changes=2, block=boundaries)))
    with pytest.raises(ValueError, match="block by block"):
        of_events("entered", strategy, renewed)


def test_a_strategy_over_other_cells_is_refused():
    with pytest.raises(ValueError, match="3 cells, but the query has 4"):
        Contribution(
            promise=Promise(constraint=AtMost(4), window=1, windows=None, owner=False),
            components=COUNT,
            cells=4,
            over=Product(axes=(Prefixes(cells=3),)),
        )
