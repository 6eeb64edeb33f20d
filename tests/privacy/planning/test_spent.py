"""Budget spent so far, compared with all effects of a unit on publications, and with sums by hand."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privacy.accounting.accounting import Budget, Measurement, epsilon_spent
from privacy.constraint import AtMost, ByClass, Constraint, Within
from privacy.measure import STEPS, Measure
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.contribution import Contribution
from privacy.planning.demand import Demand
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_net
from privacy.planning.spent import spent, whole
from privacy.series import Series
from privacy.strategies.base import Strategy
from privacy.strategies.choice import Choice
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.tree.tree import Tree
from tests.privacy.planning.accountings import ACCOUNTINGS
from tests.privacy.steps import Node, exact_nodes, listed, nodes_matrix, noise_matrix, sampled

LEVEL, CHANGE, ENTERED = Series(kind="level"), Series(kind="change"), Series(kind="entered")
SLIDING = Series(kind="sliding", width=3)
FORTNIGHT = Series(kind="sliding", width=14, every=7)

DISJOINT = Choice(name="disjoint")


def tree(branching: int, height: int, refine: str = "none") -> Choice:
    return Choice(name="tree", branching=branching, height=height, refine=refine)


def factorised(form: str) -> Choice:
    return Choice(name="factorised", form=form)


def demand(
    *series: Series, choice: Choice = DISJOINT, cells: int = 1, weight: float = 1.0, kind: str = "count"
) -> Demand:
    measure = Measure(kind="count") if kind == "count" else Measure(kind=kind, low=0, high=100)
    return Demand(name="q", measure=measure, cells=cells, series=series, weight=weight, choice=choice)


def planned(
    *demands: Demand,
    constraint: Constraint,
    windows: int | None,
    owner: bool = False,
    way: tuple[Mechanism, Accounting, float] = ("laplace", "naive", 0.0),
    epsilon: float = 1.0,
) -> Plan:
    mechanism, accounting, delta = way
    return make_plan(
        demands,
        promise=Promise(constraint=constraint, window=10, windows=windows, owner=owner),
        budget=Budget(epsilon=epsilon, delta=delta),
        mechanism=mechanism,
        accounting=accounting,
    )


def epsilons(plan: Plan, *windows: int) -> list[float]:
    return [spent(plan, count).epsilon for count in windows]


# By brute force


def units(windows: int, cells: int, changes: int, initial_level: bool) -> np.ndarray:
    """Return leaf sums [units, 1 + windows, cells] of every entry of ones with at most `changes` changes."""
    states = np.array(list(itertools.product(range(cells + 1), repeat=1 + windows)))
    changed = np.diff(states, axis=1, prepend=0) != 0
    states = states[changed.sum(axis=1) <= changes]
    held = np.eye(cells + 1, dtype=np.int64)[states][:, :, 1:]
    sums = np.diff(held, axis=1, prepend=0)
    if not initial_level:
        sums[:, 0] = 0
    return sums


def begun(strategy: Strategy, windows: int) -> list[Node]:
    """Return the nodes that publications may contain by then: complete ones, and those that numbers use in advance."""
    complete = set(listed(strategy.nodes(windows)))
    return [node for node in sampled(strategy, windows) if strategy.in_advance or node in complete]


def drawn(strategy: Strategy, windows: int) -> np.ndarray:
    """Return C, [nodes, 1 + windows], of these nodes, with leaves that are 0 afterwards."""
    if isinstance(strategy, Factorised):
        return exact_nodes(strategy, np.eye(1 + windows, dtype=np.int64) * STEPS) / STEPS
    return nodes_matrix(begun(strategy, windows), windows).astype(np.float64)


def told(strategy: Strategy, series: tuple[Series, ...], windows: int) -> np.ndarray:
    """Return [numbers, nodes]: the effect of each node's noise on the nodes and numbers published by then."""
    nodes, complete = begun(strategy, windows), set(listed(strategy.nodes(windows)))
    published = [noise_matrix(strategy, one, windows, nodes) for one in series]
    own = np.eye(len(nodes))[[place for place, node in enumerate(nodes) if node in complete]]
    return np.concatenate([own, *published])


