"""Plans with parts that look at the data: their cost next to other parts, and their documents."""

from fractions import Fraction

import numpy as np
import pytest

from privacy.accounting.accounting import Budget
from privacy.adaptive.ba import Ba
from privacy.adaptive.base import Period, Policy
from privacy.adaptive.budget import spent as spent_adaptively
from privacy.adaptive.dsat import Dsat
from privacy.adaptive.fixed import PARTS, Fixed, Spread
from privacy.cells.choice import CellChoice
from privacy.cells.space import Axis
from privacy.constraint import AtMost, AtOnce, Constraint, Within
from privacy.measure import Measure
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.adaptive_rules import period_of
from privacy.planning.demand import Demand
from privacy.planning.document import digest, plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.planning.spent import covered, proved, spent
from privacy.protection import EVERYTHING, Protection, Span
from privacy.series import Series

LEVEL = Series(kind="level")
DSAT = Dsat(samples=5)
GAUSSIAN = {"budget": Budget(epsilon=1, delta=1e-6), "mechanism": "gaussian", "accounting": None}


def planned(
    *adaptive: Policy | None,
    protects: Protection = Span(7),  # noqa: B008 - a frozen value
    constraint: Constraint = AtOnce(),  # noqa: B008
    windows: int | None = None,
    owner: bool = False,
    measure: Measure = Measure(kind="count"),  # noqa: B008
    over: CellChoice = CellChoice(),  # noqa: B008
    **others,
) -> Plan:
    return make_plan(
        [
            Demand(
                name=f"beds{place}",
                measure=measure,
                cells=9,
                series=(LEVEL,),
                adaptive=one,
                axes=(Axis(cells=9, ordered=True),),
                over=over,
            )
            for place, one in enumerate(adaptive)
        ],
        promise=Promise(constraint=constraint, window=1, windows=windows, owner=owner, protects=protects),
        **{"budget": Budget(epsilon=1.0), "mechanism": "laplace", "accounting": "naive"} | others,
    )


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", [(DSAT,), (DSAT, None), (Ba(), None, Fixed(interval=3))])
@pytest.mark.parametrize("settings", [{}, GAUSSIAN, {**GAUSSIAN, "accounting": "rdp"}])
def test_all_parts_together_spend_the_budget_and_a_plan_is_read_back(adaptive, settings):
    """In epsilon, or in rho: with Gaussian noise rho is the only known way to compose decisions by the data."""
    plan = planned(*adaptive, **settings)

    shares = [sum(part.share for part in plan.of_query(q)) for q in range(len(adaptive))]
    sampled = [part for part in plan.parts if isinstance(part, AdaptivePart)]
    for part in sampled:
        assert Fraction(part.share) >= spent_adaptively(part.rule, part.scales)
    whole = 1.0
    if settings:
        assert (plan.share_unit, plan.accounting) == ("rho", settings["accounting"] or "zcdp")
        assert ("Laplace" in plan.claim) == any(part.scales.test is not None for part in sampled)
        whole = 0.02436  # rho for epsilon 1 and delta 1e-6, by bisection of Canonne, Kamath, Steinke's corollary 13
    assert shares == pytest.approx([whole / len(adaptive)] * len(adaptive), rel=1e-2 if settings else 1e-6)
    assert sum(shares) <= whole * (1 + (1e-2 if settings else 1e-12))
    assert covered(plan, plan.budget.epsilon)
    assert 0.999 < proved(plan) <= 1
    assert plan_from_json(plan_to_json(plan)) == plan


@pytest.mark.parametrize("settings", [{}, GAUSSIAN])
def test_less_noise_than_the_plan_has_is_not_covered(settings):
    plan = planned(DSAT, None, **settings)
    document = plan_to_json(plan)
    scales = document["queries"][0]["parts"][0]["scales"]
    for name in ("threshold", "test", "whole"):
        louder = plan_from_json(
            {
                **document,
                "queries": [
                    {
                        **document["queries"][0],
                        "parts": [
                            {
                                **document["queries"][0]["parts"][0],
                                "scales": {**scales, name: (float.fromhex(scales[name]) / 2).hex()},
                            }
                        ],
                    },
                    document["queries"][1],
                ],
            }
        )
        assert not covered(louder, plan.budget.epsilon), name
        assert digest(louder) != digest(plan)


def test_everything_is_protected_by_the_number_of_windows_and_without_a_bound_of_changes():
    plan = planned(DSAT, protects=EVERYTHING, windows=365)

    (part,) = plan.parts
    assert (part.rule.period.windows, part.rule.period.span) == (365, None)
    assert "all mutations of one privacy unit" in plan.claim
    with pytest.raises(ValueError, match="needs a last window"):
        planned(DSAT, protects=EVERYTHING)


