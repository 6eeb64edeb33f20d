"""A plan spends its budget and never more: every scale is compared with sensitivities and losses computed here."""

import math
from fractions import Fraction
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.accounting import Budget, Measurement, epsilon_spent
from privacy.accounting.composition import paper_epsilon
from privacy.accounting.curves import zcdp_epsilon
from privacy.constraint import AtMost, ByClass, Constraint, Within
from privacy.measure import STEPS, Measure
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.contribution import Contribution, Sensitivity
from privacy.planning.demand import Demand
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan, stddev
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import MOST_OF_OWNER, of_events, of_net
from privacy.planning.spent import covered
from privacy.series import Series, SeriesKind
from privacy.strategies.choice import Choice
from tests.privacy.planning.accountings import ACCOUNTINGS
from tests.privacy.steps import exact_nodes
from tests.searches import examples

FOUR = AtMost(4)
DISJOINT = Choice(name="disjoint")


def demand(
    kinds: tuple[SeriesKind, ...] = ("change",),
    *,
    measure: Measure | None = None,
    cells: int = 1,
    weight: float = 1.0,
    name: str = "q",
    choice: Choice = DISJOINT,
) -> Demand:
    return Demand(
        name=name,
        measure=measure or Measure(kind="count"),
        cells=cells,
        series=tuple(Series(kind=kind) for kind in kinds),
        weight=weight,
        choice=choice,
    )


def plan(
    *demands: Demand,
    constraint: Constraint = FOUR,
    windows: int | None = 365,
    owner: bool = False,
    epsilon: float = 1.0,
    delta: float = 0.0,
    mechanism: Mechanism = "laplace",
    accounting: Accounting = "naive",
) -> Plan:
    return make_plan(
        demands,
        promise=Promise(constraint=constraint, window=10, windows=windows, owner=owner),
        budget=Budget(epsilon=epsilon, delta=delta),
        mechanism=mechanism,
        accounting=accounting,
    )


def several(fine: bool) -> list[Demand]:
    count = Measure(kind="count", fine=fine)
    mean, variance = (Measure(kind=kind, low=0, high=100, fine=fine) for kind in ("mean", "variance"))
    return [
        demand(("level", "change", "entered"), measure=count, cells=20),
        demand(("change",), measure=mean, cells=3, weight=2.5),
        demand(("left",), measure=count, weight=0.25),
        demand(("level",), measure=variance),
    ]


def expected_sensitivity(made: Plan, place: int, constraint: Constraint, windows: int | None) -> Sensitivity:
    released = made.parts[place]
    asked = made.demands[released.query]
    unit = Contribution(
        promise=Promise(constraint=constraint, window=10, windows=None, owner=False),
        components=asked.measure.components,
        cells=asked.cells,
    )
    assert released.strategy.windows == windows
    assert released.strategy.initial_level == (
        released.family == "net" and any(series.kind == "level" for series in asked.series)
    )
    if released.family == "net":
        return of_net(released.strategy, unit)
    return of_events(released.family, released.strategy, unit)


def measurements_and_scales(made: Plan) -> tuple[list[Measurement], list[float]]:
    """Return the cost of the noise that will be drawn, from its own scales: the least over a family's components."""
    measurements, scales = [], []
    for released in made.parts:
        asked, s = made.demands[released.query], released.sensitivity
        measurements.append(
            Measurement(
                l1=s.l1,
                l2=s.l2,
                nodes=s.nodes,
                node_l1=s.node_l1,
                node_l2=s.node_l2,
                coordinates=s.coordinates,
                weight=asked.weight / len(asked.families),
            )
        )
        components = asked.measure.components
        scales.append(
            min(distribution.scale / c.largest for distribution, c in zip(released.noise, components, strict=True))
        )
    return measurements, scales


def spent(made: Plan, scales: list[float], delta: float) -> float:
    measurements, _ = measurements_and_scales(made)
    steps = min(c.largest for asked in made.demands for c in asked.measure.components)
    return epsilon_spent(
        measurements, scales, mechanism=made.mechanism, accounting=made.accounting, delta=delta, steps=steps
    )


def test_a_count_of_four_changes_needs_laplace_noise_of_scale_four():
    """By hand: L1 = 4 over one cell, 1 + 3 x 2 = 7 over many; half of epsilon doubles it."""
    assert plan(demand()).parts[0].noise[0].scale == pytest.approx(4)
    assert plan(demand(cells=20)).parts[0].noise[0].scale == pytest.approx(7)
    assert plan(demand(), epsilon=0.5).parts[0].noise[0].scale == pytest.approx(8)
    first, second = plan(demand(weight=1), demand(weight=3)).parts
    assert (first.noise[0].scale, second.noise[0].scale) == pytest.approx((16, 16 / 3))
    assert (first.share, second.share) == pytest.approx((0.25, 0.75))


