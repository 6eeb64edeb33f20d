"""Plans, made without data: strategies are chosen, and noise is calibrated to the budget.

Each query's weight is its share of the budget; a query that is released in several parts splits its share evenly.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from privacy.accounting.accounting import Budget, calibrate
from privacy.counted import counted
from privacy.discovery.budget import split as split_delta
from privacy.discovery.rules import release_problems
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.planning.adaptive_part import AdaptiveDraft
from privacy.planning.adaptive_rules import AdaptiveQuery, Setting, adaptive_problems
from privacy.planning.demand import Demand
from privacy.planning.discovered_part import DiscoveredDraft, EventsDraft, finding_problems, finding_terms
from privacy.planning.linear_part import LinearDraft
from privacy.planning.part import Calibrated, Draft
from privacy.planning.plan import Plan
from privacy.planning.planner import PlanningTask, certified, nominal, options
from privacy.planning.pricing import share, share_for
from privacy.planning.promise import Promise
from privacy.planning.query_rules import sliding_problems, split_problems
from privacy.planning.statement import conditions, protected
from privacy.problems import RuleError, enforce, placed
from privacy.strategies.table import OFFERS
from privacy.ties import cheapest

BudgetSplit = Literal["weights", "relative_error"]

DECIDING = " Decisions when to publish new numbers have discrete Laplace noise."
"""Part of the claim, if decisions and numbers have noise of different kinds."""


def make_plan(
    demands: Sequence[Demand],
    promise: Promise,
    *,
    budget: Budget,
    mechanism: Mechanism | Literal["auto"],
    accounting: Accounting | None,
    split: BudgetSplit = "weights",
    adaptive_data: bool = False,
) -> Plan:
    """Choose the strategies and calibrate the noise of a release.

    Args:
        demands: one for each query.
        promise: the protection, the windows, and the bound that is enforced.
        budget: epsilon and delta of the whole release.
        mechanism: `auto` chooses the one with the least error: Laplace noise without a delta or if a unit touches few
            nodes, Gaussian noise otherwise.
        accounting: None is `naive` for Laplace noise and `pld` for Gaussian, `zcdp` if a query is published adaptively.
        split: by the demands' weights, or so that all errors are the same share of `expected`.
        adaptive_data: whether data may react to published numbers; `conditions` states whether the plan allows it.

    Raises:
        ValueError: budget, mechanism and accounting do not fit together, or a query has no sensitivity.
    """
    for demand in demands:
        with placed("queries", demand.name):
            enforce(_number_problems(demand, promise, relative=split == "relative_error"))
            enforce(finding_problems(demand) if demand.discover else ())
    if any(demand.discover for demand in demands):
        enforce(release_problems(finding_terms(promise, budget.delta)))
    mechanisms = tuple(name for name, kind in NOISE.items() if kind.pure or budget.delta > 0)
    serving = tuple(name for name in mechanisms if _serves(name, demands))
    plans, refused = [], []
    for tried in (serving or mechanisms) if mechanism == "auto" else (mechanism,):
        try:
            made = _plan(
                demands,
                promise,
                budget=budget,
                mechanism=tried,
                accounting=accounting or usual_accounting(tried, adaptive=any(d.adaptive is not None for d in demands)),
                split=split,
                adaptive_data=adaptive_data,
            )
        except ValueError as error:  # such as a delta that is too small for Gaussian noise on these bounds
            refused.append(error)
        else:
            plans.append(made)
    if not plans:
        raise refused[-1]
    return cheapest(plans, _typical_error)


def usual_accounting(mechanism: Mechanism, *, adaptive: bool) -> Accounting:
    """Return the default composition of a release.

    >>> usual_accounting("gaussian", adaptive=False), usual_accounting("gaussian", adaptive=True)
    ('pld', 'zcdp')
    """
    kind = NOISE[mechanism]
    return kind.adaptively[0] if adaptive else kind.accounting


def _number_problems(demand: Demand, promise: Promise, *, relative: bool) -> Iterator[RuleError]:
    """Yield the rules that the numbers and the share of a query break.

    Args:
        demand: the demand.
        promise: promise of the release.
        relative: whether the budget is split by relative errors.
    """
    widths = {place: series.width for place, series in enumerate(demand.series) if series.kind == "sliding"}
    yield from sliding_problems(widths, promise.windows, lambda windows: counted(windows, "window"))
    if demand.adaptive is None:
        ratio, weighted = len(demand.measure.components) > 1, demand.weight != 1
        yield from split_problems(
            ratio=ratio, expected=demand.expected, weight=demand.weight, weighted=weighted, relative=relative
        )


def _serves(mechanism: Mechanism, demands: Sequence[Demand]) -> bool:
    """Return whether each query has a strategy that the spec allows."""
    names = {demand.choice.name for demand in demands} - {"auto"}
    return NOISE[mechanism].dense or all(OFFERS[name].sparse for name in names)


def _plan(
    demands: Sequence[Demand],
    promise: Promise,
    *,
    budget: Budget,
    mechanism: Mechanism,
    accounting: Accounting,
    split: BudgetSplit,
    adaptive_data: bool,
) -> Plan:
    demands = [replace(d, measure=replace(d.measure, fine=NOISE[mechanism].fine)) for d in demands]
    setting = Setting.of(promise, mechanism, accounting, weighted=split == "weights")
    tasks = [
        PlanningTask(demand=demand, promise=promise, mechanism=mechanism, reacting=adaptive_data, accounting=accounting)
        for demand in demands
    ]
    pure = NOISE[mechanism].pure and accounting in ("naive", "paper")
    delta, each = split_delta(budget.delta, sum(demand.discover for demand in demands), pure=pure)
    drafted = [_drafted(place, task, setting, each) for place, task in enumerate(tasks)]
    drafts = [draft for of_query, _, _ in drafted for draft in of_query]
    errors = [error for _, _, error in drafted]
    weights = _weights(demands, errors, mechanism=mechanism, split=split)
    queries = [draft.query for draft in drafts]
    measurements = [draft.measurement(share(draft.query, weights, queries)) for draft in drafts]
    calibration = calibrate(
        measurements,
        budget=replace(budget, delta=delta),
        found=math.fsum(each for demand in demands if demand.discover),
        mechanism=mechanism,
        accounting=accounting,
        steps=min(c.largest for demand in demands for c in demand.measure.components),
        protected=protected(promise.protects),
    )
    parts = tuple(
        draft.calibrated(Calibrated(mechanism=mechanism, scale=scale, share=part, delta=delta * measurement.weight))
        for draft, measurement, scale, part in zip(
            drafts, measurements, calibration.scales, calibration.shares, strict=True
        )
    )
    premises = [one for part in parts for one in part.conditions(demands[part.query].name, mechanism)]
    decided = any(part.decides for part in parts) and not NOISE[mechanism].pure
    return Plan(
        promise=promise,
        demands=tuple(demands),
        parts=parts,
        strategies=tuple(name for _, name, _ in drafted),
        weights=weights,
        mechanism=mechanism,
        accounting=accounting,
        budget=calibration.budget,
        share_unit=calibration.unit,
        claim=calibration.sentence + (DECIDING if decided else ""),
        conditions=conditions(premises, promise.protects, delta=calibration.budget.delta),
    )


def _drafted(place: int, task: PlanningTask, setting: Setting, delta: float) -> tuple[Sequence[Draft], str, float]:
    """Return the parts of a query, the name of its strategy, and its error for a whole budget of one unit.

    Args:
        place: place of the query.
        task: the planning task of the query.
        setting: properties of the release, for adaptive publication.
        delta: probability for the threshold of a query that finds keys.

    Raises:
        ValueError: the query cannot be released.
    """
    demand = task.demand
    if demand.adaptive is None:
        best = certified(options(task)[0], task)
        if demand.discover:
            one, *events = best.parts
            found = DiscoveredDraft(query=place, demand=demand, costed=one, promise=task.promise, delta=delta)
            others = [EventsDraft(query=place, demand=demand, costed=part) for part in events]
            return [found, *others], best.name, best.error
        return [LinearDraft(query=place, demand=demand, costed=one) for one in best.parts], best.name, best.error
    with placed("queries", place):
        enforce(adaptive_problems(demand.adaptive, AdaptiveQuery.of(demand), setting))
    draft = AdaptiveDraft.of(place, demand, demand.adaptive, task.promise, task.mechanism)
    return [draft], f"adaptive {demand.adaptive.name}", math.nan


def _weights(
    demands: Sequence[Demand], errors: Sequence[float], *, mechanism: Mechanism, split: BudgetSplit
) -> tuple[float, ...]:
    """Each query's share of the budget.

    Either the demands say, or all errors become the same part of what the demands expect.

    Args:
        demands: of all queries.
        errors: of each query, for a whole budget of one unit.
        mechanism: the kind of noise.
        split: which of the two.
    """
    if split == "weights":
        raw = [demand.weight for demand in demands]
    else:
        raw = []
        for demand, error in zip(demands, errors, strict=True):
            assert demand.expected is not None
            component = demand.measure.components[0]
            raw.append(share_for(error * component.largest * component.grid / demand.expected, mechanism))
    total = math.fsum(raw)
    return tuple(weight / total for weight in raw)


def _typical_error(plan: Plan) -> float:
    """The mean over queries, by weight, of the logarithm of the root mean square error in normalised units."""
    logs = []
    for place, (weight, demand) in enumerate(zip(plan.weights, plan.demands, strict=True)):
        windows = nominal(plan.promise.windows, demand.series)
        found = [part.variance(demand.measure, windows) for part in plan.of_query(place)]
        squares, numbers = math.fsum(one for one, _ in found), sum(count for _, count in found)
        if squares == 0:  # no number is published yet, or the noise vanishes
            continue
        logs.append(weight * math.log(squares / numbers))
    return math.fsum(logs)
