"""Rules of a spec also hold for plans made in Python."""

from dataclasses import replace

import pytest

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost, AtOnce, ByClass, Constraint, Within
from privacy.measure import Measure
from privacy.planning.demand import Demand
from privacy.planning.make_plan import BudgetSplit, make_plan
from privacy.planning.promise import Promise
from privacy.problems import RuleError
from privacy.protection import Span
from privacy.series import Series
from privacy.strategies.choice import Choice

COUNT = Demand(name="beds", measure=Measure(kind="count"), cells=1, series=(Series(kind="change"),))
MEAN = replace(COUNT, measure=Measure(kind="mean", low=0, high=9))


@pytest.mark.parametrize(
    ("demand", "split", "error"),
    [
        (
            replace(COUNT, series=(Series(kind="change"), Series(kind="sliding", width=6))),
            "weights",
            "queries.beds.publish.1.sliding: longer than the release; use at most 5 windows",
        ),
        (replace(COUNT, weight=0.0), "weights", "queries.beds.weight: expected a number above 0, not 0"),
        (replace(COUNT, expected=-1.0), "relative_error", "queries.beds.expected: expected a number above 0, not -1"),
        (replace(MEAN, expected=3.0), "weights", "queries.beds.expected: is for counts and sums"),
        (MEAN, "relative_error", "queries.beds.measure: its error depends on the data"),
        (COUNT, "relative_error", "queries.beds.expected: missing"),
        (
            replace(COUNT, expected=3.0, weight=2.0),
            "relative_error",
            "queries.beds.weight: the shares follow from expected",
        ),
        (replace(COUNT, choice=Choice(name="factorised")), "weights", "factorised needs Gaussian noise; give privacy"),
    ],
)
def test_demands_that_a_spec_may_not_have_are_refused(demand: Demand, split: BudgetSplit, error: str) -> None:
    promise = Promise(constraint=AtMost(2), window=10, windows=5, owner=False)

    with pytest.raises(RuleError, match=error):
        make_plan([demand], promise, budget=Budget(epsilon=1.0), mechanism="auto", accounting=None, split=split)


@pytest.mark.parametrize(
    ("constraint", "error"),
    [
        (Within(9), r"privacy\.constraint\.within: an owner's entries are not bounded by a time span"),
        (ByClass("fare", (("a", AtMost(2)), ("b", Within(9)))), r"constraint\.classes\.b\.within: an owner's"),
    ],
)
def test_a_time_span_does_not_bound_owners(constraint: Constraint, error: str) -> None:
    with pytest.raises(RuleError, match=error):
        Promise(constraint=constraint, window=10, windows=5, owner=True)


def test_near_units_have_no_bound_on_changes() -> None:
    with pytest.raises(RuleError, match=r"privacy\.constraint\.at_most: units that are near each other may use up"):
        Promise(
            constraint=AtOnce(changes=2, block=70),
            window=10,
            windows=5,
            owner=False,
            protects=Span(70, near=(("age", "1"),)),
        )
