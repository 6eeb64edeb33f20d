"""Plans that do not fit an aggregation are refused."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from privacy.accounting.accounting import Budget
from privacy.cells.choice import CellChoice
from privacy.constraint import AtMost, AtOnce, Constraint
from privacy.measure import Measure
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.protection import EVERYTHING, Protection, Span
from privacy.series import Series
from privacy.strategies.choice import Choice
from transforms.aggregation.expression import Condition
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Timeline, planned
from transforms.release.release import ReleasePlan

AGE = ("age", OrderedKey(start=0, step=10, steps=3))
HEIGHT = ("height", OrderedKey(start=0, step=10, steps=3))
WARD = ("ward", ("a", "b"))
PLAIN = Query(name="beds", measure=Measure(kind="count"), by=(WARD,))
TALL = replace(
    PLAIN,
    by=(AGE, WARD),
    publish=(Series(kind="level"),),
    strategy=Choice(name="direct"),
    over=CellChoice(name="prefix"),
    apart=(1, 0),
)
MEAN = replace(TALL, measure=Measure(kind="sum", low=0, high=9), column="stay")


def made(
    query: Query, constraint: Constraint, protects: Protection = EVERYTHING, owner: str | None = None
) -> ReleasePlan:
    plan = make_plan(
        [query.demand],
        promise=Promise(constraint=constraint, window=10, windows=4, owner=owner is not None, protects=protects),
        budget=Budget(epsilon=1.0),
        mechanism="laplace",
        accounting="naive",
    )
    timeline = Timeline(start=0, every=10, windows=4)
    aggregation = Aggregation(queries=planned((query,), plan), timeline=timeline, constraint=constraint, owner=owner)
    return ReleasePlan(plan=plan, aggregation=aggregation)


@pytest.mark.parametrize("owner", [None, "patient"])
@pytest.mark.parametrize(
    ("other", "error"),
    [
        (lambda made: replace(made, constraint=AtMost(3)), "another constraint than the one that is enforced"),
        (lambda made: replace(made, owner=None if made.owner else "patient"), "name an owner in both, or in neither"),
        (lambda made: replace(made, timeline=replace(made.timeline, every=20)), "other or for fewer windows"),
        (lambda made: replace(made, timeline=replace(made.timeline, windows=5)), "other or for fewer windows"),
        (lambda made: replace(made, exact=True), "sums without contribution bounding"),
        (lambda made: replace(made, queries=made.queries * 2), "make both from the same queries"),
        (lambda made: replace(made, queries=(replace(made.queries[0], name="all"),)), "make both from the same"),
        (lambda made: replace(made, queries=(replace(made.queries[0], by=()),)), "make both from the same"),
        (
            lambda made: replace(made, queries=(replace(made.queries[0], measure=Measure(kind="sum", low=0, high=9)),)),
            "make both from the same",
        ),
        (
            lambda made: replace(made, queries=(replace(made.queries[0], publish=(Series(kind="level"),)),)),
            "make both from the same",
        ),
    ],
)
def test_an_aggregation_that_the_plan_does_not_cover_is_refused(
    other: Callable[[Aggregation], Aggregation], error: str, owner: str | None
) -> None:
    release = made(PLAIN, AtMost(2), owner=owner)

    with pytest.raises(ValueError, match=error):
        ReleasePlan(plan=release.plan, aggregation=other(release.aggregation))


def near(plan: Plan, *columns: str) -> Plan:
    """Return the plan as if neighbours were near in these columns."""
    protects = Span(10, tuple((column, "10") for column in columns))
    return replace(plan, promise=replace(plan.promise, protects=protects))


@pytest.mark.parametrize(
    ("query", "columns", "other", "error"),
    [
        (TALL, ("age",), {"where": Condition.parse("age > 20")}, "where: reads age: units that are near"),
        (TALL, ("age",), {"by": (HEIGHT, WARD)}, "has no range of age"),
        (TALL, ("age", "ward"), {}, "by.ward: is protected up to a distance"),
        (TALL, ("height",), {}, "has no range of height"),
        (TALL, (), {}, "ranges of age are near in the plan or in the query"),
        (MEAN, ("age", "stay"), {}, "measure: reads stay, which differs"),
    ],
)
def test_queries_that_distinguish_near_units_are_refused(
    query: Query, columns: tuple[str, ...], other: dict[str, object], error: str
) -> None:
    release = made(query, AtOnce(), Span(10, (("age", "10"),)))
    (asked,) = release.aggregation.queries
    aggregation = replace(release.aggregation, queries=(replace(asked, **other),))  # type: ignore[arg-type]

    with pytest.raises(ValueError, match=error):
        ReleasePlan(plan=near(release.plan, *columns), aggregation=aggregation)


def test_a_query_may_have_ranges_of_near_columns_and_read_other_columns() -> None:
    release = made(MEAN, AtOnce(), Span(10, (("age", "10"),)))
    (asked,) = release.aggregation.queries
    elsewhere = replace(asked, where=Condition.parse("height > 20"))

    ReleasePlan(plan=release.plan, aggregation=replace(release.aggregation, queries=(elsewhere,)))


TOTAL = Measure(kind="sum", low=-1, high=1)
WIDE = (("age", OrderedKey(start=0, step=1, steps=10_000)),)
LEVEL = (Series(kind="level"),)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (
            {"consistent": True, "measure": Measure(kind="mean", low=0, high=9), "column": "stay"},
            "counts and sums only",
        ),
        ({"consistent": True, "measure": TOTAL, "column": "stay"}, "a sum of values below 0 may be negative"),
        ({"consistent": True, "publish": (Series(kind="change"),)}, "consistent: changes may be negative"),
        ({"consistent": True, "by": (("n", tuple(range(2**22))),)}, "4,194,304 cells in 4 windows; at most 3,355,443"),
        ({"quantiles": (0.5,)}, "publish: quantiles are along one key with ranges"),
        ({"quantiles": (0.5,), "by": WIDE}, "quantiles are along 10,000 cells at most"),
        ({"quantiles": (0.5,), "by": (AGE,), "measure": TOTAL, "column": "stay"}, "quantiles are of counts"),
        ({"quantiles": (0.5,), "by": (AGE,), "consistent": True}, "quantiles are made from counts as they are"),
        ({"ranges": ((),)}, "ranges are of keys whose cells have an order"),
        ({"ranges": (((0, 2),),), "by": (AGE,), "consistent": True}, "ranges are sums of cells as they are"),
        ({"by": (("Value", ("a", "b")),)}, "by.Value: the published files have a column of this name"),
        (
            {"by": (("quantile", AGE[1]),), "quantiles": (0.5,)},
            "by.quantile: the published files have a column quantile, for quantiles",
        ),
        (
            {"by": (("stay", replace(AGE[1], moments=True)),), "measure": TOTAL, "column": "stay"},
            "by.stay: ranges of times, but the column holds numbers elsewhere",
        ),
    ],
)
def test_rules_of_a_spec_hold_for_queries_made_in_python(query: dict[str, object], error: str) -> None:
    asked = replace(replace(PLAIN, publish=LEVEL), **query)  # type: ignore[arg-type]

    with pytest.raises(ValueError, match=error):
        made(asked, AtMost(2))