def test_a_count_of_four_changes_needs_gaussian_noise_of_twice_the_classic_sigma():
    """By hand: L2 = 2 and sigma = 4.2247 at (1, 1e-6) for L2 = 1 (Balle and Wang 2018), on a grid of 2^24 steps."""
    count = Measure(kind="count", fine=True)
    made = plan(demand(measure=count), delta=1e-6, mechanism="gaussian", accounting="pld")

    assert made.parts[0].noise[0].scale / STEPS == pytest.approx(2 * 4.2247, rel=1e-4)


def test_families_of_a_query_share_its_weight_evenly():
    """By hand: level L1 = 4; at most three entries enter, in five changes; each has half of epsilon."""
    made = plan(demand(("level", "change", "entered")), constraint=AtMost(5))

    assert [released.family for released in made.parts] == ["net", "entered"]
    assert [released.noise[0].scale for released in made.parts] == pytest.approx([10, 6])
    assert made.linear(0, "entered") == (made.parts[1],)


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "accounting", "delta"), ACCOUNTINGS)
def test_the_loss_is_the_budget_and_never_above(mechanism, accounting, delta):
    for epsilon in (0.1, 1.0, 8.0):
        with patch("privacy.accounting.accounting.TOLERANCE", 1e-5):
            made = plan(
                *several(fine=mechanism == "gaussian"),
                epsilon=epsilon,
                delta=delta,
                mechanism=mechanism,
                accounting=accounting,
            )
        told = spent(made, measurements_and_scales(made)[1], delta)

        assert told <= epsilon
        assert made.budget.epsilon <= epsilon
        assert told >= epsilon * (1 - 1e-4)
        assert made.budget.delta == delta
        assert covered(made, made.budget.epsilon * (1 + 1e-9))
        assert not covered(made, made.budget.epsilon * (1 - 1e-6))


def test_laplace_losses_add_up_to_the_budget_in_exact_arithmetic():
    made = plan(*several(fine=False), epsilon=0.7)
    _, scales = measurements_and_scales(made)

    total = sum(Fraction(r.sensitivity.l1) / Fraction(s) for r, s in zip(made.parts, scales, strict=True))

    assert Fraction(0.7) * (1 - Fraction(1, 10**9)) <= total <= Fraction(0.7)
    assert math.fsum(r.share for r in made.parts) == pytest.approx(0.7)


def test_gaussian_shares_add_up_to_the_budget_in_zcdp():
    made = plan(*several(fine=True), delta=1e-6, mechanism="gaussian", accounting="zcdp")
    _, scales = measurements_and_scales(made)

    rho = math.fsum((r.sensitivity.l2 / s) ** 2 / 2 for r, s in zip(made.parts, scales, strict=True))

    assert made.share_unit == "rho"
    assert rho == pytest.approx(math.fsum(r.share for r in made.parts))
    assert zcdp_epsilon(rho, 1e-6) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "accounting", "delta"), ACCOUNTINGS)
def test_halving_any_noise_would_break_the_budget(mechanism, accounting, delta):
    made = plan(
        *several(fine=mechanism == "gaussian"), delta=delta, mechanism=mechanism, accounting=accounting, epsilon=1.0
    )
    _, scales = measurements_and_scales(made)
    for place in range(len(scales)):
        halved = [scale / 2 if number == place else scale for number, scale in enumerate(scales)]

        assert spent(made, halved, delta) > 1.0 + 1e-3


@pytest.mark.parametrize(
    "constraint", [AtMost(1), AtMost(4), Within(25), ByClass("c", (("a", AtMost(6)), ("b", Within(3))))]
)
@pytest.mark.parametrize("windows", [1, 3, 365, None])
def test_the_sensitivity_is_that_of_the_families_that_are_released(constraint, windows):
    asked = [demand(("level", "entered"), cells=4), demand(("change",), measure=Measure(kind="mean", low=5, high=6))]
    made = plan(*asked, constraint=constraint, windows=windows)

    assert [r.sensitivity for r in made.parts] == [
        expected_sensitivity(made, place, constraint, windows) for place in range(len(made.parts))
    ]


@given(
    st.integers(1, 12),
    st.integers(1, 30),
    st.integers(1, 40) | st.none(),
    st.booleans(),
    st.sampled_from([("laplace", "naive", 0.0), ("gaussian", "pld", 1e-6)]),
)
@examples(10)
def test_the_papers_composition_never_needs_less_noise_than_the_joint_one(changes, cells, windows, owner, way):
    mechanism, accounting, delta = way
    asked = [
        demand(("level",), measure=Measure(kind="mean", low=-1, high=5, fine=mechanism == "gaussian"), cells=cells),
        demand(("change", "entered"), measure=Measure(kind="count", fine=mechanism == "gaussian"), cells=cells),
    ]
    with patch("privacy.accounting.accounting.TOLERANCE", 1e-5):
        ours, paper = (
            plan(
                *asked,
                constraint=AtMost(changes),
                windows=windows,
                owner=owner,
                delta=delta,
                mechanism=mechanism,
                accounting=how,
            )
            for how in (accounting, "paper")
        )

    for mine, theirs in zip(ours.parts, paper.parts, strict=True):
        assert mine.noise[0].scale <= theirs.noise[0].scale * (1 + 1e-5)
        assert mine.paper_epsilon >= mine.share * (1 - 1e-9)


