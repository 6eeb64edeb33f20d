"""Plans with parts that look at the data: what they cost beside others, and how they are kept."""

from fractions import Fraction

import pytest

from privacy.accounting.accounting import Budget
from privacy.adaptive.choice import AdaptiveChoice
from privacy.adaptive.scales import spent as spent_adaptively
from privacy.constraint import AtMost, AtOnce, Constraint
from privacy.measure import Measure
from privacy.planning.adaptive_part import adaptive_of
from privacy.planning.demand import Demand
from privacy.planning.document import digest, plan_from_json, plan_to_json
from privacy.planning.plan import Plan, make_plan
from privacy.planning.spent import covered, proved, spent
from privacy.protection import EVERYTHING, Protection, Span
from privacy.series import Series

LEVEL = Series(kind="level")
DSAT = AdaptiveChoice(policy="dsat", samples=5)


def planned(
    *adaptive: AdaptiveChoice | None,
    protects: Protection = Span(7),  # noqa: B008 - a frozen value
    constraint: Constraint = AtOnce(),  # noqa: B008
    windows: int | None = None,
    owner: bool = False,
    measure: Measure = Measure(kind="count"),  # noqa: B008
    **others,
) -> Plan:
    return make_plan(
        [
            Demand(name=f"beds{place}", measure=measure, cells=9, series=(LEVEL,), adaptive=one)
            for place, one in enumerate(adaptive)
        ],
        constraint=constraint,
        window=1,
        windows=windows,
        owner=owner,
        protects=protects,
        **{"budget": Budget(epsilon=1.0), "mechanism": "laplace", "accounting": "naive"} | others,
    )


@pytest.mark.parametrize(
    "adaptive", [(DSAT,), (DSAT, None), (AdaptiveChoice(policy="ba"), None, AdaptiveChoice(policy="fixed", interval=3))]
)
def test_all_parts_together_spend_the_budget_and_a_plan_is_read_back(adaptive):
    plan = planned(*adaptive)

    shares = [sum(r.share for r in plan.released if r.query == q) for q in range(len(adaptive))]
    for part in plan.adaptive:
        shares[part.query] += part.share
        assert Fraction(part.share) >= spent_adaptively(part.adaptive, part.scales)
    assert shares == pytest.approx([1 / len(adaptive)] * len(adaptive), rel=1e-6)
    assert sum(shares) <= 1 + 1e-12
    assert covered(plan, plan.budget.epsilon)
    assert 0.999 < proved(plan) <= 1
    assert plan_from_json(plan_to_json(plan)) == plan


def test_less_noise_than_the_plan_has_is_not_covered():
    plan = planned(DSAT, None)
    document = plan_to_json(plan)
    scales = document["queries"][0]["adaptive"]["scales"]
    for name in ("threshold", "test", "whole"):
        louder = plan_from_json(
            {
                **document,
                "queries": [
                    {
                        **document["queries"][0],
                        "adaptive": {
                            **document["queries"][0]["adaptive"],
                            "scales": {**scales, name: (float.fromhex(scales[name]) / 2).hex()},
                        },
                    },
                    document["queries"][1],
                ],
            }
        )
        assert not covered(louder, plan.budget.epsilon), name
        assert digest(louder) != digest(plan)


def test_everything_is_protected_by_the_number_of_windows_and_without_a_bound_of_changes():
    plan = planned(DSAT, protects=EVERYTHING, windows=365)

    (part,) = plan.adaptive
    assert (part.adaptive.windows, part.adaptive.span) == (365, None)
    assert "all mutations of one privacy unit" in plan.claim
    with pytest.raises(ValueError, match="needs an end of the schedule"):
        planned(DSAT, protects=EVERYTHING)


@pytest.mark.parametrize(("span", "window", "windows"), [(7, 1, 7), (14, 10, 2), (5, 10, 1)])
def test_a_span_is_protected_by_all_ends_of_windows_that_it_can_hold(span, window, windows):
    """Whether or not the release has an end."""
    for end in (None, 365):
        choice = AdaptiveChoice(policy="ba")
        adaptive = adaptive_of(
            choice, cells=1, measure=Measure(kind="count"), protects=Span(span), window=window, windows=end
        )
        assert (adaptive.windows, adaptive.span) == (None, windows)


@pytest.mark.parametrize(
    ("constraint", "owner", "entries"), [(AtOnce(3), True, 3), (AtMost(4, 2), True, 2), (AtMost(4), True, 4)]
)
def test_a_unit_is_charged_for_all_that_it_is_at_once(constraint, owner, entries):
    protects = Span(7) if isinstance(constraint, AtOnce) else EVERYTHING
    total = planned(
        DSAT,
        constraint=constraint,
        owner=owner,
        protects=protects,
        windows=30,
        measure=Measure(kind="sum", low=-8, high=2),
    )

    (part,) = total.adaptive
    assert part.scales.sensitivity == entries * round(8 / total.demands[0].measure.grid)


def test_all_of_an_adaptive_part_is_spent_with_its_first_window():
    plan = planned(DSAT, None)

    assert spent(plan, 0).epsilon == 0
    assert spent(plan, 1).shares[0] == plan.adaptive[0].share
    assert spent(plan, 1).epsilon < spent(plan, 7).epsilon == plan.budget.epsilon


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"budget": Budget(epsilon=1, delta=1e-6), "accounting": "pld"}, "epsilons add up"),
        ({"measure": Measure(kind="mean", low=0, high=1)}, "not of a ratio"),
        ({"split": "relative_error"}, "depends on the data"),
    ],
)
def test_what_does_not_go_with_it_is_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        planned(DSAT, **settings)
