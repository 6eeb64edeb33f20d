"""Charged sensitivities if changes are counted block by block, compared with all neighbours of small sizes."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from privacy.accounting.accounting import Budget
from privacy.constraint import AtOnce
from privacy.measure import Component, Measure
from privacy.planning.contribution import Contribution
from privacy.planning.demand import Demand
from privacy.planning.document import plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan, stddev
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_events, of_net
from privacy.planning.sensitivity_in_blocks import squared_in_blocks
from privacy.planning.spent import proved, spent
from privacy.protection import Span
from privacy.series import Series
from privacy.strategies.base import Strategy
from privacy.strategies.choice import Choice
from privacy.strategies.direct.direct import Direct
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.sliding import Sliding
from privacy.strategies.tree.tree import Tree
from privacy.touched import at_most
from tests.privacy.test_apart import COUNT, FINE, nodes_of

LEVEL, CHANGE = Series(kind="level"), Series(kind="change")


def held(states: np.ndarray, changes: int, block: int) -> np.ndarray:
    """Return the counted states [boundaries, courses]: `changes` - 1 changes in a block, and the state at its end."""
    counted, used = states.copy(), np.zeros(states.shape[1:], dtype=int)
    for at in range(1, len(states)):
        if at % block == 0:
            used[:] = 0
            continue
        follows = (states[at] != counted[at - 1]) & (used < changes - 1)
        counted[at] = np.where(follows, states[at], counted[at - 1])
        used += follows
    return counted


def neighbours(block: int, cells: int, span: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of states at the boundaries of two blocks (0: none) that differ in a span, with one none.

    Args:
        block: number of windows in a block.
        cells: number of cells.
        span: number of boundaries in the span; None: as many as a block has.
    """
    boundaries, span, found = 2 * block + 1, span or block, []
    either = [(0, 0), *((c, 0) for c in range(1, cells + 1)), *((0, c) for c in range(1, cells + 1))]
    for first in range(boundaries - span + 1):
        outside = [at for at in range(boundaries) if not first <= at < first + span]
        common = np.array(list(itertools.product(range(cells + 1), repeat=len(outside)))).T
        inside = np.array(list(itertools.product(either, repeat=span))).transpose(1, 0, 2)
        both = np.zeros((boundaries, common.shape[1], inside.shape[1], 2), dtype=int)
        both[outside] = common[:, :, None, None]
        both[first : first + span] = inside[:, None]
        found.append(both.reshape(boundaries, -1, 2))
    pairs = np.concatenate(found, axis=1)
    return pairs[..., 0], pairs[..., 1]


def differences(changes: int, block: int, cells: int) -> np.ndarray:
    """Return differences of counted states, one-hot: [boundaries, ways, cells]."""
    one, other = (held(states, changes, block) for states in neighbours(block, cells))
    codes = np.unique(one * (cells + 1) + other, axis=1)
    one, other = codes // (cells + 1), codes % (cells + 1)
    return np.stack([(one == c).astype(int) - (other == c) for c in range(1, cells + 1)], axis=2)


def unit(changes: int, block: int, cells: int, strategy: Strategy) -> Contribution:
    return Contribution(
        promise=Promise(
            constraint=AtOnce(changes=changes, block=block), window=1, windows=None, owner=False, protects=Span(block)
        ),
        components=COUNT if strategy.sparse else FINE,
        cells=cells,
    )


def owned(unit: Contribution, *, entries: int) -> Contribution:
    """Return the contribution of an owner of several entries."""
    constraint = replace(unit.promise.constraint, entries=entries)
    return replace(unit, promise=replace(unit.promise, constraint=constraint, owner=True))


def leaves_of(unit: Contribution, windows: int) -> Contribution:
    return replace(unit, promise=unit.promise.in_leaves(windows), leaf=windows)


MANY = 6_000
"""If there are more ways, this number of random ones is tried."""


