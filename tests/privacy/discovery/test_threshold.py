"""Thresholds of keys: the worst unit that is alone in keys, found by search."""

from itertools import product

import numpy as np
import pytest

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost, AtOnce
from privacy.discovery.budget import of_noise, split
from privacy.discovery.rules import ANY
from privacy.discovery.threshold import Alone, small
from privacy.measure import Measure
from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace
from privacy.planning.demand import Demand
from privacy.planning.discovered_part import DiscoveredPart, alone_in_keys
from privacy.planning.document import plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.planning.spent import proved, spent
from privacy.problems import RuleError
from privacy.protection import Span
from privacy.series import Series
from privacy.strategies.choice import Choice
from privacy.strategies.direct.direct import Direct
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.tree.tree import Tree

DAY = 86_400_000_000
LEVEL = (Series(kind="level"),)
DIRECT = Choice(name="direct")
TOWNS = Demand(name="towns", measure=Measure(kind="count"), cells=ANY, discover=True, series=LEVEL)


def planned(
    promise: Promise, *, delta: float = 1e-6, mechanism: str = "auto", adaptive_data: bool = False, **demand: object
) -> Plan:
    return make_plan(
        [
            Demand(
                **{"name": "towns", "measure": TOWNS.measure, "cells": ANY, "discover": True, "series": LEVEL} | demand
            )
        ],
        promise,
        budget=Budget(epsilon=1.0, delta=delta),
        mechanism=mechanism,
        accounting=None,
        adaptive_data=adaptive_data,
    )


def everything(windows: int | None = 24, changes: int = 4) -> Promise:
    return Promise(constraint=AtMost(changes), window=DAY, windows=windows, owner=False)


def in_span(windows: int | None) -> Promise:
    return Promise(constraint=AtOnce(1), window=DAY, windows=windows, owner=False, protects=Span(7 * DAY))


def part_of(plan: Plan) -> DiscoveredPart:
    part = plan.discovered_of(0)
    assert part is not None
    return part


@pytest.mark.parametrize(("distinct", "cells"), [(False, 1), (True, 1), (False, 3), (True, 3)])
def test_no_split_of_a_units_entries_among_keys_is_found_more_often_than_the_bound_says(distinct, cells) -> None:
    noise, entries = DiscreteLaplace(2.0 if cells == 1 else 0.8), 4  # many entries in one key are worse with less noise
    levels = ((1, 3), (2, 2))
    alone = Alone(noise=noise, cells=cells, levels=levels, summed=True, entries=entries, distinct=distinct, step=1)
    threshold = alone.threshold(1e-3)

    sizes = range(min(cells, entries) + 1) if distinct else range(entries + 1)
    splits = [split for split in product(sizes, repeat=entries) if sum(split) <= entries]

    def found(split: tuple[int, ...], nodes: int) -> float:
        held = np.array([one for one in split if one], dtype=float)
        return float(noise.tail(nodes * cells, threshold - held, summed=True).sum())

    worst = sum(windows * max(found(split, nodes) for split in splits) for nodes, windows in alone.levels)
    assert worst <= alone.chance(threshold) <= 1e-3
    assert alone.chance(threshold - 1) > 1e-3  # no smaller threshold has this proof
    assert worst > 0.5 * alone.chance(threshold)


def test_the_threshold_of_a_span_does_not_depend_on_the_number_of_windows() -> None:
    short, endless = (part_of(planned(in_span(windows), choice=DIRECT)) for windows in (10, None))

    assert short.threshold == endless.threshold
    few, many = (part_of(planned(everything(windows), mechanism="laplace", choice=DIRECT)) for windows in (10, 20))
    assert few.threshold < many.threshold


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_delta_of_noise_and_of_discovery_add_up_to_that_of_the_plan(mechanism: str) -> None:
    plan = planned(everything(), mechanism=mechanism)
    part = part_of(plan)

    alone = alone_in_keys(part, plan.demands[0], plan.promise)
    assert plan.budget.delta == 1e-6
    assert part.delta == (1e-6 if mechanism == "laplace" else 5e-7)
    assert alone.chance(part.threshold) <= part.delta < alone.chance(part.threshold - 1)
    assert proved(plan) == pytest.approx(plan.budget.epsilon, rel=1e-9)
    assert spent(plan, 1).delta == plan.budget.delta
    assert "of delta covers the discovery of keys" in plan.claim
    assert plan_from_json(plan_to_json(plan)) == plan