def test_the_papers_epsilon_is_stated_for_the_noise_that_is_drawn():
    made = plan(demand(cells=20), demand(weight=2))
    measurements, scales = measurements_and_scales(made)

    for released, measurement, scale in zip(made.parts, measurements, scales, strict=True):
        stated = paper_epsilon([measurement], [scale], mechanism="laplace", delta=0.0)
        assert released.paper_epsilon == pytest.approx(stated)
    # Four nodes of L1 2 at scale 21, and four of L1 1 at scale 6.
    assert [r.paper_epsilon for r in made.parts] == pytest.approx([8 / 21, 4 / 6])


def test_each_component_gets_noise_in_its_own_size():
    measure = Measure(kind="variance", low=-20, high=160)
    released = plan(demand(measure=measure)).parts[0]

    normalised = [
        distribution.scale / c.largest for distribution, c in zip(released.noise, measure.components, strict=True)
    ]
    assert max(normalised) == pytest.approx(min(normalised))
    assert released.sensitivity.l1 == pytest.approx(3 + 3 * 4, rel=1e-6)


def test_narrow_bounds_pay_for_the_coarse_grid_that_is_left_to_them():
    """Between 99999 and 100000 there is room for 2^17 steps: the step to discrete noise costs 2^14 times as much."""
    narrow = Measure(kind="mean", low=99_999, high=100_000, fine=True)
    assert narrow.components[1].largest < STEPS
    made = plan(demand(measure=narrow), delta=1e-9, mechanism="gaussian", accounting="pld")

    assert spent(made, measurements_and_scales(made)[1], 1e-9) <= 1.0
    with pytest.raises(ValueError, match="too small for noise on a grid"):
        plan(demand(measure=narrow), delta=1e-14, mechanism="gaussian", accounting="pld")


def test_without_an_end_the_noise_is_that_of_a_long_release():
    scales = [plan(demand(), windows=windows).parts[0].noise[0].scale for windows in (1, 2, 3, 400, None)]

    assert scales == pytest.approx([1, 2, 3, 4, 4])
    assert all(earlier <= later for earlier, later in pairwise(scales))


def test_a_budget_that_no_noise_can_keep_is_refused():
    with pytest.raises(ValueError, match="delta"):
        plan(demand(), mechanism="gaussian", accounting="pld")
    with pytest.raises(ValueError, match="never leaves"):
        plan(demand(("left",)), constraint=AtMost(1))


def test_noise_that_cannot_be_sampled_is_refused_before_any_data_is_read():
    with pytest.raises(ValueError, match="2\\^55 grid steps"):
        plan(demand(measure=Measure(kind="sum", low=0, high=1e10)), epsilon=1e-9)


def test_an_owner_of_very_many_changes_is_refused_quickly():
    with pytest.raises(ValueError, match="10,000"):
        plan(demand(), constraint=AtMost(MOST_OF_OWNER + 1), owner=True)
    assert plan(demand(), constraint=AtMost(10**9), windows=None).parts[0].sensitivity.l1 == 10**9


def test_the_error_of_a_level_grows_with_its_number_of_samples():
    made = plan(demand(("level", "change")))
    one = made.parts[0].noise[0].variance

    level, change = Series(kind="level"), Series(kind="change")
    np.testing.assert_allclose(stddev(made, 0, level, 5) ** 2, one * np.arange(2, 7))
    np.testing.assert_allclose(stddev(made, 0, change, 5) ** 2, one * np.ones(5))
    with pytest.raises(ValueError, match="ratio"):
        stddev(plan(demand(measure=Measure(kind="mean", low=0, high=1))), 0, change, 5)


def test_the_zcdp_of_a_release_is_that_of_its_worst_unit_however_long_it_lasts():
    """rho = S^2 / (2 sigma^2) for every strategy, added up over the queries; four distant changes reach each S."""
    made = plan(
        demand(("level",)),
        demand(("level",), weight=2, choice=Choice(name="tree", branching=2, height=3, refine="none")),
        demand(("change",), choice=Choice(name="factorised", form="window")),
        windows=None,
        delta=1e-6,
        mechanism="gaussian",
        accounting="zcdp",
    )

    assert [released.strategy.name for released in made.parts] == ["disjoint", "tree", "factorised"]
    for apart in (40, 160, 640):
        rho = 0.0
        for released in made.parts:
            steps = made.demands[released.query].measure.components[0].largest
            leaves = np.zeros((1 + 4 * apart, 1), dtype=np.int64)
            leaves[1::apart, 0] = steps * np.array([1, -1, 1, -1])
            nodes = exact_nodes(released.strategy, leaves)
            reached = float(((nodes / released.noise[0].scale) ** 2).sum()) / 2
            assert released.share * (1 - 1e-5) <= reached <= released.share
            rho += reached
        assert zcdp_epsilon(rho, 1e-6) == pytest.approx(made.budget.epsilon, rel=1e-5)
    assert made.budget.epsilon == pytest.approx(1, rel=1e-9)