def owners(changes: int, block: int, cells: int, entries: int) -> np.ndarray:
    """Return differences of counted states of owners, each entry in a cell or in none: [boundaries, ways, cells]."""
    states = np.array(list(itertools.product(range(cells + 1), repeat=entries)))
    vectors = np.stack([(states == c).sum(axis=1) for c in range(1, cells + 1)], axis=1)
    one, other = (held(told, changes, block) for told in neighbours(block, len(states) - 1))
    codes = np.unique(one * len(states) + other, axis=1)
    if codes.shape[1] > MANY:
        codes = codes[:, np.random.default_rng(3).choice(codes.shape[1], MANY, replace=False)]
    return vectors[codes // len(states)] - vectors[codes % len(states)]


def strategies(windows: int) -> list[Strategy]:
    trees = [
        Tree(branching=c, height=h, refine="none", windows=windows, initial_level=initial)
        for c, h in ((2, 1), (2, 3), (3, 2))
        for initial in (True, False)
    ]
    filters = [Factorised(kernel=Coefficients(), windows=windows, initial_level=initial) for initial in (True, False)]
    return [*trees, *filters, Sliding(width=3, every=1, windows=windows), Direct(windows=windows)]


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "changes", "cells"), [(2, 2, 1), (3, 2, 1), (4, 2, 1), (4, 3, 1), (2, 2, 2), (3, 2, 2), (3, 3, 2)]
)
def test_no_neighbours_are_further_apart_than_charged(block, changes, cells):
    g = differences(changes, block, cells)
    assert (g != 0).any(axis=2).sum(axis=0).max() <= 2 * block - 1
    for strategy in strategies(2 * block):
        scale = 1 if strategy.sparse else 2**24
        nodes = nodes_of(strategy, g.reshape(len(g), -1), scale).reshape(-1, *g.shape[1:])
        claimed = of_net(strategy, unit(changes, block, cells, strategy))
        assert (nodes**2).sum(axis=(0, 2)).max() <= claimed.l2**2 * (1 + 1e-12), strategy
        if strategy.sparse:
            assert np.abs(nodes).sum(axis=(0, 2)).max() <= claimed.l1, strategy
            assert (nodes != 0).any(axis=2).sum(axis=0).max() <= claimed.nodes, strategy
            assert (nodes != 0).sum(axis=(0, 2)).max() <= claimed.coordinates, strategy
            assert np.abs(nodes).sum(axis=2).max() <= claimed.node_l1, strategy


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("block", "changes", "cells"),
    [(2, 2, 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((3, 2, 1), (2, 2, 2)))],
)
def test_no_owners_are_further_apart_than_charged(block, changes, cells):
    """Two entries each. Both can do together what one can: twice as far in one number, and no further."""
    g = owners(changes, block, cells, 2)
    for strategy in strategies(2 * block):
        scale = 1 if strategy.sparse else 2**24
        nodes = nodes_of(strategy, g.reshape(len(g), -1), scale).reshape(-1, *g.shape[1:])
        one = unit(changes, block, cells, strategy)
        claimed = of_net(strategy, owned(one, entries=2))
        assert (nodes**2).sum(axis=(0, 2)).max() <= claimed.l2**2 * (1 + 1e-12), strategy
        assert (nodes != 0).sum(axis=(0, 2)).max() <= claimed.coordinates, strategy
        if strategy.sparse:
            l1 = np.abs(nodes).sum(axis=(0, 2)).max()
            assert l1 <= claimed.l1 == 2 * of_net(strategy, one).l1, strategy
            assert (nodes != 0).any(axis=2).sum(axis=0).max() <= claimed.nodes, strategy
            assert np.abs(nodes).sum(axis=2).max() <= claimed.node_l1, strategy
            assert (nodes**2).sum(axis=2).max() <= claimed.node_l2**2 * (1 + 1e-12), strategy
            if (block, strategy) == (3, strategies(6)[1]):
                assert l1 == 2 * (4 * changes - 2)  # reached


