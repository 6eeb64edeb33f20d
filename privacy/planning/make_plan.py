"""A plan is made, without data: strategies are chosen, and noise is calibrated to the budget.

Each query's weight is its share of the budget; a query that is released in several parts splits its share evenly.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from privacy.accounting.accounting import Budget, Calibration, calibrate, paper_epsilon
from privacy.cells.kdtree import KdTree
from privacy.noise.kinds import NOISE, Accounting, Mechanism
from privacy.noise.sampling import LARGEST_SCALE
from privacy.planning.adaptive_part import (
    adaptive_of,
    at_once,
    calibrated,
    decisions_over,
    one_measurement,
    over_of,
)
from privacy.planning.demand import Demand
from privacy.planning.plan import Plan, Released
from privacy.planning.planner import Option, Part, Question, certified, nominal, options
from privacy.planning.pricing import measured, share, share_for, total_variance
from privacy.planning.promise import Promise
from privacy.planning.statement import conditions, protected
from privacy.strategies.base import of_one_width
from privacy.strategies.table import OFFERS

Split = Literal["weights", "relative_error"]

DECIDING = " Decisions when to publish anew have discrete Laplace noise."
"""Said where that is not the noise of all numbers."""


def make_plan(
    demands: Sequence[Demand],
    promise: Promise,
    *,
    budget: Budget,
    mechanism: Mechanism | Literal["auto"],
    accounting: Accounting | None,
    split: Split = "weights",
    adaptive_data: bool = False,
) -> Plan:
    """Choose the strategies and calibrate the noise of a release.

    Args:
        demands: one for each query.
        promise: what is protected, over which windows, and the bound that is enforced.
        budget: see privacy.accounting.
        mechanism: `auto` takes the one with the least error: Laplace noise without a delta or where a unit touches few
            nodes, Gaussian elsewhere.
        accounting: None is `naive` for Laplace noise and `pld` for Gaussian, `zcdp` if a query is published adaptively.
        split: by the demands' weights, or so that all errors are the same share of `expected`.
        adaptive_data: whether data may react to what is published; `conditions` says if the plan holds for it anyway.

    Raises:
        ValueError: a budget, mechanism and accounting that do not fit together, or a query without any sensitivity.
    """
    mechanisms = tuple(name for name, kind in NOISE.items() if kind.pure or budget.delta > 0)
    if mechanism != "auto":
        mechanisms = (mechanism,)
    plans, refused = [], []
    for tried in mechanisms:
        if mechanism == "auto" and not _serves(tried, demands):
            continue
        try:
            made = _plan(
                demands,
                promise,
                budget=budget,
                mechanism=tried,
                accounting=accounting or usual_accounting(tried, adaptive=any(d.adaptive is not None for d in demands)),
                split=split,
                adaptive=adaptive_data,
            )
        except ValueError as error:  # such as a delta that is too small for Gaussian noise on these bounds
            refused.append(error)
        else:
            plans.append(made)
    if not plans:
        raise (
            refused[-1] if refused else ValueError("a factorised strategy needs Gaussian noise, and so a delta above 0")
        )
    return min(plans, key=_typical_error)


def usual_accounting(mechanism: Mechanism, *, adaptive: bool) -> Accounting:
    """How a release is composed where nothing else is said.

    Args:
        adaptive: whether a query is published adaptively.

    >>> usual_accounting("gaussian", adaptive=False), usual_accounting("gaussian", adaptive=True)
    ('pld', 'zcdp')
    """
    kind = NOISE[mechanism]
    return kind.adaptively[0] if adaptive else kind.accounting


def _serves(mechanism: Mechanism, demands: Sequence[Demand]) -> bool:
    """Whether each query can have a strategy that the spec allows."""
    names = {demand.choice.name for demand in demands} - {"auto"}
    return NOISE[mechanism].dense or all(OFFERS[name].sparse for name in names)


def _plan(
    demands: Sequence[Demand],
    promise: Promise,
    *,
    budget: Budget,
    mechanism: Mechanism,
    accounting: Accounting,
    split: Split,
    adaptive: bool,
) -> Plan:
    demands = [replace(d, measure=replace(d.measure, fine=NOISE[mechanism].fine)) for d in demands]
    if any(d.adaptive is not None for d in demands) and accounting not in NOISE[mechanism].adaptively:
        raise ValueError(
            f"adaptive publication with {mechanism.capitalize()} noise needs accounting "
            f"{' or '.join(NOISE[mechanism].adaptively)}, not {accounting}"
        )
    questions = [
        Question(demand=demand, promise=promise, mechanism=mechanism, adaptive=adaptive, accounting=accounting)
        for demand in demands
    ]
    found: list[tuple[Option, ...]] = []
    for question in questions:
        if question.demand.adaptive is not None:
            found.append(())
            continue
        best, *others = options(question)
        found.append((certified(best, question), *others))
    weights = _weights(demands, found, mechanism=mechanism, split=split)
    planned = [(place, part) for place, tried in enumerate(found) for part in (tried[0].parts if tried else ())]
    overs = {
        place: over_of(demand.over, demand.axes, mechanism) for place, demand in enumerate(demands) if demand.adaptive
    }
    policies = [
        (
            place,
            adaptive_of(
                demand.adaptive,
                promise,
                cells=decisions_over(overs[place], demand.cells),
                measure=demand.measure,
                noise=mechanism,
            ),
        )
        for place, demand in enumerate(demands)
        if demand.adaptive is not None
    ]
    decided = any(policy.decisions is not None for _, policy in policies)
    queries = [place for place, _ in planned]
    measurements = [measured(part.sensitivity, share(place, weights, queries)) for place, part in planned]
    measurements += [one_measurement(weights[place]) for place, _ in policies]
    steps = min(c.largest for demand in demands for c in demand.measure.components)
    calibration = calibrate(
        measurements,
        budget=budget,
        mechanism=mechanism,
        accounting=accounting,
        steps=steps,
        protected=protected(promise.protects),
    )
    stated = [
        paper_epsilon([m], [scale], mechanism=mechanism, delta=budget.delta * m.weight)
        if part.strategy.sparse and of_one_width(part.strategy)
        else None
        for (_, part), m, scale in zip(planned, measurements, calibration.scales, strict=False)
    ]
    return Plan(
        promise=promise,
        demands=tuple(demands),
        released=_released(demands, planned, calibration, mechanism, stated),
        adaptive=tuple(
            calibrated(
                place,
                policy,
                scale=scale,
                sensitivity=at_once(demands[place].measure, promise),
                noise=mechanism,
                over=overs[place],
            )
            for (place, policy), scale in zip(policies, calibration.scales[len(planned) :], strict=True)
        ),
        strategies=tuple(
            f"adaptive {demand.adaptive.policy}" if demand.adaptive is not None else tried[0].name
            for demand, tried in zip(demands, found, strict=True)
        ),
        weights=weights,
        mechanism=mechanism,
        accounting=accounting,
        budget=calibration.budget,
        share_unit=calibration.unit,
        claim=calibration.sentence + (DECIDING if decided and not NOISE[mechanism].pure else ""),
        conditions=conditions(
            mechanism,
            [(demands[place].name, part.strategy) for place, part in planned],
            promise.protects,
            [demands[place].name for place, over in overs.items() if isinstance(over, KdTree)],
            [demands[place].name for place, policy in policies if policy.policy == "pegasus"],
        ),
    )


def _released(
    demands: Sequence[Demand],
    planned: Sequence[tuple[int, Part]],
    calibration: Calibration,
    mechanism: Mechanism,
    stated: Sequence[float | None],
) -> tuple[Released, ...]:
    kind = NOISE[mechanism].distribution
    for (place, part), scale in zip(planned, calibration.scales, strict=False):  # adaptive parts come last
        if scale * max(c.largest for c in demands[place].measure.components) > LARGEST_SCALE:
            raise ValueError(
                f"query {demands[place].name}: {part.family} numbers would need noise of more than 2^55 grid steps; "
                "use a larger epsilon, a smaller constraint or narrower bounds"
            )
    return tuple(
        Released(
            query=place,
            family=part.family,
            leaf=part.leaf,
            strategy=part.strategy,
            series=part.series,
            sensitivity=part.sensitivity,
            noise=tuple(kind(math.nextafter(scale * c.largest, math.inf)) for c in demands[place].measure.components),
            share=share,
            paper_epsilon=epsilon,
            over=part.over,
        )
        for (place, part), scale, share, epsilon in zip(
            planned, calibration.scales, calibration.shares, stated, strict=False
        )
    )


def _weights(
    demands: Sequence[Demand], found: Sequence[tuple[Option, ...]], *, mechanism: Mechanism, split: Split
) -> tuple[float, ...]:
    """Each query's share of the budget.

    Either the demands say, or all errors become the same part of what the demands expect.
    """
    if split == "weights":
        raw = [demand.weight for demand in demands]
    else:
        raw = []
        for demand, tried in zip(demands, found, strict=True):
            if demand.adaptive is not None:
                raise ValueError(f"query {demand.name}: the error of adaptive publication depends on the data")
            if demand.expected is None:
                raise ValueError(f"query {demand.name}: equal relative errors need its `expected` size")
            if len(demand.measure.components) > 1:
                raise ValueError(f"query {demand.name}: the error of a {demand.measure.kind} depends on the data")
            component = demand.measure.components[0]
            relative = tried[0].error * component.largest * component.grid / demand.expected
            raw.append(share_for(relative, mechanism))
    total = math.fsum(raw)
    return tuple(weight / total for weight in raw)


def _typical_error(plan: Plan) -> float:
    """The mean over queries, by weight, of the logarithm of the root mean square error in normalised units.

    Of an adaptive query that of a sample, the first one: what else it is off by depends on the data.
    """
    logs = []
    for place, weight in enumerate(plan.weights):
        demand = plan.demands[place]
        noisy = [
            (released, released.noise[0].variance / demand.measure.components[0].largest ** 2)
            for released in plan.released
            if released.query == place
        ]
        squares, numbers = total_variance(noisy, nominal(plan.promise.windows, demand.series))
        if (part := plan.adaptive_of(place)) is not None:
            squares, numbers = (part.deviation / demand.measure.components[0].largest) ** 2, 1
        if squares == 0:  # no number is published yet, or the noise vanishes
            continue
        logs.append(weight * math.log(squares / numbers))
    return math.fsum(logs)