STRATEGIES = [
    (DISJOINT, (LEVEL, CHANGE), 5),
    (DISJOINT, (CHANGE,), None),
    (tree(2, 3), (LEVEL,), 5),
    (tree(2, 3), (CHANGE, SLIDING), None),
    (tree(3, 2, "bottom_up"), (LEVEL,), 6),
    (tree(2, 2, "subtraction"), (LEVEL,), None),
    (tree(3, 2, "subtraction"), (CHANGE, SLIDING), 5),
    (tree(4, 2, "subtraction"), (LEVEL,), 6),
    (tree(2, 3, "least_squares"), (LEVEL,), 6),
    (tree(2, 2, "least_squares"), (CHANGE,), None),
    (Choice(name="sliding"), (SLIDING,), 6),
    (Choice(name="sliding"), (SLIDING,), None),
    (factorised("square_root"), (LEVEL,), 6),
    (factorised("leaky"), (LEVEL,), 6),
    (factorised("arma"), (CHANGE,), 6),
    (factorised("window"), (SLIDING,), None),
]


@pytest.mark.slow
@pytest.mark.few(13)
@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize(("choice", "series", "horizon"), STRATEGIES, ids=str)
def test_no_unit_moves_the_published_numbers_further_than_the_spent_budget(choice, series, horizon, cells):
    """Gaussian noise: the part of C z that all published numbers together reveal counts."""
    changes = 3
    plan = planned(
        demand(*series, choice=choice, cells=cells),
        constraint=AtMost(changes),
        windows=horizon,
        way=("gaussian", "zcdp", 1e-6),
    )
    (released,) = plan.parts
    sigma = released.noise[0].scale / plan.demands[0].measure.components[0].largest
    for windows in range(1, 7 if horizon is None else horizon + 1):
        nodes, numbers = drawn(released.strategy, windows), told(released.strategy, series, windows)
        seen = np.linalg.pinv(numbers) @ numbers @ nodes
        initial_level = getattr(released.strategy, "initial_level", False)
        moved = np.einsum("nw,uwc->unc", seen, units(windows, cells, changes, initial_level))
        most = float((moved**2).sum(axis=(1, 2)).max(initial=0.0))

        rho = spent(plan, windows).shares[0]

        assert math.sqrt(2 * rho) * sigma >= math.sqrt(most) * (1 - 1e-6)
        if choice in (DISJOINT, tree(2, 3)) and cells == 1:
            assert math.sqrt(2 * rho) * sigma == pytest.approx(math.sqrt(most), rel=1e-6)


@pytest.mark.few(9)
@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize(("choice", "series", "horizon"), [s for s in STRATEGIES if s[0].form is None], ids=str)
def test_no_unit_moves_the_sampled_nodes_further_than_the_spent_budget(choice, series, horizon, cells):
    """Laplace noise: L1 of all nodes with sampled noise."""
    changes = 3
    plan = planned(demand(*series, choice=choice, cells=cells), constraint=AtMost(changes), windows=horizon)
    (released,) = plan.parts
    for windows in range(1, 7 if horizon is None else horizon + 1):
        initial_level = getattr(released.strategy, "initial_level", False)
        nodes = drawn(released.strategy, windows)
        moved = np.einsum("nw,uwc->unc", nodes, units(windows, cells, changes, initial_level))
        most = float(np.abs(moved).sum(axis=(1, 2)).max(initial=0.0))

        epsilon = spent(plan, windows).epsilon

        assert epsilon * released.noise[0].scale >= most * (1 - 1e-9)
        if choice in (DISJOINT, tree(2, 3)) and cells == 1:
            assert epsilon * released.noise[0].scale == pytest.approx(most)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["square_root", "leaky", "arma"])
