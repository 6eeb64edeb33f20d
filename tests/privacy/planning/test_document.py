"""A plan equals the plan read from its document, and no other document is accepted."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost, ByClass, Within
from privacy.measure import Measure
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.demand import Demand
from privacy.planning.document import VERSION, digest, plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.planning.spent import proved
from privacy.series import Series
from privacy.strategies.choice import Choice
from privacy.strategies.factorised import coefficient_kernel, coefficients
from privacy.strategies.factorised.fitting import FAMILIES
from tests.privacy.steps import exact_nodes
from tests.searches import examples

SPAN = Within(30)
CONSTRAINTS = [AtMost(4), AtMost(2), SPAN, ByClass("fare", (("multi", AtMost(20)), ("pass", SPAN)))]
MEASURES = [
    Measure(kind="count"),
    Measure(kind="sum", low=-0.1, high=1 / 3),
    Measure(kind="variance", low=0.0, high=9.7),
]
SERIES = [
    Series(kind="level"),
    Series(kind="change"),
    Series(kind="entered"),
    Series(kind="left"),
    Series(kind="sliding", width=6, every=2),
]
MECHANISMS: list[tuple[Mechanism, Accounting, float]] = [
    ("laplace", "naive", 0.0),
    ("laplace", "paper", 0.0),
    ("gaussian", "zcdp", 1e-6),
    ("gaussian", "pld", 1e-6),
]


def choices() -> st.SearchStrategy[Choice]:
    trees = st.builds(
        Choice,
        name=st.just(cast(str, "tree")),
        branching=st.integers(2, 3),
        height=st.integers(1, 2),
        refine=st.sampled_from(["none", "subtraction", "bottom_up", "least_squares"]),
    )
    return st.one_of(st.just(Choice(name="disjoint")), trees)  # `of_each_form` has the others


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    mechanism, accounting, delta = draw(st.sampled_from(MECHANISMS))
    demands = [
        Demand(
            name=f"q{place}",
            measure=(measure := draw(st.sampled_from(MEASURES))),
            cells=draw(st.integers(1, 3)),
            series=tuple(draw(st.lists(st.sampled_from(SERIES), min_size=1, unique=True))),
            weight=draw(st.floats(0.1, 10)),
            choice=draw(choices()),
            expected=None if len(measure.components) > 1 else draw(st.none() | st.floats(0.1, 1e9)),
        )
        for place in range(draw(st.integers(1, 2)))
    ]
    return make_plan(
        demands,
        promise=Promise(
            constraint=draw(st.sampled_from(CONSTRAINTS)), window=10, windows=draw(st.integers(12, 40)), owner=False
        ),
        budget=Budget(epsilon=draw(st.floats(0.1, 10)), delta=delta),
        mechanism=mechanism,
        accounting=accounting,
    )


@cache
def made(*choice: Choice, windows: int | None = 40, cells: int = 1) -> Plan:
    """Return a plan; under Gaussian noise, one query for each choice."""
    demands = [
        Demand(name=f"q{n}", measure=Measure(kind="count"), cells=cells, series=(Series(kind="level"),), choice=one)
        for n, one in enumerate(choice)
    ]
    return make_plan(
        demands,
        promise=Promise(constraint=AtMost(4), window=10, windows=windows, owner=False),
        budget=Budget(epsilon=1, delta=1e-6),
        mechanism="gaussian",
        accounting=None,
    )


def written(plan: Plan) -> Any:
    """Return the document as it is read from a file."""
    return json.loads(json.dumps(plan_to_json(plan)))


def of_each_form() -> Plan:
    return made(*(Choice(name="factorised", form=form) for form in FAMILIES), Choice())


@examples(13)
@given(plans())
def test_a_plan_comes_back_to_the_last_bit(plan: Plan) -> None:
    assert plan_from_json(written(plan)) == plan


@pytest.mark.slow
def test_plans_with_filters_are_read_back_with_and_without_an_end() -> None:
    for plan in (of_each_form(), made(Choice(name="factorised", form="window"), windows=None)):
        assert plan_from_json(written(plan)) == plan
        assert proved(plan_from_json(written(plan))) <= plan.budget.epsilon * (1 + 1e-9)


def test_a_plan_that_is_not_one_release_has_no_document() -> None:
    plan = of_each_form()
    with pytest.raises(ValueError, match="the plan is not one that its document can hold"):
        plan_to_json(replace(plan, parts=plan.parts[::-1]))


def test_noise_and_nodes_are_those_of_the_document_even_if_today_s_plan_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If another version of a library moves a coefficient, a running release does not change."""
    plan = of_each_form()
    document = written(plan)
    leaves = np.arange(41)[:, None] * 2**20
    nodes = [exact_nodes(part.strategy, leaves) for part in plan.parts]
    kept = digest(plan)
    filters = [part.strategy.coefficients for part in plan.parts]
    for name in ("leaky", "window"):
        exact = getattr(coefficients, name)
        monkeypatch.setattr(coefficients, name, lambda *given, exact=exact: 0.99 * exact(*given))
    coefficient_kernel._integers.cache_clear()
    try:
        again = plan_from_json(document)
        assert [part.noise for part in again.parts] == [part.noise for part in plan.parts]
        for part, before, filter_ in zip(again.parts, nodes, filters, strict=True):
            np.testing.assert_array_equal(exact_nodes(part.strategy, leaves), before)
            np.testing.assert_array_equal(part.strategy.coefficients, filter_)
        assert written(again)["queries"][0]["parts"] == document["queries"][0]["parts"]
        assert digest(again) == kept
    finally:
        coefficient_kernel._integers.cache_clear()