@pytest.mark.parametrize("block", [2, 64], ids=["by-boundaries", "by-changes"])
def test_each_entry_of_an_owner_is_charged_in_every_norm(block):
    """Three entries move together, in as many cells; each cell has rounding, which adds up by squares."""
    tree = Tree(branching=2, height=2, refine="none", windows=2 * block, initial_level=False)
    filtered = Factorised(kernel=Coefficients(), windows=2 * block, initial_level=True)
    one, of_filter = unit(2, block, 64, tree), unit(2, block, 64, filtered)
    three, of_three = (owned(a, entries=3) for a in (one, of_filter))

    for asked, strategy in ((of_net, tree), (partial(of_events, "entered"), tree), (partial(of_events, "left"), tree)):
        norms, charged = (
            [s.l1, s.l2, s.node_l1, s.node_l2, s.coordinates] for s in (asked(strategy, one), asked(strategy, three))
        )
        assert charged == pytest.approx([3 * norm for norm in norms])
    rounded = [of_net(filtered, u).l2 - squared_in_blocks(filtered, u) ** 0.5 for u in (of_filter, of_three)]
    assert rounded[1] >= 3**0.5 * rounded[0] * (1 - 1e-6)
    assert squared_in_blocks(filtered, of_three) == pytest.approx(9 * squared_in_blocks(filtered, of_filter))
    assert of_net(filtered, of_three).coordinates == 3 * of_net(filtered, of_filter).coordinates


def test_both_courses_may_count_for_long_even_if_only_one_existed_at_a_time():
    """In six windows one or the other is present; counted states differ at ten ends of windows, seven in two cells."""
    a, b = 1, 2
    one = np.array([0, 0, a, 0, 0, 0, 0, 0, a, a, a, a, a])
    other = np.array([0, 0, 0, b, b, b, a, b, a, a, a, a, a])
    counted = [held(states[:, None], 2, 6)[:, 0] for states in (one, other)]
    g = np.stack([(counted[0] == c).astype(int) - (counted[1] == c) for c in (a, b)], axis=1)
    assert (np.count_nonzero(g), np.count_nonzero(g.any(axis=1))) == (17, 10)
    for strategy in (strategies(12)[0], strategies(12)[-4], strategies(12)[-1]):
        scale = 1 if strategy.sparse else 2**24
        nodes = nodes_of(strategy, g, scale)
        claimed = of_net(strategy, unit(2, 6, 2, strategy))
        assert (nodes**2).sum() <= claimed.l2**2 * (1 + 1e-12), strategy
        if strategy.sparse:
            assert np.abs(nodes).sum() <= claimed.l1, strategy
            assert np.count_nonzero(nodes.any(axis=1)) <= claimed.nodes, strategy
            assert np.abs(nodes).sum(axis=1).max() <= claimed.node_l1, strategy
            assert (nodes**2).sum(axis=1).max() <= claimed.node_l2**2 * (1 + 1e-12), strategy
        assert np.count_nonzero(nodes) <= claimed.coordinates, strategy


@pytest.mark.parametrize(("block", "least"), [(2, 0), (64, 1)])
def test_rounding_of_a_filter_is_charged_for_any_blocks(block, least):
    """By boundaries in short blocks, by the changes of two courses in long ones."""
    filtered = Factorised(kernel=Coefficients(), windows=2 * block, initial_level=True)
    rounded = [
        filtered.moved_apart(2 * block, cells=1, each=1, largest=[2**24], entries=2).rounding,
        2 * filtered.moved(at_most(4), cells=1, each=1, largest=[2**24], shared=False).rounding,
    ]

    asked = unit(2, block, 1, filtered)
    charged = of_net(filtered, asked).l2 - squared_in_blocks(filtered, asked) ** 0.5

    assert charged == pytest.approx(rounded[least], rel=1e-6)
    assert rounded[0] != pytest.approx(rounded[1], rel=1e-3)


@pytest.mark.parametrize(("cells", "components", "most"), [(2, COUNT, 10), (1, COUNT * 2, 12)])
def test_changes_that_move_two_numbers_are_charged_as_far_as_both_courses_can_be(cells, components, most):
    """Four and three changes, each by 2, would be 14: but both courses are in one state outside the span."""
    tree = Tree(branching=2, height=1, refine="none", windows=None, initial_level=False)
    asked = replace(unit(2, 64, cells, tree), components=components)

    assert of_net(tree, asked).l1 == most