def test_a_shorter_factorisation_is_the_first_rows_of_the_longer_one(form):
    (released,) = planned(
        demand(LEVEL, choice=factorised(form)), constraint=AtMost(4), windows=90, way=("gaussian", "pld", 1e-6)
    ).parts
    whole, near = released.strategy, replace(released.strategy, windows=17)
    leaves = np.random.default_rng(5).integers(-STEPS, STEPS, size=(18, 3))

    np.testing.assert_array_equal(exact_nodes(near, leaves), exact_nodes(whole, leaves))
    np.testing.assert_array_equal(near.coefficients, whole.coefficients[: len(near.coefficients)])


# By hand


def test_a_binary_tree_spends_a_layer_when_its_first_node_is_complete():
    """One change lies in as many nodes as there are layers with a node: 1, 2, 2, 3, ... of 4."""
    plan = planned(demand(CHANGE, choice=tree(2, 4)), constraint=AtMost(1), windows=8)

    assert epsilons(plan, *range(9)) == pytest.approx([0, 1 / 4, 2 / 4, 2 / 4, 3 / 4, 3 / 4, 3 / 4, 3 / 4, 1])


def test_a_histogram_spends_two_thirds_on_a_move_and_the_rest_with_the_second_window():
    """Two changes: L1 3 by an insertion and a move. In one window an entry that was present moves, L1 2."""
    plan = planned(demand(CHANGE, cells=20), constraint=AtMost(2), windows=None)

    assert epsilons(plan, 1, 2, 3) == pytest.approx([2 / 3, 1, 1])


def test_an_initial_level_is_published_with_the_first_window():
    """Levels with two changes: one at the initial level and one in the first window make L1 2, the whole budget."""
    plan = planned(demand(LEVEL), constraint=AtMost(2), windows=100)

    assert epsilons(plan, 0, 1, 100) == pytest.approx([0, 1, 1])


def test_an_initial_level_counts_even_before_its_first_leaf_is_full():
    plan = planned(demand(LEVEL), constraint=AtMost(2), windows=100)
    merged = replace(plan, parts=(replace(plan.parts[0], leaf=7),))

    assert epsilons(merged, 0, 1) == pytest.approx([0, 1])


def test_direct_windows_spend_nothing_until_the_first_ends():
    """One change in windows of 3: in no node, in no node, in 1, 2 and 3 of them."""
    plan = planned(demand(SLIDING, choice=Choice(name="sliding")), constraint=AtMost(1), windows=50)

    assert epsilons(plan, *range(7)) == pytest.approx([0, 0, 0, 1 / 3, 2 / 3, 1, 1])


def test_leaves_of_a_week_are_spent_by_the_week():
    """Windows of a fortnight by the week, from leaves of a week: two changes are two leaves."""
    plan = planned(demand(FORTNIGHT), constraint=AtMost(2), windows=70)

    assert plan.parts[0].leaf == 7
    assert epsilons(plan, 0, 6, 7, 13, 14, 70) == pytest.approx([0, 0, 0.5, 0.5, 1, 1])


def test_noise_in_advance_spends_for_all_nodes_under_the_begun_root():
    """Roots of two windows, two changes: under one root L1 2 (two leaves, or a leaf and the root), under two L1 4."""
    plan = planned(demand(CHANGE, choice=tree(2, 2, "subtraction")), constraint=AtMost(2), windows=None)

    assert epsilons(plan, 0, 1, 2, 3, 4, 5) == pytest.approx([0, 0.5, 0.5, 1, 1, 1])


@pytest.mark.parametrize("refine", ["subtraction", "least_squares"])
def test_noise_in_advance_under_a_single_root_spends_everything_at_once(refine):
    plan = planned(demand(CHANGE, choice=tree(2, 4, refine)), constraint=AtMost(3), windows=8)

    assert epsilons(plan, 0, 1, 8) == [0, plan.budget.epsilon, plan.budget.epsilon]


