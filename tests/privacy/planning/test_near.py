"""Protection of a unit's place only: compared with all courses that are near each other, and in plans."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from privacy.accounting.accounting import Budget
from privacy.cells.choice import CellChoice
from privacy.cells.layers import Layers
from privacy.cells.marginals import Marginals
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.cells.space import Axis
from privacy.constraint import AtOnce
from privacy.measure import Measure
from privacy.noise.distributions import DiscreteGaussian
from privacy.planning.contribution import Contribution
from privacy.planning.demand import Demand
from privacy.planning.document import plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan, stddev
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_events, of_net
from privacy.planning.spent import proved
from privacy.protection import Span
from privacy.series import Series
from privacy.strategies.base import Strategy
from privacy.strategies.choice import Choice
from privacy.strategies.direct.direct import Direct
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.tree.tree import Tree
from tests.privacy.cells.test_sensitivity import COUNT, WINDOWS, in_time

LEVEL = Series(kind="level")
NEAR = (("x", "2"),)
OVER = [
    (Product(axes=(Prefixes(cells=5),)), (2,)),
    (Product(axes=(Layers(cells=4),)), (1,)),
    (Product(axes=(Layers(cells=5, sizes=(1, 2, 6), weights=(2, 1, 3)),)), (1,)),
    (Product(axes=(Marginals(shape=(2,), kept=((0,), ()), weights=(1, 2)), Prefixes(cells=3))), (0, 1)),
    (Product(axes=(Prefixes(cells=2), Layers(cells=2, sizes=(1, 2), weights=(1, 1)))), (1, 1)),
]
STRATEGIES: list[Strategy] = [
    *(
        Tree(branching=2, height=h, refine="none", windows=WINDOWS, initial_level=initial)
        for h in (1, 3)
        for initial in (True, False)
    ),
    Direct(windows=WINDOWS),
    *(Factorised(kernel=Coefficients(), windows=WINDOWS, initial_level=initial) for initial in (True, False)),
]


def differences(over: Product, apart: tuple[int, ...]) -> np.ndarray:
    """Return every difference of the states of two units that are near each other, in nodes over cells."""
    columns = over.spread(np.eye(over.cells, dtype=np.int64))
    places = np.stack(np.unravel_index(np.arange(over.cells), [axis.cells for axis in over.axes]), axis=1)
    near = (np.abs(places[:, None] - places) <= apart).all(axis=2)
    first, second = np.nonzero(near)
    return np.unique(columns[first] - columns[second], axis=0)


@pytest.mark.slow
@pytest.mark.few(7)
@pytest.mark.parametrize(("over", "apart"), OVER, ids=str)
@pytest.mark.parametrize("boundaries", [1, 2, 3])
def test_no_two_courses_that_are_near_go_further_than_charged(over, apart, boundaries):
    each = differences(over, apart)
    random = np.random.default_rng(boundaries)
    ways = list(itertools.islice(itertools.product(range(len(each)), repeat=boundaries), 4000))
    ways += random.integers(0, len(each), (2000, boundaries)).tolist()
    inside = each[np.array(ways)]
    unit = Contribution(
        promise=Promise(constraint=AtOnce(), window=1, windows=None, owner=False, protects=Span(boundaries, NEAR)),
        components=COUNT,
        cells=over.cells,
        over=over,
        apart=apart,
    )
    for strategy in STRATEGIES:
        charged, one, two, numbers = of_net(strategy, unit), 0.0, 0.0, 0
        for first in range(WINDOWS + 2 - boundaries):
            nodes = np.einsum("nb,wbc->wnc", in_time(strategy)[:, first : first + boundaries], inside)
            one = max(one, float(np.abs(nodes).sum(axis=(1, 2)).max()))
            two = max(two, float(np.sqrt((nodes**2).sum(axis=(1, 2)).max())))
            numbers = max(numbers, int(np.count_nonzero(np.abs(nodes) > 1e-9, axis=(1, 2)).max()))
        assert one <= charged.l1 * (1 + 1e-12), strategy
        assert two <= charged.l2 * (1 + 1e-12), strategy
        assert numbers <= charged.coordinates, strategy
        if isinstance(strategy, Direct) or (boundaries < 3 and strategy == STRATEGIES[0]):
            assert (one, two) == pytest.approx((charged.l1, charged.l2)), strategy


def plan_of(distance: int, *, cells: int = 200, delta: float = 1e-9, name: str = "auto") -> Plan:
    demand = Demand(
        name="map",
        measure=Measure(kind="count"),
        cells=cells,
        axes=(Axis(cells=cells, ordered=True),),
        series=(LEVEL,),
        choice=Choice(name="direct"),
        over=CellChoice(name=name, workload="ranges"),  # type: ignore[arg-type]
        apart=(distance,) if distance else (),
    )
    return make_plan(
        [demand],
        promise=Promise(
            constraint=AtOnce(),
            window=1,
            windows=None,
            owner=False,
            protects=Span(7, (("x", str(distance)),) if distance else ()),
        ),
        budget=Budget(epsilon=1, delta=delta),
        mechanism="gaussian" if delta else "laplace",
        accounting=None,
    )


def variance(plan: Plan) -> float:
    return float(np.mean(stddev(plan, 0, LEVEL, 30) ** 2))


@pytest.mark.slow
def test_marginals_multiply_the_cost_of_a_distance_by_the_norm_of_their_blocks():
    demand = plan_of(2, cells=50).demands[0]
    axes, protects = (Axis(cells=4), Axis(cells=50, ordered=True)), Span(7, (("x", "2"),))
    over = CellChoice(workload="ranges", marginals=((), (0,)))
    demand = replace(demand, cells=200, axes=axes, over=over, apart=(0, 2))
    plan = make_plan(
        [demand],
        promise=Promise(constraint=AtOnce(), window=1, windows=None, owner=False, protects=protects),
        budget=Budget(epsilon=1, delta=1e-9),
        mechanism="gaussian",
        accounting=None,
    )
    (part,), (alone,) = plan.linear(0, "net"), plan_of(2, cells=50).linear(0, "net")
    assert part.over is not None
    blocks, places = part.over.axes
    assert (places.name, blocks.name) == ("prefix", "marginals")
    assert part.sensitivity.l2 == pytest.approx(alone.sensitivity.l2 * blocks.matrix.corners(2)[0][0] ** 0.5)
    assert plan_from_json(plan_to_json(plan)) == plan


def test_prefixes_up_to_a_distance_cost_by_the_distance_and_not_by_the_number_of_cells():
    """Gain of Fang and Chang: with Laplace noise the variance grows with the square of the distance."""
    by_distance = [variance(plan_of(distance, delta=0.0, name="prefix")) for distance in (1, 2, 4)]
    assert by_distance[1] / by_distance[0] == pytest.approx(4, rel=0.01)
    assert by_distance[2] / by_distance[0] == pytest.approx(16, rel=0.01)
    gaussian = [variance(plan_of(distance, name="prefix")) for distance in (1, 4)]
    assert gaussian[1] / gaussian[0] == pytest.approx(4, rel=0.01)
    many = plan_of(4, cells=400, name="prefix").parts[0].sensitivity
    assert many.l2 == pytest.approx(plan_of(4, name="prefix").parts[0].sensitivity.l2)


@pytest.mark.slow
def test_a_distance_gains_over_presence_and_auto_takes_prefixes_for_short_ones():
    near, there = plan_of(1), plan_of(0)
    assert near.parts[0].over is not None
    assert near.parts[0].over.axes[0].name == "prefix"
    assert variance(there) > 2 * variance(near)


def test_the_claim_of_a_distance_is_stated_stored_and_proved():
    plan = plan_of(3)
    assert "where one privacy unit is in any 7 microseconds, up to 3 in x" in plan.claim
    assert "PRESENCE IS NOT HIDDEN" in plan.statement
    assert "exp(ceil(d / distance) epsilon)" in plan.statement
    assert plan_from_json(plan_to_json(plan)) == plan
    assert proved(plan) <= 1 + 1e-9
    (part,) = plan.parts
    halved = tuple(DiscreteGaussian(noise.scale / 2) for noise in part.noise)
    assert proved(replace(plan, parts=(replace(part, noise=halved),))) > 1.9


def test_settings_that_are_not_proved_for_a_distance_are_refused():
    given = {
        "components": COUNT,
        "cells": 3,
        "over": Product(axes=(Prefixes(cells=3),)),
    }
    with pytest.raises(ValueError, match="how many cells are near"):
        Contribution(
            promise=Promise(constraint=AtOnce(), windows=None, owner=False, window=1, protects=Span(7, NEAR)), **given
        )
    with pytest.raises(ValueError, match="use up their changes at different times"):
        Contribution(
            promise=Promise(
                constraint=AtOnce(changes=2, block=7), windows=None, owner=False, window=1, protects=Span(7, NEAR)
            ),
            **given,
            apart=(1,),
        )
    unit = Contribution(
        promise=Promise(constraint=AtOnce(), windows=None, owner=False, window=1, protects=Span(7, NEAR)),
        **{**given, "over": Product(axes=(Layers(cells=3),))},
        apart=(1,),
    )
    with pytest.raises(ValueError, match="where a unit was before, which may be near"):
        of_events("entered", STRATEGIES[1], unit)
    with pytest.raises(ValueError, match="entered and left reveal where a unit was before"):
        Demand(
            name="q",
            measure=Measure(kind="count"),
            cells=3,
            axes=(Axis(cells=3, ordered=True),),
            series=(Series(kind="left"),),
            apart=(1,),
        )
