"""Plans that protect a span of time: their strategies, claims, documents and spent budgets."""

import itertools
from functools import cache

import numpy as np
import pytest

from privacy.accounting.accounting import Budget
from privacy.constraint import AtOnce
from privacy.measure import Measure
from privacy.planning.demand import Demand
from privacy.planning.document import plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan, stddev
from privacy.planning.promise import Promise
from privacy.planning.spent import covered, proved, spent
from privacy.protection import Span
from privacy.series import Series
from privacy.strategies.choice import Choice

DAY = 86_400_000_000
LEVEL, CHANGE, WEEK = Series(kind="level"), Series(kind="change"), Series(kind="sliding", width=7)


@cache
def planned(
    *series: Series, days: int = 14, delta: float = 0.0, windows: int | None = None, name: str = "auto", **others
) -> Plan:
    settings = {"owner": False, "entries": 1, "mechanism": "auto", "accounting": None, "cells": 5} | others
    return make_plan(
        [
            Demand(
                name="beds",
                measure=Measure(kind="count"),
                cells=settings["cells"],
                series=series or (LEVEL,),
                choice=Choice(name=name),
            )
        ],
        promise=Promise(
            constraint=AtOnce(settings["entries"]),
            window=DAY,
            windows=windows,
            owner=settings["owner"],
            protects=Span(days * DAY),
        ),
        budget=Budget(epsilon=1.0, delta=delta),
        mechanism=settings["mechanism"],
        accounting=settings["accounting"],
    )


def test_the_statement_of_a_span_names_what_it_does_not_cover():
    plan = planned(delta=1e-9)

    assert "for everything that one privacy unit does in any 14 days: discrete" in plan.claim
    assert any("lasts for several such times costs epsilon for each" in condition for condition in plan.conditions)


def test_direct_levels_have_a_constant_error():
    """Their noise is that of a count that one unit moves at fourteen ends of days, by 1 each."""
    plan = planned()

    errors = stddev(plan, 0, LEVEL, 1095)
    assert plan.parts[0].strategy.name == "direct"
    assert np.ptp(errors) == 0
    assert errors[0] == pytest.approx(2**0.5 * 14, rel=0.01)


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["disjoint", "tree", "factorised", "direct"])
@pytest.mark.parametrize("series", [(LEVEL,), (CHANGE,), (WEEK,), (LEVEL, WEEK)], ids=str)
def test_every_strategy_is_available_and_none_is_better_than_the_chosen_one(name, series):
    best = planned(*series, delta=1e-9)
    other = planned(*series, delta=1e-9, name=name, mechanism="gaussian")

    assert other.parts[0].strategy.name == name
    squares = [sum(float((stddev(plan, 0, one, 1024) ** 2).sum()) for one in series) for plan in (best, other)]
    assert 0 < squares[0] <= squares[1] * 1.02


@pytest.mark.slow
@pytest.mark.parametrize("series", [(LEVEL,), (Series(kind="entered"), Series(kind="left")), (LEVEL, WEEK)], ids=str)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_plan_is_kept_and_read_back(series, delta):
    plan = planned(*series, delta=delta, owner=True, entries=3)

    document = plan_to_json(plan)
    assert document["promise"]["protects"] == {"kind": "span", "length": 14 * DAY}
    assert document["promise"]["constraint"] == {"kind": "at_once", "entries": 3}
    assert plan_from_json(document) == plan
    assert covered(plan, plan.budget.epsilon)
    assert proved(plan) <= 1.0


def test_entries_at_once_cost_as_many_times():
    one, three = (planned(owner=True, entries=n) for n in (1, 3))

    assert three.parts[0].noise[0].scale == pytest.approx(3 * one.parts[0].noise[0].scale, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("series", [(LEVEL,), (CHANGE, Series(kind="entered"))], ids=str)
def test_the_spent_budget_rises_until_a_span_has_passed_and_no_further(series, delta):
    plan = planned(*series, delta=delta)

    so_far = [spent(plan, windows).epsilon for windows in (0, 1, 5, 13, 15, 16, 1000)]
    assert all(before <= after for before, after in itertools.pairwise(so_far))
    assert so_far[0] == 0 < so_far[1] < so_far[2] < so_far[3]
    assert so_far[4] == so_far[-1] == plan.budget.epsilon


@pytest.mark.slow
def test_noise_does_not_depend_on_the_horizon_once_the_span_fits():
    short, long = planned(windows=30), planned(windows=3000)

    assert short.parts[0].noise == long.parts[0].noise