def places(value: Any, where: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield every member of a document, and every element of a list of objects."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*where, key)
        yield from places(inner, (*where, key))


def changed(document: Any, where: tuple[str | int, ...], value: Any) -> Any:
    """Return a copy with another value at a place; without the member if the value is `...`."""
    copy = json.loads(json.dumps(document))
    inner = copy
    for key in where[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[where[-1]]
    else:
        inner[where[-1]] = value
    return copy


def named(where: tuple[str | int, ...]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in where).lstrip(".")


def test_a_missing_unknown_or_wrong_member_is_named() -> None:
    document = written(made(Choice(name="tree"), Choice(name="factorised", form="leaky")))
    members = [where for where in places(document) if isinstance(where[-1], str)]

    assert len(members) > 100
    for where in members:
        less = changed(document, where, ...)
        try:  # without a member that has a default, the document is that of another plan
            again = plan_from_json(less)
            assert plan_from_json(written(again)) == again
        except ValueError as refused:
            assert str(refused).startswith(named(where[:2]) if where[0] == "queries" else where[0])  # noqa: PT017
        with pytest.raises(ValueError, match=r"expected|missing|unknown|on another grid|version"):
            plan_from_json(changed(document, where, {"another": "kind"} if where[-1] != "classes" else 1))
        with pytest.raises(ValueError, match=r"unknown|expected|missing|on another grid"):
            plan_from_json(changed(document, (*where[:-1], "new"), 1))


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (("version",), VERSION + 1, "version: not 1, so another version of this program wrote it; use that one"),
        (("budget", "epsilon"), "inf", "budget.epsilon: expected a finite number as hexadecimal text"),
        (("budget", "epsilon"), "0x1p+0", "budget.epsilon: expected a finite number as hexadecimal text"),
        (("budget", "delta"), 1e-6, "budget.delta: expected a finite number as hexadecimal text"),
        (("promise", "windows"), True, "promise.windows: expected an integer"),
        (("promise", "windows"), 40.0, "promise.windows: expected an integer"),
        (("mechanism",), "cauchy", "mechanism: expected one of laplace, gaussian"),
        (("queries",), [], "queries: expected at least one"),
        (("queries", 0, "parts"), [], "queries[0].parts: expected each series of the query once"),
        (
            ("queries", 0, "demand", "series", 0, "kind"),
            "left",
            "queries[0].parts: expected each series of the query once",
        ),
        (("queries", 0, "parts", 0, "noise"), [], "queries[0].parts[0].noise: expected one for each of 1 components"),
        (
            ("queries", 0, "parts", 0, "noise", 0, "scale"),
            (0.0).hex(),
            "queries[0].parts[0].noise[0]: scale: expected a number above 0",
        ),
        (("queries", 0, "components", 0, "high"), 3, "queries[0].components: sums so far are on another grid"),
        (("queries", 1, "parts", 0, "strategy", "kind"), "wavelet", "strategy.kind: expected one of tree, sliding"),
        (
            ("queries", 1, "parts", 0, "strategy", "kernel", "integers", 3),
            2**21,
            "strategy.kernel: coefficients: from 2^20",
        ),
        (("queries", 0, "parts", 0, "strategy", "branching"), 1, "strategy: branching: expected at least 2, not 1"),
        (("promise", "constraint", "changes"), 0, "promise.constraint: at_most: expected at least 1, not 0"),
    ],
)
def test_errors_are_reported_with_their_place(where: tuple[str | int, ...], value: Any, message: str) -> None:
    document = written(made(Choice(name="tree"), Choice(name="factorised", form="leaky")))
    with pytest.raises(ValueError, match=re.escape(message)):
        plan_from_json(changed(document, where, value))


@pytest.mark.parametrize("value", [None, [], "plan", 3])
def test_only_an_object_is_a_document(value: object) -> None:
    with pytest.raises(ValueError, match="the whole: expected an object"):
        plan_from_json(value)


def test_plans_with_other_noise_have_other_digests_and_reports_have_no_part_in_it() -> None:
    plan = made(Choice(name="tree"), Choice(name="disjoint"))
    part = plan.parts[0]
    louder = replace(part, noise=(replace(part.noise[0], scale=2 * part.noise[0].scale),))

    assert digest(plan) == digest(replace(plan, claim="in other words"))
    assert digest(plan) != digest(replace(plan, parts=(louder, *plan.parts[1:])))
    assert digest(plan) != digest(made(Choice(name="disjoint"), Choice(name="tree")))