def test_events_are_spent_window_by_window_and_at_once_by_an_owner():
    """Five changes of an entry: it enters three times, once a window. An owner's five entries enter in one window."""
    plan = planned(demand(ENTERED), constraint=AtMost(5), windows=None)
    owners = planned(demand(ENTERED), constraint=AtMost(5), windows=None, owner=True)

    assert epsilons(plan, 1, 2, 3, 4) == pytest.approx([1 / 3, 2 / 3, 1, 1])
    assert epsilons(owners, 1, 2) == pytest.approx([1, 1])


def test_a_span_is_spent_as_its_windows_close():
    """25 units of time meet at most 4 windows of 10."""
    plan = planned(demand(CHANGE), constraint=Within(25), windows=None)

    assert epsilons(plan, 1, 2, 3, 4, 5) == pytest.approx([1 / 4, 2 / 4, 3 / 4, 1, 1])


def test_queries_spend_their_own_shares():
    """Four changes at a quarter of the weight; and sliding windows of 3 at three quarters, that begin in window 3."""
    plan = planned(
        demand(CHANGE), demand(SLIDING, choice=Choice(name="sliding"), weight=3), constraint=AtMost(4), windows=365
    )

    first, third = (spent(plan, windows) for windows in (1, 3))

    assert first.shares == pytest.approx((1 / 16, 0))
    assert third.shares == pytest.approx((3 / 16, 3 / 4 / 12))
    assert third.epsilon == pytest.approx(3 / 16 + 3 / 4 / 12)


def test_a_span_is_measured_in_leaves():
    """70 time units meet two leaves of a week. Under a root of four they make 4 nodes odd, across two roots 6."""
    plan = planned(demand(FORTNIGHT, choice=tree(2, 3)), constraint=Within(70), windows=None)

    assert plan.parts[0].leaf == 7
    assert epsilons(plan, 28, 56) == pytest.approx([4 / 6, 1])


# Composition