def test_delta_is_split_without_a_rest_that_nobody_has() -> None:
    for queries in (1, 2, 3, 7):
        noise, each = split(1e-9, queries, pure=False)
        assert noise + queries * each <= 1e-9 * (1 + 1e-15)
        assert of_noise(1e-9, queries * each) == pytest.approx(noise, rel=1e-12)


@pytest.mark.slow
def test_data_that_react_exclude_strategies_whose_levels_are_weighted_sums() -> None:
    fixed, reacting = (planned(everything(), adaptive_data=reacting) for reacting in (False, True))

    assert not part_of(fixed).strategy.summed_levels
    assert fixed.conditions[0].startswith("The data do not react to what is published: the discovery of keys")
    assert part_of(reacting).strategy.summed_levels
    assert reacting.conditions[0] == "The data may react to what is published."


def test_owners_of_several_entries_need_a_higher_threshold() -> None:
    owners = [Promise(constraint=AtMost(8, entries=n), window=DAY, windows=30, owner=True) for n in (1, 3)]
    one, three = (part_of(planned(promise, mechanism="laplace", choice=Choice(name="disjoint"))) for promise in owners)

    margin = three.threshold / three.noise[0].scale - one.threshold / one.noise[0].scale
    assert margin > 0.9 * np.log(3)  # n chances, or n entries in one key


def test_a_key_that_is_large_enough_is_found_with_the_stated_probability() -> None:
    part = part_of(planned(everything(), mechanism="laplace", choice=DIRECT))
    found = part.found(TOWNS, everything())
    noise = part.noise[0].noise(20_000)

    assert found["threshold"] == part.threshold
    for entries, probability in ((found["entries_50"], 0.5), (found["entries_95"], 0.95)):
        share = float((entries + noise >= part.threshold).mean())
        assert share >= probability - 0.02  # below by chance with probability 1e-7 (Hoeffding)
    assert found["entries_95"] > found["entries_50"]


@pytest.mark.parametrize(
    ("promise", "changes", "place"),
    [
        (everything(None), {}, ("schedule", "until")),
        (everything(), {"delta": 0.0}, ("privacy", "delta")),
        (everything(), {"measure": Measure(kind="sum", low=-1, high=9)}, ("queries", "towns", "measure")),
        (everything(), {"series": (Series(kind="change"),)}, ("queries", "towns", "publish")),
        (everything(), {"cells": 1}, ("queries", "towns", "by")),
        (everything(), {"choice": Choice(name="sliding")}, ("queries", "towns", "strategy")),
        (everything(), {"choice": Choice(name="direct", weights=(1.0, 2.0))}, ("queries", "towns", "strategy")),
    ],
)
def test_a_plan_refuses_what_no_threshold_is_proved_for(promise, changes, place) -> None:
    with pytest.raises(RuleError) as refused:
        planned(promise, **changes)

    assert refused.value.path == place


def test_a_smaller_variance_needs_a_smaller_threshold() -> None:
    narrow, wide = (
        Alone(noise=DiscreteGaussian(50.0), levels=((nodes, 9),), summed=False, entries=1, distinct=False, step=4096)
        for nodes in (1.0, 4.0)
    )

    assert wide.threshold(1e-9) - 4096 == pytest.approx(2 * (narrow.threshold(1e-9) - 4096), rel=0.02)


def test_the_planner_keeps_the_state_of_a_key_small() -> None:
    filters = [
        Factorised(kernel=Coefficients(leak=1e-9, ends=True), windows=windows, initial_level=True)
        for windows in (100, 2000)
    ]

    assert [small(one) for one in (Direct(windows=None), *filters)] == [True, True, False]


def test_the_state_of_a_key_is_small_after_any_number_of_windows() -> None:
    """Least squares keep the nodes of windows to come, so the state is largest at the start."""
    tree = Tree(branching=10, height=4, refine="least_squares", windows=1000, initial_level=True)

    assert tree.carried(1000, [Series(kind="level")]) < 100 < 2000 < tree.carried(50, [Series(kind="level")])
    assert not small(tree)