def test_levels_of_both_signs_are_as_far_apart_as_their_ends_at_every_boundary():
    """A sum from -4 to 4 and a count, in one cell: 2 and 1 of the largest, at 36 ends of windows.

    With 17 changes no exact charge is known.
    """
    signed, levels = Component(name="sum", grid=1.0, low=-4, high=4), Direct(windows=None)
    found = of_net(levels, replace(unit(17, 18, 1, levels), components=(signed, *COUNT)))

    assert (found.l1, found.l2**2) == (36 * (2 + 1), pytest.approx(36 * (4 + 1)))
    assert (found.node_l1, found.node_l2**2) == (2 * (2 + 1), pytest.approx(4 * (4 + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("leaf", [2, 3, 4])
def test_leaves_of_several_windows_need_not_fit_the_blocks(leaf):
    g = differences(2, 3, 2)
    for blocks in range(leaf):
        before, after = (np.zeros((3 * n, *g.shape[1:]), dtype=int) for n in (blocks, 3))  # equal there
        at_leaves = np.concatenate([before, g, after])[::leaf]
        windows = max(1, len(at_leaves) - 1)
        tree = Tree(branching=2, height=1, refine="none", windows=windows, initial_level=True)
        for strategy in (tree, Direct(windows=windows)):
            nodes = nodes_of(strategy, at_leaves.reshape(len(at_leaves), -1)).reshape(-1, *g.shape[1:])
            claimed = of_net(strategy, leaves_of(unit(2, 3, 2, strategy), leaf))
            assert np.abs(nodes).sum(axis=(0, 2)).max() <= claimed.l1, strategy
            assert (nodes**2).sum(axis=(0, 2)).max() <= claimed.l2**2 * (1 + 1e-12), strategy
            assert (nodes != 0).any(axis=2).sum(axis=0).max() <= claimed.nodes, strategy


@pytest.mark.parametrize("family", ["entered", "left"])
def test_counted_events_are_charged_as_those_of_two_entries(family):
    tree = Tree(branching=2, height=2, refine="none", windows=6, initial_level=False)
    one, other = (held(states, 2, 3) for states in neighbours(3, 2))
    claimed, events = of_events(family, tree, unit(2, 3, 2, tree)), []
    for states in (one, other):
        now, before = (states[1:], states[:-1]) if family == "entered" else (states[:-1], states[1:])
        events.append(np.stack([(now == c) & (before != c) for c in (1, 2)], axis=2).astype(int))
    leaves = events[0] - events[1]
    nodes = np.concatenate([leaves, leaves.reshape(3, 2, -1, 2).sum(axis=1)])

    assert np.abs(nodes).sum(axis=(0, 2)).max() <= claimed.l1
    assert (nodes**2).sum(axis=(0, 2)).max() <= claimed.l2**2 * (1 + 1e-12)
    assert (nodes != 0).sum(axis=(0, 2)).max() <= claimed.coordinates
    single = replace(tree, height=1)
    assert (leaves != 0).any(axis=2).sum(axis=0).max() <= of_events(family, single, unit(2, 3, 2, single)).nodes


def planned(series: Series, changes: int | None, name: str = "auto") -> Plan:
    demand = Demand(name="beds", measure=Measure(kind="count"), cells=1, series=(series,), choice=Choice(name=name))
    return make_plan(
        [demand],
        promise=Promise(
            constraint=AtOnce() if changes is None else AtOnce(changes=changes, block=365),
            window=1,
            windows=None,
            owner=False,
            protects=Span(365),
        ),
        budget=Budget(epsilon=1.0),
        mechanism="laplace",
        accounting="naive",
    )


@pytest.mark.slow
@pytest.mark.parametrize(("series", "share"), [(LEVEL, 0.15), (CHANGE, 0.012)], ids=str)
def test_few_changes_in_a_year_of_days_are_far_less_than_all_its_days(series, share):
    every, few = planned(series, None, "direct"), planned(series, 2)

    assert stddev(few, 0, series, 1024).mean() < share * stddev(every, 0, series, 1024).mean()


@pytest.mark.slow
def test_a_plan_with_blocks_is_kept_and_spent():
    plan = planned(CHANGE, 3)
    document = plan_to_json(plan)

    assert document["promise"]["constraint"] == {"kind": "at_once", "changes": 3, "block": 365}
    assert plan_from_json(document) == plan
    assert proved(plan) <= 1.0
    assert 0 < spent(plan, 1).epsilon < spent(plan, 10).epsilon <= 1.0


def test_blocks_are_as_long_as_the_span():
    tree = Direct(windows=None)
    with pytest.raises(ValueError, match="at least as long as the span"):
        replace(unit(2, 3, 1, tree).promise, protects=Span(4))
    with pytest.raises(ValueError, match="at_most"):
        AtOnce(changes=1, block=3)
