"""Charged sensitivities for a span of time, compared with all trajectories of small sizes that differ in it."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from privacy.constraint import AtMost, AtOnce
from privacy.measure import Component
from privacy.planning.contribution import Contribution
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_events, of_net
from privacy.planning.sensitivity_in_span import MOST_FULL, fullest
from privacy.problems import RuleError
from privacy.protection import EVERYTHING, Span
from privacy.series import Series
from privacy.states import apart_in_l1, apart_in_l2_squared
from privacy.strategies.base import Strategy
from privacy.strategies.direct.direct import Direct
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.exponential_kernel import Exponentials
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.factorised.fitting import dyadic
from privacy.strategies.sliding import Sliding
from privacy.strategies.tree.apart import signs
from privacy.strategies.tree.tree import Tree

WINDOWS = 16
COUNT = (Component(name="count", grid=1.0, low=1, high=1),)
FINE = (Component(name="count", grid=2.0**-24, low=2**24, high=2**24),)

LEVEL = Series(kind="level")


def series_of(strategy: Strategy) -> Series:
    return (
        Series(kind="sliding", width=strategy.width, every=strategy.every) if isinstance(strategy, Sliding) else LEVEL
    )


def nodes_of(strategy: Strategy, g: np.ndarray, scale: int = 1) -> np.ndarray:
    """Return exact nodes, [nodes, trajectories], of differences [boundaries, trajectories]."""
    leaves = np.diff(g, axis=0, prepend=0).astype(np.int64) * scale
    nodes, _, _ = strategy.step(
        None, leaves, series=[series_of(strategy)], sample=lambda n: np.zeros((len(n.end), g.shape[1]), dtype=np.int64)
    )
    return nodes / scale


def on_a_line(boundaries: int) -> np.ndarray:
    """Return every way to differ by -1 or 1 at consecutive boundaries, anywhere, [1 + WINDOWS, ways]."""
    each = np.array(list(itertools.product((-1, 1), repeat=boundaries))).T
    found = []
    for first in range(WINDOWS + 2 - boundaries):
        g = np.zeros((WINDOWS + 1, each.shape[1]))
        g[first : first + boundaries] = each
        found.append(g)
    return np.concatenate(found, axis=1)


def trees(**others) -> list[Tree]:
    return [
        Tree(branching=c, height=h, refine="none", windows=WINDOWS, initial_level=initial, **others)
        for c, h in ((2, 1), (2, 3), (2, 5), (3, 2), (4, 2), (16, 2))
        for initial in (True, False)
    ]


SPARSE: list[Strategy] = [
    *trees(),
    *(Sliding(width=w, every=e, windows=WINDOWS) for w, e in ((1, 1), (3, 1), (4, 2), (5, 3), (2, 3), (9, 1))),
    Direct(windows=WINDOWS),
]
FILTERS: list[Factorised] = [
    *(Factorised(kernel=Coefficients(), windows=WINDOWS, initial_level=initial) for initial in (True, False)),
    Factorised(kernel=Coefficients(leak=0.2), windows=WINDOWS, initial_level=True),
    Factorised(kernel=Coefficients(leak=0.3, ends=True), windows=None, initial_level=False),
    Factorised(kernel=Exponentials(poles=dyadic(np.array([0.5]), np.array([]))), windows=WINDOWS, initial_level=True),
]


@pytest.mark.parametrize("boundaries", [1, 2, 3, 5, 8])
def test_no_trajectory_of_one_cell_exceeds_the_charge(boundaries):
    g = on_a_line(boundaries)
    for strategy in SPARSE:
        nodes = nodes_of(strategy, g)
        one = strategy.norm_apart(apart_in_l1(COUNT, 1, 1), boundaries)
        two = strategy.norm_apart(apart_in_l2_squared(COUNT, 1), boundaries)
        moved = strategy.moved_apart(boundaries, cells=1, each=1, largest=[1], entries=1)
        assert np.abs(nodes).sum(axis=0).max() <= one, strategy
        assert (nodes**2).sum(axis=0).max() <= two, strategy
        assert np.count_nonzero(nodes, axis=0).max() <= min(moved.nodes, moved.coordinates), strategy


@pytest.mark.parametrize("boundaries", [1, 2, 3, 5])
def test_the_charge_is_reached_if_the_horizon_is_far(boundaries):
    """Half of the charge, or one node less, would be exceeded."""
    g = on_a_line(boundaries)
    far: list[Strategy] = [*(t for t in trees() if t.branching ** (t.height - 1) <= 4), Direct(windows=WINDOWS)]
    far += [Sliding(width=w, every=e, windows=WINDOWS) for w, e in ((1, 1), (3, 1), (4, 2))]
    for strategy in far:
        nodes = nodes_of(strategy, g)
        assert np.abs(nodes).sum(axis=0).max() == strategy.norm_apart(apart_in_l1(COUNT, 1, 1), boundaries), strategy
        assert (nodes**2).sum(axis=0).max() == strategy.norm_apart(apart_in_l2_squared(COUNT, 1), boundaries), strategy


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("refine", ["subtraction", "least_squares"])
@pytest.mark.parametrize("boundaries", [1, 2, 3, 5, 12])
def test_the_last_boundary_ends_a_node_of_every_layer_if_the_horizon_cuts_them(refine, boundaries):
    g, reached = on_a_line(boundaries), 0
    for c, h, windows, initial in itertools.product((2, 3), (2, 3, 5), (5, 9, 10, 13, 15), (True, False)):
        strategy = Tree(branching=c, height=h, refine=refine, windows=windows, initial_level=initial)
        nodes = nodes_of(strategy, g[: windows + 1])
        one = strategy.norm_apart(apart_in_l1(COUNT, 1, 1), boundaries)
        two = strategy.norm_apart(apart_in_l2_squared(COUNT, 1), boundaries)
        assert np.abs(nodes).sum(axis=0).max() <= one, strategy
        assert (nodes**2).sum(axis=0).max() <= two, strategy
        reached += int((nodes**2).sum(axis=0).max() == two)
    assert reached > 10 or boundaries > 3


@pytest.mark.slow
@pytest.mark.parametrize("boundaries", [1, 2, 4, 7])
def test_no_trajectory_of_several_cells_and_entries_exceeds_the_charge(boundaries):
    random = np.random.default_rng(boundaries)
    cells, entries, tried = 3, 2, 400
    strategies: list[Strategy] = [s for s in SPARSE if not isinstance(s, Tree) or s.branching == 2]
    for strategy in strategies:
        first = random.integers(0, WINDOWS + 2 - boundaries, tried)
        g = np.zeros((WINDOWS + 1, tried, cells))
        for i, at in enumerate(first):
            for _ in range(entries):
                cell = random.integers(0, cells, boundaries)
                g[at + np.arange(boundaries), i, cell] += random.integers(0, 2, boundaries)
            g[:, i] *= random.choice((-1, 1), (WINDOWS + 1, 1))
        nodes = nodes_of(strategy, g.reshape(WINDOWS + 1, -1)).reshape(-1, tried, cells)
        one = strategy.norm_apart(apart_in_l1(COUNT, cells, entries), boundaries)
        two = strategy.norm_apart(apart_in_l2_squared(COUNT, entries), boundaries)
        moved = strategy.moved_apart(boundaries, cells=cells, each=1, largest=[1], entries=entries)
        assert np.abs(nodes).sum(axis=(0, 2)).max() <= one, strategy
        assert (nodes**2).sum(axis=(0, 2)).max() <= two, strategy
        assert np.count_nonzero(nodes, axis=(0, 2)).max() <= moved.coordinates, strategy


@pytest.mark.parametrize("boundaries", [1, 2, 4, 8])
def test_no_trajectory_moves_a_filter_further_than_charged(boundaries):
    g = on_a_line(boundaries)
    for strategy in FILTERS:
        unit = Contribution(
            promise=Promise(constraint=AtOnce(), window=1, windows=None, owner=False, protects=Span(boundaries)),
            components=FINE,
            cells=1,
        )
        farthest = np.sqrt((nodes_of(strategy, g, 2**24) ** 2).sum(axis=0).max())
        claimed = of_net(strategy, unit).l2
        assert farthest <= claimed * (1 + 1e-12), strategy
        assert farthest >= 0.7 * claimed, strategy


def test_the_square_root_of_nine_windows():
    """Known figure: 7.37 for four boundaries."""
    strategy = Factorised(kernel=Coefficients(), windows=9, initial_level=False)
    squared = float(strategy.norm_apart(apart_in_l2_squared(FINE, 1), 4))
    g = on_a_line(4)[: 9 + 1]
    inside = g[:, (g[0] == 0) & (np.abs(g).sum(axis=0) == 4)]
    assert (nodes_of(strategy, inside, 2**24) ** 2).sum(axis=0).max() == pytest.approx(7.37, abs=0.01)
    assert squared >= 7.37


@pytest.mark.parametrize("branching", [2, 4, 3])
def test_signs_that_alternate_serve_all_layers_of_odd_trees_and_not_of_even_ones(branching):
    by_layers = sum(4 * -(-9 // branching**layer) - 2 for layer in range(3))
    found = signs(9, branching=branching, layers=3, ratio=4)
    assert (found == by_layers) == (branching % 2 == 1)
    assert found <= by_layers


@pytest.mark.parametrize("cells", [1, 2])
def test_events_of_many_entries_of_several_components_may_share_a_node(cells):
    """Two of three windows fill a node: 3 entries of 2 components add up; in several cells events return."""
    tree = Tree(branching=2, height=2, refine="none", windows=None, initial_level=False)
    unit = Contribution(
        promise=Promise(constraint=AtOnce(3), window=1, windows=None, owner=True, protects=Span(2)),
        components=COUNT * 2,
        cells=cells,
    )
    found = of_events("entered", tree, unit)
    more = cells - 1
    assert (found.l1, found.l2**2) == (2 * (3 + more) * 6, pytest.approx((3 * 1 + 4 + 1 + 2 * more) * 9 * 2))
    assert (found.node_l1, found.node_l2**2) == ((2 + more) * 6, pytest.approx((4 + more) * 9 * 2))
    assert (found.nodes, found.coordinates) == (6, 8 * cells * 2)


@pytest.mark.parametrize("rest", [0, 1, 6])
def test_very_many_full_nodes_are_charged_as_one_that_weighs_no_less(rest):
    full = MOST_FULL + 1
    (one,) = fullest(7 * full + rest, 7)
    assert 7**2 * full + rest**2 <= one**2 < 1.01 * 7**2 * full


def test_a_long_span_is_truncated_at_the_horizon():
    for strategy in SPARSE:
        here, far = (strategy.norm_apart(apart_in_l1(COUNT, 5, 1), boundaries) for boundaries in (WINDOWS + 1, 10_000))
        assert here == far, strategy


def test_a_span_and_a_number_of_changes_are_not_combined():
    changes, entries = "constraint: bounds changes", "constraint.entries: goes with a number of changes"
    for constraint, protects, message in ((AtMost(3), Span(4), changes), (AtOnce(), EVERYTHING, entries)):
        with pytest.raises(RuleError, match=f"privacy.{message}"):
            Contribution(
                promise=Promise(constraint=constraint, window=1, windows=None, owner=False, protects=protects),
                components=COUNT,
                cells=1,
            )


def test_direct_levels_are_charged_for_all_windows_without_a_span():
    unit = Contribution(
        promise=Promise(constraint=AtMost(2), window=1, windows=None, owner=False), components=COUNT, cells=4
    )
    found = of_net(Direct(windows=9), unit)
    assert (found.l1, found.l2**2) == (10.0, pytest.approx(10.0))
    with pytest.raises(ValueError, match="protect a span of time"):
        of_net(Direct(windows=None), unit)
    assert Direct(windows=None).norm_apart(apart_in_l1(COUNT, 4, 1), 7) == Fraction(7)
