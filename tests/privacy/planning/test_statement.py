"""The conditions of a claim are stated with it, and no strategy is used that is not proved for data that react."""

import numpy as np
import pytest

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost, AtOnce
from privacy.measure import Measure
from privacy.noise.kinds import Accounting, Mechanism
from privacy.planning.alternatives import alternatives
from privacy.planning.demand import Demand
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.planning.statement import ALWAYS, GROWN, NOT_REACTING, REACTING, conditions
from privacy.protection import Span
from privacy.series import Series
from privacy.strategies.base import Strategy
from privacy.strategies.choice import REFINES, Choice
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.sliding import Sliding
from privacy.strategies.tree.tree import Tree
from tests.privacy.steps import noise_matrix, sampled

LEVEL, WEEK = Series(kind="level"), Series(kind="sliding", width=7)
FACTORISED = [Factorised(kernel=Coefficients(leak=0.1), windows=21, initial_level=o) for o in (True, False)]
SLIDING = [Sliding(width=w, every=e, windows=21) for w in (3, 7) for e in (1, 2)]
TREES = [
    Tree(branching=c, height=h, refine=r, windows=n, initial_level=True)
    for c, h in ((2, 1), (2, 3), (3, 2), (30, 2))
    for r in REFINES
    for n in (21, None)
]


@pytest.mark.few(15)
@pytest.mark.parametrize("strategy", [*FACTORISED, *SLIDING, *TREES], ids=repr)
def test_noise_in_advance_is_the_noise_of_incomplete_nodes_in_a_number(strategy: Strategy) -> None:
    nodes = sampled(strategy, 21)
    ends = np.array([end for _, _, end in nodes])
    series = [LEVEL, WEEK]
    if isinstance(strategy, Sliding):
        series = [Series(kind="sliding", width=strategy.width, every=strategy.every)]
    early = any(noise_matrix(strategy, one, 21, nodes)[one.ends(21)[:, None] < ends].any() for one in series)

    if isinstance(strategy, Tree) and strategy.refine == "subtraction" and strategy.branching < 4:
        assert strategy.in_advance >= early  # with so few layers no detour is shorter
    else:
        assert strategy.in_advance == early


def planned(
    mechanism: Mechanism | str = "gaussian",
    *,
    delta: float = 1e-9,
    accounting: Accounting | None = None,
    choice: Choice = Choice(),  # noqa: B008 - a frozen value
    adaptive: bool = False,
    series: tuple[Series, ...] = (LEVEL,),
) -> Plan:
    return make_plan(
        [Demand(name="beds", measure=Measure(kind="count"), cells=2, series=series, choice=choice)],
        promise=Promise(constraint=AtMost(4), window=1, windows=24, owner=False),
        budget=Budget(epsilon=1.0, delta=delta),
        mechanism=mechanism,
        accounting=accounting,
        adaptive_data=adaptive,
    )


def tree(refine: str) -> Choice:
    return Choice(name="tree", refine=refine)  # type: ignore[arg-type]


@pytest.mark.parametrize("refine", ["subtraction", "least_squares"])
def test_gaussian_noise_in_advance_is_claimed_for_data_that_do_not_react(refine: str) -> None:
    plan = planned(choice=tree(refine))

    assert plan.conditions == (
        f"{NOT_REACTING}: Gaussian noise that is used in advance, as for query beds ({refine}), "
        "is proved for such data alone.",
        *ALWAYS,
    )
    assert plan.statement == " ".join([plan.claim, *plan.conditions])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "delta", "accounting", "choice"),
    [
        ("gaussian", 1e-9, "pld", tree("bottom_up")),
        ("gaussian", 1e-9, "zcdp", tree("none")),
        ("gaussian", 1e-9, None, Choice(name="factorised")),
        ("laplace", 0.0, None, tree("least_squares")),
        ("laplace", 1e-9, "pld", tree("subtraction")),
    ],
)
def test_other_noise_is_claimed_for_data_that_react(mechanism, delta, accounting, choice) -> None:
    plan = planned(mechanism, delta=delta, accounting=accounting, choice=choice)

    assert plan.conditions == (REACTING, *ALWAYS)


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("series", [(LEVEL,), (WEEK,)])
@pytest.mark.parametrize("choice", [Choice(), Choice(name="tree", branching=4, height=2)])
def test_for_data_that_react_no_gaussian_noise_is_used_in_advance(series, choice) -> None:
    free, held = (planned(choice=choice, adaptive=a, series=series) for a in (False, True))

    assert held.conditions == (REACTING, *ALWAYS)
    tried = alternatives(held, 0, adaptive_data=True)
    assert not any(part.strategy.in_advance for option in tried for part in option.parts)
    # If the previous best strategy is allowed, it is still chosen, with the same noise.
    if not any(r.strategy.in_advance for r in free.parts):
        assert [r.strategy for r in held.parts] == [r.strategy for r in free.parts]


@pytest.mark.parametrize("refine", ["subtraction", "least_squares"])
def test_gaussian_noise_in_advance_is_refused_for_data_that_react(refine: str) -> None:
    with pytest.raises(ValueError, match=f"{refine} uses Gaussian noise in advance, which is not proved"):
        planned(choice=tree(refine), adaptive=True)

    # If the mechanism is free, the proved one is chosen.
    assert planned("auto", choice=tree(refine), adaptive=True).mechanism == "laplace"


@pytest.mark.slow
@pytest.mark.parametrize("near", [(), (("age", "20"),)], ids=["a span", "a distance"])
def test_growth_of_delta_is_stated_if_and_only_if_there_is_a_delta(near: tuple[tuple[str, str], ...]) -> None:
    protects = Span(14, near)

    pure, approximate = conditions((), protects), conditions((), protects, delta=1e-9)

    grows = [one for one in approximate if GROWN in one]
    assert len(grows) == 1
    assert [one for one in pure if GROWN in one] == []
    assert [one.replace(f",{GROWN}", "").replace(f";{GROWN}", "") for one in approximate] == [*pure]
    assert all(one.endswith(".") and ",." not in one and ";." not in one for one in pure)
    levels = Demand(name="beds", measure=Measure(kind="count"), cells=1, series=(LEVEL,))
    promise = Promise(constraint=AtOnce(1), window=7, windows=None, owner=False, protects=Span(14))
    for delta, mechanism in ((0.0, "laplace"), (1e-9, "gaussian")):
        plan = make_plan([levels], promise, budget=Budget(epsilon=1, delta=delta), mechanism=mechanism, accounting=None)
        assert any(GROWN in one for one in plan.conditions) == (plan.budget.delta > 0) == (delta > 0)
