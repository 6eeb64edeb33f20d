"""What a unit moves under a strategy over cells: against all trajectories of small sizes, and reached."""

import itertools
from functools import lru_cache

import numpy as np
import pytest

from privacy.cells.layers import Layers
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.constraint import AtMost, AtOnce
from privacy.measure import Component
from privacy.planning.contribution import Contribution, Sensitivity
from privacy.planning.sensitivity import of_events, of_net
from privacy.protection import EVERYTHING, Protection, Span
from privacy.strategies.base import Strategy
from privacy.strategies.direct import Direct
from privacy.strategies.factorised import Factorised
from privacy.strategies.tree import Tree
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
]
SPARSE: list[Strategy] = [
    *(
        Tree(branching=2, height=h, refine="none", windows=WINDOWS, initial_level=initial)
        for h in (1, 3)
        for initial in (True, False)
    ),
    Direct(windows=WINDOWS),
]
FILTER = Factorised(form="square_root", windows=WINDOWS, initial_level=True)


@lru_cache(maxsize=8)
def trajectories(cells: int, ends: tuple[float, ...]) -> np.ndarray:
    """Every way to be in one cell or none at each boundary, [ways, boundaries, cells], with values of these sizes."""
    states = np.concatenate([np.zeros((1, cells)), *(end * np.eye(cells) for end in ends)])
    return states[np.array(list(itertools.product(range(len(states)), repeat=WINDOWS + 1)))]


def changes(ways: np.ndarray) -> np.ndarray:
    return np.diff(ways, axis=1, prepend=0).any(axis=2).sum(axis=1)


@lru_cache(maxsize=32)
def in_time(strategy: Strategy) -> np.ndarray:
    """[nodes, boundaries] that makes nodes of levels."""
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
        components=components,
        cells=over.cells,
        constraint=constraint,
        window=1,
        owner=owner,
        protects=protects,
        over=over,
    )
    return of_net(strategy, unit)


@pytest.mark.parametrize("over", OVER, ids=str)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_no_entry_moves_the_nodes_of_cells_further_than_charged_and_one_moves_them_as_far(over, k):
    ways = trajectories(over.cells, (1.0,))
    ways = ways[changes(ways) <= k]
    for strategy in [*SPARSE, FILTER]:
        charged = claimed(strategy, over, AtMost(k))
        one, two = farthest(strategy, over, ways)
        assert one <= charged.l1 * (1 + 1e-12), strategy
        assert two <= charged.l2 * (1 + 1e-12), strategy
        if isinstance(strategy, Tree) and strategy.height == 1 and strategy.initial_level:
            assert (one, two) == pytest.approx((charged.l1, charged.l2))
    charged = claimed(SPARSE[0], over, AtMost(k))
    moved = np.diff(ways, axis=1, prepend=0) @ over.spread(np.eye(over.cells, dtype=np.int64))
    assert np.count_nonzero(moved, axis=(1, 2)).max() <= charged.coordinates
    assert np.abs(moved).sum(axis=2).max() <= charged.node_l1


@pytest.mark.parametrize("over", OVER[:3], ids=str)
def test_values_of_both_signs_are_charged_at_their_ends(over):
    ways = trajectories(over.cells, (1.0, -0.5))
    ways = ways[changes(ways) <= 2]
    charged = claimed(SPARSE[0], over, AtMost(2), components=SIGNED)
    assert farthest(SPARSE[0], over, ways) == pytest.approx((charged.l1, charged.l2))


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


@pytest.mark.parametrize("over", OVER[1:3], ids=str)
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


def test_entered_and_left_have_no_strategy_over_cells():
    unit = Contribution(
        components=COUNT, cells=3, constraint=AtMost(4), window=1, owner=False, over=Product(axes=(Prefixes(cells=3),))
    )
    with pytest.raises(ValueError, match="counted in each cell by itself"):
        of_events("entered", SPARSE[1], unit)


def test_a_strategy_over_other_cells_is_refused():
    with pytest.raises(ValueError, match="3 cells is none for 4"):
        Contribution(
            components=COUNT,
            cells=4,
            constraint=AtMost(4),
            window=1,
            owner=False,
            over=Product(axes=(Prefixes(cells=3),)),
        )