@pytest.mark.parametrize("settings", [{}, GAUSSIAN])
def test_samples_that_matter_more_have_more_of_the_budget_and_no_run_of_them_has_more_than_all(settings):
    """Every second day of a week's span: at most four consecutive samples. Shares are best if the error cannot fall."""
    weights = (1.0, 1.0, 8.0)
    weekly = Fixed(interval=2, weights=weights)
    plan = planned(weekly, **settings)
    (part,) = plan.parts
    spread = part.rule.spread
    units = np.array(spread.units, dtype=object)

    assert max(sum(np.tile(units, 3)[start : start + 4]) for start in range(3)) <= PARTS
    assert spread.above_least(part.scales.noise) < 1e-6
    even = Spread(weights=weights, units=(PARTS // 4,) * 3, least=spread.least)
    assert even.above_least(part.scales.noise) > 0.05
    deviations = [part.scales.sample(u).variance ** 0.5 for u in spread.units]
    assert deviations[2] < 0.8 * deviations[0]
    assert plan_from_json(plan_to_json(plan)) == plan
    document = plan_to_json(plan)
    document["queries"][0]["parts"][0]["rule"]["spread"]["units"][0] += 1
    assert digest(plan_from_json(document)) != digest(plan)


def test_all_samples_before_an_end_have_a_weight_of_their_own():
    choice = Fixed(interval=2, weights=(1.0, 3.0))
    (part,) = planned(choice, protects=EVERYTHING, windows=9).parts

    units = part.rule.spread.units
    assert (len(units), sum(units) <= PARTS) == (5, True)
    assert sum(units) == pytest.approx(PARTS, rel=1e-6)
    assert [round(u / units[0], 3) for u in units] == [1.0, 2.08, 1.0, 2.08, 1.0]  # 3^(2/3)
    with pytest.raises(ValueError, match="6 for 5 samples"):
        planned(Fixed(interval=2, weights=(1.0,) * 6), protects=EVERYTHING, windows=9)


@pytest.mark.parametrize(("samples", "noise"), [(2, "laplace"), (60, "gaussian")])
def test_by_default_samples_have_the_smaller_noise(samples, noise):
    asked = Dsat(samples=samples)
    found = {
        mechanism: planned(asked, protects=Span(90), **{**GAUSSIAN, "mechanism": mechanism})
        for mechanism in ("auto", "laplace", "gaussian")
    }

    assert found["auto"].mechanism == noise
    assert found["auto"].parts == found[noise].parts
    grids = {name: plan.demands[0].measure.components[0].grid for name, plan in found.items()}
    errors = {name: plan.parts[0].deviation * grids[name] for name, plan in found.items()}
    assert errors["auto"] == min(errors.values())


def test_a_plan_with_other_noise_than_stated_is_refused():
    document = plan_to_json(planned(DSAT, **GAUSSIAN))
    del document["queries"][0]["parts"][0]["scales"]["noise"]

    with pytest.raises(ValueError, match="an adaptive part has noise of another mechanism"):
        plan_from_json(document)


@pytest.mark.parametrize("settings", [{}, GAUSSIAN])
def test_samples_of_sums_over_cells_have_noise_for_all_sums_that_a_cell_is_in(settings):
    plan, alone = planned(DSAT, over=CellChoice(name="tree", branching=3), **settings), planned(DSAT, **settings)
    sums = np.abs(plan.parts[0].over.spread(np.eye(9, dtype=np.int64)))
    moved = sums.sum(axis=1).max() if not settings else np.sqrt((sums**2).sum(axis=1).max())
    document = plan_to_json(plan)
    del document["queries"][0]["parts"][0]["scales"]["column"]

    assert moved > 1
    assert plan.parts[0].scales.whole == pytest.approx(moved * alone.parts[0].scales.whole)
    with pytest.raises(ValueError, match="noise was calibrated for samples with other sums"):
        plan_from_json(document)


@pytest.mark.parametrize(("span", "window", "windows"), [(7, 1, 7), (14, 10, 2), (5, 10, 1)])
def test_a_span_is_protected_by_all_ends_of_windows_that_it_can_hold(span, window, windows):
    """With or without an end of the release."""
    for end in (None, 365):
        promise = Promise(constraint=AtOnce(), window=window, windows=end, protects=Span(span), owner=False)
        assert period_of(promise) == Period(span=windows)


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

    (part,) = total.parts
    assert part.scales.sensitivity == entries * round(8 / total.demands[0].measure.grid)


def test_all_of_an_adaptive_part_is_spent_with_its_first_window():
    plan = planned(DSAT, None)

    assert spent(plan, 0).epsilon == 0
    assert spent(plan, 1).shares[0] == plan.parts[0].share
    assert spent(plan, 1).epsilon < spent(plan, 7).epsilon == plan.budget.epsilon


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"budget": Budget(epsilon=1, delta=1e-6), "accounting": "pld"},
            "accounting pld; use naive, or leave it out",
        ),
        ({**GAUSSIAN, "accounting": "pld"}, "accounting pld; use zcdp or rdp, or leave it out"),
        ({"measure": Measure(kind="mean", low=0, high=1)}, "for counts and sums"),
        ({"split": "relative_error"}, "depends on the data"),
        # With these a unit may be present in both neighbours, so that a histogram moves by twice as much, or differs
        # without end.
        ({"constraint": AtOnce(changes=2, block=7)}, "remove privacy.constraint.at_most"),
        ({"protects": Span(7, near=(("x", "1"),))}, "the presence of a unit; use another"),
        ({"constraint": AtMost(2)}, "not needed with protects"),
        ({"constraint": Within(5)}, "not needed with protects"),
    ],
)
def test_incompatible_settings_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        planned(DSAT, **settings)
