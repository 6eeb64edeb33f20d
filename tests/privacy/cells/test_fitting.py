"""Strategies over cells in plans: which are chosen, their gain, and that a plan stores them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privacy.accounting.accounting import Budget
from privacy.cells.choice import CellChoice
from privacy.cells.layers import Layers
from privacy.cells.offer import CellTerms
from privacy.cells.product import Product
from privacy.cells.space import Axis
from privacy.cells.table import strategies
from privacy.constraint import AtMost, AtOnce
from privacy.measure import Measure
from privacy.noise.distributions import DiscreteLaplace
from privacy.noise.kinds import Mechanism
from privacy.noise.mixed import half_width_by_spread, spreads_of_gathered
from privacy.noise.weighted import half_width
from privacy.planning.demand import Demand
from privacy.planning.document import digest, plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan, stddev
from privacy.planning.promise import Promise
from privacy.planning.spent import proved, spent
from privacy.protection import EVERYTHING, Protection, Span
from privacy.series import Series
from privacy.strategies.choice import Choice

LEVEL = Series(kind="level")
AGES = (Axis(cells=22, ordered=True),)

DISJOINT = Choice(name="disjoint")


def plan_of(
    over: CellChoice,
    axes: tuple[Axis, ...] = AGES,
    *,
    mechanism: Mechanism = "laplace",
    protects: Protection = EVERYTHING,
    series: tuple[Series, ...] = (LEVEL,),
    choice: Choice = DISJOINT,
) -> Plan:
    demand = Demand(
        name="ages",
        measure=Measure(kind="count"),
        cells=math.prod(axis.cells for axis in axes),
        axes=axes,
        series=series,
        choice=choice,
        over=over,
    )
    return make_plan(
        [demand],
        promise=Promise(
            constraint=AtMost(4) if protects == EVERYTHING else AtOnce(),
            window=1,
            windows=20,
            owner=False,
            protects=protects,
        ),
        budget=Budget(epsilon=1, delta=1e-9 if mechanism == "gaussian" else 0.0),
        mechanism=mechanism,
        accounting=None,
    )


def mean_square(plan: Plan) -> float:
    return float(np.mean(stddev(plan, 0, LEVEL, 20) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "gain"), [("laplace", 5.0), ("gaussian", 15.0)])
def test_random_ranges_of_a_thousand_cells_gain_at_least_five_times(mechanism, gain):
    many = (Axis(cells=1024, ordered=True),)
    best = plan_of(CellChoice(workload="ranges"), many, mechanism=mechanism)
    each = plan_of(CellChoice(name="each", workload="ranges"), many, mechanism=mechanism)
    assert mean_square(each) > gain * mean_square(best)
    over = best.parts[0].over
    assert over is not None
    # One range by hand: 300 cells have 300 times the variance of one.
    query = np.zeros(1024)
    query[200:500] = 1
    node = best.parts[0].noise[0].variance / each.parts[0].noise[0].variance
    assert over.variance(query) * node < 300 / 3


def test_auto_takes_single_cells_if_only_cells_count():
    plan = plan_of(CellChoice(name="auto"))
    assert plan.parts[0].over is None
    asked = plan_of(CellChoice(name="each"))
    assert asked.parts[0].sensitivity == plan.parts[0].sensitivity
    assert asked.parts[0].noise == plan.parts[0].noise
    assert mean_square(asked) == pytest.approx(mean_square(plan))


@pytest.mark.slow
@pytest.mark.parametrize("protects", [EVERYTHING, Span(3)])
def test_a_plan_keeps_its_strategy_over_cells_exactly(protects):
    plan = plan_of(CellChoice(workload="ranges"), (Axis(cells=2), AGES[0]), protects=protects, mechanism="gaussian")
    assert plan.parts[0].over is not None
    assert plan.parts[0].over.axes[1].name == ("optimised" if protects == EVERYTHING else "tree")
    assert plan.parts[0].over.blocks == (protects != EVERYTHING)
    assert plan_from_json(plan_to_json(plan)) == plan


def test_another_strategy_over_cells_is_another_plan():
    plan = plan_of(CellChoice(name="tree", workload="ranges"), choice=Choice(name="tree"))
    assert proved(plan) <= 1 + 1e-9
    assert spent(plan, 1).epsilon <= spent(plan, 20).epsilon <= 1 + 1e-9
    other = Product(axes=(Layers(cells=2), Layers(cells=22)))
    assert digest(plan) != digest(replace(plan, parts=(replace(plan.parts[0], over=other),)))


@pytest.mark.slow
def test_listed_ranges_have_less_error_and_single_cells_not_much_more():
    listed = ((None, (4, 14)), (None, (14, 22)))
    axes = (Axis(cells=2), AGES[0])
    plan = plan_of(CellChoice(workload="listed", listed=listed), axes, mechanism="gaussian")
    alone = plan_of(CellChoice(name="each", workload="listed", listed=listed), axes, mechanism="gaussian")
    asked = np.zeros((2, 44))
    asked[0, 4:14] = asked[1, 14:22] = 1

    def spreads(one: Plan) -> tuple[float, float]:
        over = one.parts[0].over
        assert over is not None
        noise = one.parts[0].noise[0].variance
        return noise * np.mean([over.variance(q) for q in asked]), noise * over.variances().mean()

    assert spreads(plan)[0] < 0.4 * spreads(alone)[0]
    assert spreads(plan)[1] < 2.5 * spreads(alone)[1]
    assert plan_from_json(plan_to_json(plan)) == plan
    for wrong in ({"workload": "listed"}, {"listed": listed}):
        with pytest.raises(ValueError, match="listed"):
            CellChoice(**wrong)
    with pytest.raises(ValueError, match="along each axis"):
        plan_of(CellChoice(workload="listed", listed=(((0, 1), (4, 14)),)), axes)


def test_less_noise_than_the_columns_ask_for_is_not_proved():
    """If the noise were scaled to single cells, or halved, the plan would prove less than it claims."""
    plan = plan_of(CellChoice(workload="ranges"))
    alone = plan_of(CellChoice())
    (part,) = plan.parts
    assert proved(replace(plan, parts=(replace(part, noise=alone.parts[0].noise),))) > 1.3
    halved = (DiscreteLaplace(part.noise[0].scale / 2),)
    assert proved(replace(plan, parts=(replace(part, noise=halved),))) == pytest.approx(2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "protects"), [("laplace", EVERYTHING), ("gaussian", EVERYTHING), ("gaussian", Span(3))]
)
def test_entered_and_left_have_sums_over_cells_if_these_are_better(mechanism, protects):
    """Several events of a window add up in a sum, which is expensive with Gaussian noise and four changes."""
    many = (Axis(cells=2), Axis(cells=102, ordered=True))
    series = (LEVEL, Series(kind="entered"))
    plan = plan_of(CellChoice(workload="ranges"), many, series=series, mechanism=mechanism, protects=protects)
    (entered,) = [part for part in plan.parts if part.family == "entered"]
    each = plan_of(
        CellChoice(name="each", workload="ranges"), many, series=series, mechanism=mechanism, protects=protects
    )
    (alone,) = [part for part in each.parts if part.family == "entered"]
    assert alone.over is None
    assert plan_from_json(plan_to_json(plan)) == plan
    assert proved(plan) <= 1 + 1e-9
    query = np.zeros(204)
    query[10:60] = 1
    assert entered.over is not None
    noise = entered.noise[0].variance * entered.over.variance(query)
    assert noise < 0.8 * alone.noise[0].variance * 50
    halved = type(entered.noise[0])(entered.noise[0].scale / 2)
    released = tuple(replace(part, noise=(halved,)) if part is entered else part for part in plan.parts)
    assert proved(replace(plan, parts=released)) > 1.1


@pytest.mark.slow
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("cells", [1, 2, 3, 22])
def test_every_choice_has_a_strategy_for_any_number_of_cells(cells, power):
    for name in ("auto", "prefix", "tree", "optimised"):
        for workload in ("cells", "ranges"):
            axes, choice = (Axis(cells=cells, ordered=True),), CellChoice(name=name, workload=workload)
            for product in strategies(CellTerms(space=axes, choice=choice, power=power, changes=4)):
                assert product.cells == cells
                assert math.isfinite(product.average())


def test_a_strategy_over_cells_needs_an_order():
    with pytest.raises(ValueError, match="keys whose cells have an order"):
        Demand(
            name="wards",
            measure=Measure(kind="count"),
            cells=3,
            series=(LEVEL,),
            over=CellChoice(workload="ranges"),
        )


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1, 2, 7, 40])
@pytest.mark.parametrize("scale", [7.0, 1000.0])
def test_half_widths_by_spread_are_valid_and_close_to_those_of_equal_weights(spread, scale):
    noise = DiscreteLaplace(scale)
    found = half_width_by_spread(noise, spread, 0.95)
    exact = noise.half_width(spread, 0.95) / spread**0.5
    assert exact < found < (1.03 if scale > 100 else 1.25) * exact


@pytest.mark.parametrize("weights", [[0.9, 0.3, 0.3, 0.1], [0.5] * 3 + [0.2] * 6 + [0.1], [0.31] * 10 + [0.05] * 15])
def test_half_widths_by_spread_are_valid_for_unequal_weights(weights):
    """Half widths that use all weights are at most 1 % above the smallest valid ones."""
    sizes, noise = np.array(weights) / np.linalg.norm(weights), DiscreteLaplace(20.0)
    found = half_width_by_spread(noise, int(1 / sizes.max() ** 2), 0.95)
    assert found > half_width(noise, sizes, 0.95) / 1.01


@pytest.mark.parametrize("share", [0.52, 0.6, 0.8])
@pytest.mark.parametrize("others", [1, 400])
def test_half_widths_of_a_node_with_more_than_half_of_the_noise_are_valid_and_close(share, others):
    """With one other node this is the worst case; with many small ones intervals hold at most 96 % of the time."""
    noise, counts = DiscreteLaplace(1000.0), np.array([others, 1])
    exact = half_width(noise, np.sqrt([(1 - share) / others, share]), 0.95, counts=counts)
    assert exact / 1.005 < half_width_by_spread(noise, 1 / share, 0.95) < 1.05 * exact


def test_errors_of_numbers_gathered_over_cells_follow_their_weights_in_time():
    """One heavy weight has the widest interval, and each interval covers the noise of its nodes in time."""
    noise, weights = DiscreteLaplace(1000.0), [np.array([2.0]), np.array([3.0, 1.0]), np.full(16, 0.5)]
    variances = np.array([float(w @ w) for w in weights])

    deviations, half = spreads_of_gathered(noise, variances=variances, weights=lambda: weights, confidence=0.95)

    assert deviations == pytest.approx(np.sqrt(variances * noise.variance))
    exact = np.array([half_width(noise, w, 0.95) for w in weights])
    assert ((exact <= half) & (half < 1.05 * exact)).all()