def several() -> list[Demand]:
    return [
        demand(LEVEL, CHANGE, ENTERED, cells=20),
        demand(CHANGE, kind="mean", weight=2.5, cells=3),
        demand(SLIDING, choice=Choice(name="sliding"), weight=0.25),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("way", ACCOUNTINGS, ids=str)
def test_at_the_horizon_it_is_the_plans_and_before_it_rises_to_that(way):
    plan = planned(*several(), constraint=AtMost(4), windows=5, way=way, epsilon=0.7)

    course = [spent(plan, windows) for windows in range(6)]

    assert (course[0].epsilon, course[0].delta, course[0].shares) == (0.0, 0.0, (0.0, 0.0, 0.0))
    assert {s.delta for s in course[1:]} == {plan.budget.delta}
    assert course[5] == whole(plan)
    assert whole(plan).epsilon == plan.budget.epsilon
    for query, share in enumerate(whole(plan).shares):
        assert share == pytest.approx(math.fsum(r.share for r in plan.parts if r.query == query), rel=1e-15)
    for earlier, later in itertools.pairwise(course):
        assert earlier.epsilon <= later.epsilon + 1e-11
        assert all(a <= b for a, b in zip(earlier.shares, later.shares, strict=True))
    assert 0.1 * plan.budget.epsilon < course[1].epsilon < 0.9 * plan.budget.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("way", ACCOUNTINGS, ids=str)
def test_parts_are_composed_as_in_the_plan_with_the_noise_that_is_drawn(way):
    mechanism, accounting, delta = way
    plan = planned(demand(CHANGE), demand(CHANGE, cells=3, weight=7), constraint=AtMost(4), windows=None, way=way)
    measurements, scales = [], []
    for released, weight in zip(plan.parts, (1, 7), strict=True):
        asked = plan.demands[released.query]
        unit = Contribution(
            promise=Promise(constraint=AtMost(4), window=10, windows=None, owner=False),
            components=asked.measure.components,
            cells=asked.cells,
        )
        near = of_net(Tree(branching=2, height=1, refine="none", windows=2, initial_level=False), unit)
        measurements.append(
            Measurement(
                l1=near.l1,
                l2=near.l2,
                nodes=near.nodes,
                node_l1=near.node_l1,
                node_l2=near.node_l2,
                coordinates=near.coordinates,
                weight=weight,
            )
        )
        scales.append(released.noise[0].scale / asked.measure.components[0].largest)
    steps = plan.demands[0].measure.components[0].largest

    expected = epsilon_spent(measurements, scales, mechanism=mechanism, accounting=accounting, delta=delta, steps=steps)

    assert expected < 0.9 * plan.budget.epsilon
    assert spent(plan, 2).epsilon == pytest.approx(expected, rel=1e-12)


def test_laplace_losses_add_up_in_exact_arithmetic_and_are_rounded_up():
    """Over one window each count of one cell moves by 1, so the loss is the sum of 1 / scale."""
    plan = planned(
        *(demand(CHANGE, weight=weight) for weight in (1, 3, 7, 11)), constraint=AtMost(7), windows=100, epsilon=0.7
    )
    exact = sum((1 / Fraction(released.noise[0].scale) for released in plan.parts), Fraction(0))

    epsilon = spent(plan, 1).epsilon

    assert Fraction(math.nextafter(epsilon, 0)) < exact <= Fraction(epsilon)


def test_shares_of_a_query_are_added_exactly_and_rounded_up():
    weights = [1.0, 3.0, 7.0, 11.0, 13.0, 17.0]
    series = (CHANGE, ENTERED, Series(kind="left"))
    plan = planned(*(demand(*series, weight=weight) for weight in weights), constraint=AtMost(7), windows=None)

    shares = spent(plan, 10_000).shares

    for query, share in enumerate(shares):
        exact = sum((Fraction(r.share) for r in plan.parts if r.query == query), Fraction(0))
        assert Fraction(math.nextafter(share, 0)) < exact <= Fraction(share)


@pytest.mark.slow
@pytest.mark.few(7)
@pytest.mark.parametrize(
    ("choice", "series"),
    [
        (DISJOINT, FORTNIGHT),
        (tree(2, 6), LEVEL),
        (tree(3, 4, "subtraction"), CHANGE),
        (tree(5, 3, "bottom_up"), LEVEL),
        (tree(7, 2, "least_squares"), FORTNIGHT),
        (Choice(name="sliding"), FORTNIGHT),
        (factorised("leaky"), LEVEL),
        (factorised("window"), FORTNIGHT),
    ],
    ids=str,
)
@pytest.mark.parametrize("constraint", [AtMost(9), ByClass("c", (("a", AtMost(2)), ("b", Within(350))))], ids=str)
def test_the_spent_budget_never_falls_and_never_exceeds_the_plan(choice, series, constraint):
    way: tuple[Mechanism, Accounting, float] = ("gaussian", "pld", 1e-6)
    plan = planned(demand(series, choice=choice), constraint=constraint, windows=200, way=way)

    course = [spent(plan, windows) for windows in (*range(0, 17), 41, 80, 81, 182, 199, 200)]

    # The solver of Gaussian losses is accurate to 1e-11, which its margins include.
    assert all(a.epsilon <= b.epsilon + 1e-11 for a, b in itertools.pairwise(course))
    assert all(a.shares <= b.shares for a, b in itertools.pairwise(course))
    assert course[0].epsilon == 0
    assert course[-1].epsilon == plan.budget.epsilon


def test_windows_that_do_not_exist_are_refused():
    plan = planned(demand(CHANGE), constraint=AtMost(2), windows=5)

    with pytest.raises(ValueError, match="windows: expected at least 0, not -1"):
        spent(plan, -1)
    with pytest.raises(ValueError, match="6 windows are more than the horizon of 5"):
        spent(plan, 6)
