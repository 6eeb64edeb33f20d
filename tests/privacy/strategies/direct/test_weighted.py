"""Budgets of a span that are divided over windows by weights: feasible exactly, and the best possible."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost, AtOnce
from privacy.measure import Measure
from privacy.noise.distributions import widened
from privacy.planning.demand import Demand
from privacy.planning.document import plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan, stddev
from privacy.planning.promise import Promise
from privacy.planning.spent import covered, spent
from privacy.protection import EVERYTHING, Span
from privacy.series import Series
from privacy.states import States
from privacy.strategies.choice import Choice
from privacy.strategies.window_budgets import WHOLE, best_shares, most, squared_error
from privacy.touched import at_most

LEVEL = Series(kind="level")
RANDOM = np.random.default_rng(5)
WEEK = (1.0, 1.0, 1.0, 1.0, 1.0, 4.0, 4.0)
LISTS = (WEEK, (1.0, 8.0), (3.0,), tuple(RANDOM.uniform(1, 9, 23).tolist()), (1.0, 1000.0, 30.0))


def runs(period: int, among: int, windows: int | None) -> list[list[int]]:
    """Return the list index of each window of every run, one by one."""
    last = 2 * period + among if windows is None else windows
    return [[t % period for t in range(start, min(start + among, last))] for start in range(max(1, last - among + 1))]


def spent_in(parts: tuple[int, ...], run: list[int], gaussian: bool) -> Fraction:
    shares = [Fraction(parts[t], WHOLE) for t in run]
    return sum((share * share if gaussian else share for share in shares), Fraction(0))


@pytest.mark.slow
@pytest.mark.few(13)
@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("weights", LISTS, ids=len)
@pytest.mark.parametrize("among", [1, 3, 7, 10, 60])
@pytest.mark.parametrize("repeated", [True, False])
def test_no_run_of_windows_exceeds_one_budget_and_no_division_is_better(weights, among, repeated, gaussian):
    found = best_shares(weights, among, repeated=repeated, power=2 if gaussian else 1)
    windows = None if repeated else len(weights)

    every = [spent_in(found.parts, run, gaussian) for run in runs(len(weights), among, windows)]
    assert Fraction(999_999, 1_000_000) <= max(every) <= 1
    assert max(every) == Fraction(most(found.parts, among, windows, squared=gaussian), WHOLE ** (2 if gaussian else 1))
    error = squared_error(weights, found.parts)
    assert found.least <= error <= found.least * (1 + 1e-5)
    # Purpose of the bound: no feasible division has a smaller error.
    for _ in range(20):
        tried = np.array(found.parts) * RANDOM.uniform(0.5, 1.5, len(weights))
        parts = tuple(int(part) for part in tried / tried.max() * WHOLE)
        worst = max(spent_in(parts, run, gaussian) for run in runs(len(weights), among, windows))
        scale = float(worst) ** (0.5 if gaussian else 1.0)
        assert squared_error(weights, parts) * scale**2 >= found.least


def test_windows_of_one_run_get_the_shares_of_the_closed_form():
    """One constraint: a^(2/3) for epsilon; for rho x is proportional to a, so shares of the width to its root."""
    laplace = best_shares(WEEK, 7, repeated=True, power=1).parts
    gaussian = best_shares(WEEK, 7, repeated=True, power=2).parts

    assert laplace[6] / laplace[0] == pytest.approx(4 ** (2 / 3), rel=1e-4)
    assert gaussian[6] / gaussian[0] == pytest.approx(4**0.5, rel=1e-4)


def planned(weights: tuple[float, ...] | None, *, span: int | None, windows: int | None, delta: float = 0.0) -> Plan:
    demand = Demand(
        name="beds",
        measure=Measure(kind="count"),
        cells=4,
        series=(LEVEL,),
        choice=Choice(name="direct", weights=weights),
    )
    return make_plan(
        [demand],
        promise=Promise(
            constraint=AtMost(3) if span is None else AtOnce(),
            window=1,
            windows=windows,
            owner=False,
            protects=EVERYTHING if span is None else Span(span),
        ),
        budget=Budget(epsilon=1.0, delta=delta),
        mechanism="gaussian" if delta else "laplace",
        accounting="zcdp" if delta else "naive",
    )


@pytest.mark.parametrize(("span", "windows"), [(10, None), (10, 40), (7, 7), (None, 30)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_presence_in_a_span_costs_exactly_epsilon(span, windows, delta):
    """The loss of the noise of each level, from its own scale; with half of the noise this fails."""
    plan = planned(WEEK, span=span, windows=windows, delta=delta)
    (released,) = plan.parts
    strategy, (noise,) = released.strategy, released.noise
    stretch = strategy.stretch(strategy.nodes(60 if windows is None else windows))
    steps = plan.demands[0].measure.components[0].largest
    losses = []
    for width in stretch.tolist():
        ratio = steps / Fraction(widened(noise, width).scale)
        losses.append(ratio if delta == 0 else ratio * ratio / 2)
    among = len(losses) if span is None else span
    worst = max(sum(losses[at : at + among], Fraction(0)) for at in range(len(losses) - among + 1))

    allowed = Fraction(1) if delta == 0 else Fraction(released.share)
    assert Fraction(999, 1000) * allowed <= worst <= allowed
    assert covered(plan, 1.0)
    assert spent(plan, 2).epsilon < spent(plan, 7).epsilon <= 1.0


def test_windows_with_more_weight_have_less_error_and_the_total_is_the_least():
    even, weighted = (planned(weights, span=14, windows=None) for weights in (None, WEEK))
    a = np.resize(WEEK, 70)

    errors = [stddev(plan, 0, LEVEL, 70) for plan in (even, weighted)]
    assert errors[1][5] < errors[0][5] < errors[1][0]
    # Jensen: the mean of a^(2/3) to the third power, compared with the mean of a^2.
    gain = np.mean(a ** (2 / 3)) ** 3 / np.mean(a**2)
    assert np.sum((a * errors[1]) ** 2) / np.sum((a * errors[0]) ** 2) == pytest.approx(gain, rel=1e-3)


def test_shares_are_kept_as_they_are_and_others_are_another_plan():
    plan = planned(WEEK, span=14, windows=None)
    (released,) = plan.parts

    document = plan_to_json(plan)
    assert plan_from_json(document) == plan
    shares = document["queries"][0]["parts"][0]["strategy"]["shares"]["parts"]
    assert shares == list(released.strategy.shares.parts)
    shares[0] = WHOLE + 1
    with pytest.raises(ValueError, match=r"strategy: shares: expected one for each of 7 weights"):
        plan_from_json(document)


def test_noise_is_no_narrower_than_a_share_requires_to_the_last_bit_and_a_share_is_above_zero():
    (released,) = planned(tuple(RANDOM.uniform(1, 9, 200).tolist()), span=14, windows=None).parts
    strategy = released.strategy

    widths = strategy.stretch(strategy.nodes(200)).tolist()
    assert all(width >= Fraction(WHOLE, part) for width, part in zip(widths, strategy.shares.parts, strict=True))
    with pytest.raises(ValueError, match="shares"):
        replace(strategy, shares=replace(strategy.shares, parts=(0, *strategy.shares.parts[1:])))


@pytest.mark.parametrize(("windows", "levels"), [(None, 14), (20, 14), (9, 9)])
def test_as_many_levels_are_moved_as_a_span_has_and_there_are(windows, levels):
    (released,) = planned(WEEK, span=14, windows=windows).parts

    moved = released.strategy.moved_apart(14, cells=4, each=1, largest=[1, 1], entries=2)
    assert (moved.nodes, moved.coordinates) == (levels, levels * 2 * 2)
    assert (released.sensitivity.nodes, released.sensitivity.coordinates) == (levels, levels)


def test_without_a_span_a_unit_that_stays_moves_every_level():
    (released,) = planned(WEEK, span=None, windows=9).parts
    strategy, states = released.strategy, States(radius=Fraction(3), diameter=Fraction(6), hulls=())
    every = 3 * sum(Fraction(part, WHOLE) for part in strategy.shares.parts)

    assert strategy.norm(states, at_most(2)) == every
    assert strategy.norms(states, 2) == [every, every]
    moved = strategy.moved(at_most(2), cells=4, each=1, largest=[1, 1], shared=True)
    assert (moved.nodes, moved.coordinates) == (9, 9 * min(4, at_most(2).appearing) * 2)
    widths = strategy.stretch(strategy.nodes(9))
    assert strategy.variances(LEVEL, 9) == pytest.approx(widths**2)


def test_budgets_are_best_for_the_windows_that_there_are():
    """Three windows under one budget, the middle one with the largest weight: a^(2/3), without other windows."""
    (released,) = planned((1.0, 8.0), span=None, windows=3).parts

    shares = [part / WHOLE for part in released.strategy.shares.parts]
    assert shares == pytest.approx([1 / 6, 4 / 6, 1 / 6], rel=1e-4)
    assert released.strategy.parameters["above_least"] < 1e-6
    (long,) = planned((1.0, 8.0), span=2, windows=5000).parts
    assert (len(long.strategy.shares.parts), long.strategy.parameters["for_ever"]) == (2, True)


@pytest.mark.parametrize("weights", [(1e-300, 1e-298), (1e300, 1e302)])
def test_weights_whose_squares_overflow_are_refused(weights):
    with pytest.raises(ValueError, match="weights: must be between 1e-09 and 1e"):
        best_shares(weights, 2, repeated=True, power=1)


def test_weights_are_for_levels_alone():
    with pytest.raises(ValueError, match="weights are of levels by themselves"):
        make_plan(
            [replace(planned(WEEK, span=7, windows=None).demands[0], series=(Series(kind="change"),))],
            promise=Promise(constraint=AtOnce(), window=1, windows=None, owner=False, protects=Span(7)),
            budget=Budget(epsilon=1.0),
            mechanism="laplace",
            accounting="naive",
        )
