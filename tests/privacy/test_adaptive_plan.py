"""Plans with parts that look at the data: what they cost beside others, and how they are kept."""

from fractions import Fraction

import numpy as np
import pytest

from privacy.accounting.accounting import Budget
from privacy.adaptive.choice import AdaptiveChoice
from privacy.adaptive.policy import PARTS, Spread
from privacy.adaptive.scales import spent as spent_adaptively
from privacy.cells.choice import CellChoice
from privacy.cells.space import Axis
from privacy.constraint import AtMost, AtOnce, Constraint, Within
from privacy.measure import Measure
from privacy.planning.adaptive_part import above_least, adaptive_of
from privacy.planning.demand import Demand
from privacy.planning.document import digest, plan_from_json, plan_to_json
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.planning.spent import covered, proved, spent
from privacy.protection import EVERYTHING, Protection, Span
from privacy.series import Series

LEVEL = Series(kind="level")
DSAT = AdaptiveChoice(policy="dsat", samples=5)
GAUSSIAN = {"budget": Budget(epsilon=1, delta=1e-6), "mechanism": "gaussian", "accounting": None}


def planned(
    *adaptive: AdaptiveChoice | None,
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


@pytest.mark.parametrize(
    "adaptive", [(DSAT,), (DSAT, None), (AdaptiveChoice(policy="ba"), None, AdaptiveChoice(policy="fixed", interval=3))]
)
@pytest.mark.parametrize("settings", [{}, GAUSSIAN, {**GAUSSIAN, "accounting": "rdp"}])
def test_all_parts_together_spend_the_budget_and_a_plan_is_read_back(adaptive, settings):
    """Epsilon, or rho: no other way is known for what decides by the data, beside Gaussian noise."""
    plan = planned(*adaptive, **settings)

    shares = [sum(r.share for r in plan.released if r.query == q) for q in range(len(adaptive))]
    for part in plan.adaptive:
        shares[part.query] += part.share
        assert Fraction(part.share) >= spent_adaptively(part.adaptive, part.scales)
    whole = 1.0
    if settings:
        assert (plan.share_unit, plan.accounting) == ("rho", settings["accounting"] or "zcdp")
        assert ("Laplace" in plan.claim) == any(part.scales.test is not None for part in plan.adaptive)
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


@pytest.mark.parametrize("settings", [{}, GAUSSIAN])
def test_samples_that_matter_more_have_more_of_the_budget_and_no_run_of_them_has_more_than_all(settings):
    """Every second day of a week's span: at most four samples, in a row. Best are shares by which error cannot fall."""
    weights = (1.0, 1.0, 8.0)
    weekly = AdaptiveChoice(policy="fixed", interval=2, weights=weights)
    plan = planned(weekly, **settings)
    (part,) = plan.adaptive
    spread = part.adaptive.spread
    units = np.array(spread.units, dtype=object)

    assert max(sum(np.tile(units, 3)[start : start + 4]) for start in range(3)) <= PARTS
    assert above_least(spread, part.scales.noise) < 1e-6
    even = Spread(weights=weights, units=(PARTS // 4,) * 3, least=spread.least)
    assert above_least(even, part.scales.noise) > 0.05
    deviations = [part.scales.sample(u).variance ** 0.5 for u in spread.units]
    assert deviations[2] < 0.8 * deviations[0]
    assert plan_from_json(plan_to_json(plan)) == plan
    document = plan_to_json(plan)
    document["queries"][0]["adaptive"]["adaptive"]["spread"]["units"][0] += 1
    assert digest(plan_from_json(document)) != digest(plan)


def test_all_samples_before_an_end_have_a_weight_of_their_own():
    choice = AdaptiveChoice(policy="fixed", interval=2, weights=(1.0, 3.0))
    (part,) = planned(choice, protects=EVERYTHING, windows=9).adaptive

    units = part.adaptive.spread.units
    assert (len(units), sum(units) <= PARTS) == (5, True)
    assert sum(units) == pytest.approx(PARTS, rel=1e-6)
    assert [round(u / units[0], 3) for u in units] == [1.0, 2.08, 1.0, 2.08, 1.0]  # 3^(2/3)
    with pytest.raises(ValueError, match="6 for 5 samples"):
        planned(AdaptiveChoice(policy="fixed", interval=2, weights=(1.0,) * 6), protects=EVERYTHING, windows=9)


@pytest.mark.parametrize(("samples", "noise"), [(2, "laplace"), (60, "gaussian")])
def test_where_nothing_is_said_samples_have_the_noise_that_is_less(samples, noise):
    asked = AdaptiveChoice(policy="dsat", samples=samples)
    found = {
        mechanism: planned(asked, protects=Span(90), **{**GAUSSIAN, "mechanism": mechanism})
        for mechanism in ("auto", "laplace", "gaussian")
    }

    assert found["auto"].mechanism == noise
    assert found["auto"].adaptive == found[noise].adaptive
    grids = {name: plan.demands[0].measure.components[0].grid for name, plan in found.items()}
    errors = {name: plan.adaptive[0].deviation * grids[name] for name, plan in found.items()}
    assert errors["auto"] == min(errors.values())


def test_a_plan_whose_noise_is_not_what_it_says_is_refused():
    document = plan_to_json(planned(DSAT, **GAUSSIAN))
    del document["queries"][0]["adaptive"]["scales"]["noise"]

    with pytest.raises(ValueError, match="what is published adaptively is for another one"):
        plan_from_json(document)


@pytest.mark.parametrize("settings", [{}, GAUSSIAN])
def test_samples_of_sums_over_cells_have_noise_for_all_sums_that_a_cell_is_in(settings):
    plan, alone = planned(DSAT, over=CellChoice(name="tree", branching=3), **settings), planned(DSAT, **settings)
    sums = np.abs(plan.adaptive[0].over.spread(np.eye(9, dtype=np.int64)))
    moved = sums.sum(axis=1).max() if not settings else np.sqrt((sums**2).sum(axis=1).max())
    document = plan_to_json(plan)
    del document["queries"][0]["adaptive"]["scales"]["column"]

    assert moved > 1
    assert plan.adaptive[0].scales.whole == pytest.approx(moved * alone.adaptive[0].scales.whole)
    with pytest.raises(ValueError, match="noise is for samples with other sums"):
        plan_from_json(document)


@pytest.mark.parametrize(("span", "window", "windows"), [(7, 1, 7), (14, 10, 2), (5, 10, 1)])
def test_a_span_is_protected_by_all_ends_of_windows_that_it_can_hold(span, window, windows):
    """Whether or not the release has an end."""
    for end in (None, 365):
        choice = AdaptiveChoice(policy="ba")
        adaptive = adaptive_of(
            choice,
            promise=Promise(constraint=AtOnce(), window=window, windows=end, protects=Span(span), owner=False),
            cells=1,
            measure=Measure(kind="count"),
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
        (
            {"budget": Budget(epsilon=1, delta=1e-6), "accounting": "pld"},
            "Laplace noise needs accounting naive, not pld",
        ),
        ({**GAUSSIAN, "accounting": "pld"}, "Gaussian noise needs accounting zcdp or rdp, not pld"),
        ({"measure": Measure(kind="mean", low=0, high=1)}, "not of a ratio"),
        ({"split": "relative_error"}, "depends on the data"),
        # With these neighbours may both be there, so that a histogram moves by twice as much, or differ for ever.
        ({"constraint": AtOnce(changes=2, block=7)}, "remove at_most"),
        ({"protects": Span(7, near=(("x", "1"),))}, "whether a unit is there, not where"),
        ({"constraint": AtMost(2)}, "give AtOnce"),
        ({"constraint": Within(5)}, "give AtOnce"),
    ],
)
def test_what_does_not_go_with_it_is_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        planned(DSAT, **settings)
