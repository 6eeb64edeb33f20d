"""A plan as one JSON document: every strategy of each query with its errors, sensitivities, noise and shares."""

import math
from typing import Any

import numpy as np

from pipelines.spec.durations import duration_text
from pipelines.spec.load import Spec
from pipelines.spec.series import series_document, series_text
from privacy.planning.alternatives import alternatives
from privacy.planning.costed import Costed, Option
from privacy.planning.linear_part import LinearPart
from privacy.planning.plan import Plan, stddev
from privacy.planning.pricing import node_deviation, split_deviation
from privacy.series import Series
from transforms.aggregation.queries import Query


def plan_document(spec: Spec, plan: Plan, windows: int) -> dict[str, Any]:
    """Return the plan as one JSON document; docs/reference/commands.md lists its members.

    Args:
        spec: The spec.
        plan: Its plan.
        windows: Number of windows over which errors are averaged.
    """
    return {
        "release": spec.release,
        "loss": {"epsilon": plan.budget.epsilon, "delta": plan.budget.delta},
        "statement": plan.statement,
        "claim": plan.claim,
        "conditions": list(plan.conditions),
        "mechanism": plan.mechanism,
        "accounting": plan.accounting,
        "windows": windows,
        "states": _states(spec),
        "queries": [
            {
                "name": query.name,
                "cells": None if query.discovers else query.cells,
                "share": plan.weights[place],
                "found": _found(plan, place),
                "candidates": [
                    *_candidates(spec, plan, place, windows),
                ],
            }
            for place, query in enumerate(spec.queries)
        ],
    }


def _found(plan: Plan, place: int) -> dict[str, float] | None:
    """Return which keys are found; None if cells are listed."""
    part = plan.discovered_of(place)
    return None if part is None else part.found(plan.demands[place], plan.promise)


def _candidates(spec: Spec, plan: Plan, place: int, windows: int) -> list[dict[str, Any]]:
    """Return the chosen strategy and the alternatives with their errors, if there are any."""
    alone = [part.describe(plan.demands[place], plan.share_unit) for part in plan.of_query(place)]
    if found := [one for one in alone if one is not None]:
        return found
    options = alternatives(plan, place, adaptive_data=spec.privacy.adaptive_data)
    return [_candidate(spec.queries[place], plan, place, options, number, windows) for number in range(len(options))]


def _candidate(
    query: Query, plan: Plan, place: int, options: tuple[Option, ...], number: int, windows: int
) -> dict[str, Any]:
    option = options[number]
    chosen = number == 0
    released = plan.linear(place) if chosen else ()
    epsilons = [r.paper_epsilon for r in released]
    return {
        "strategy": option.name,
        "parameters": _parameters(option, plan),
        "mechanism": f"discrete_{plan.mechanism}",
        "chosen": chosen,
        "why": _why(options, number, query.strategy.name),
        "carried": {"numbers": _carried(plan, place, option, windows), "bounded": option.bounded},
        "paper_epsilon": None if not chosen or None in epsilons else math.fsum(e for e in epsilons if e is not None),
        "share": {plan.share_unit: math.fsum(r.share for r in released)} if chosen else None,
        "families": [_family(r, plan) for r in released],
        "numbers": [_number(plan, place, options[0], option, series, windows) for series in query.publish],
    }


def _parameters(option: Option, plan: Plan) -> dict[str, Any]:
    """Return the parameters of the part of net changes, or of each sliding series."""
    parameters: dict[str, Any] = {}
    for part in option.parts:
        if part.family == "net" and len([p for p in option.parts if p.family == "net"]) > 1:
            parameters["/".join(series_text(series_document(s, plan)) for s in part.series)] = _of_part(part, plan)
        elif part.family == "net" or len(option.parts) == 1:
            parameters = _of_part(part, plan)
    return parameters


def _of_part(part: Costed, plan: Plan) -> dict[str, Any]:
    leaf = {"leaf": duration_text(part.leaf * plan.promise.window)} if part.leaf > 1 else {}
    over = {} if part.over is None else {"cells": part.over.name}
    return {**part.strategy.parameters, **leaf, **over}


def _why(options: tuple[Option, ...], number: int, said: str) -> str:
    if len(options) == 1:
        return "the spec says so" if said != "auto" else "the only strategy for these numbers"
    best, other = options[0].error, options[max(number, 1)].error
    if number and other < best:
        but = "" if options[number].bounded else ", but its state grows with the schedule"
        return f"{1 - other / best:.1%} less error than the chosen one{but}"
    if number:
        return f"{other / best - 1:.1%} more error than the chosen one"
    among = "" if said == "auto" else f" among those that the spec's {said} allows"
    if other < best:
        return f"least root mean square error{among}, except one with {1 - other / best:.1%} less whose state grows"
    return f"least root mean square error{among}; the next best has {other / best - 1:.1%} more"


def _carried(plan: Plan, place: int, option: Option, windows: int) -> int:
    """Return about the most numbers that are kept for each cell between windows, from a sample of the windows.

    A tree that samples ahead keeps most at the beginning, and a filter without forgetting at the end.
    """
    some = {
        1,
        *(max(1, windows * part // 16) for part in range(17)),
        *(1 << power for power in range(windows.bit_length())),
    }
    components = len(plan.demands[place].measure.components)
    return components * max(
        sum(
            part.strategy.carried(passed // part.leaf, [series.merged(part.leaf) for series in part.series])
            for part in option.parts
        )
        for passed in some
    )


def _family(released: LinearPart, plan: Plan) -> dict[str, Any]:
    components = plan.demands[released.query].measure.components
    return {
        "family": released.family,
        "numbers": [series_document(series, plan) for series in released.series],
        "l1": released.sensitivity.l1,
        "l2": released.sensitivity.l2,
        "paper": _paper(released, plan),
        "share": {plan.share_unit: released.share},
        "noise": [
            {"component": c.name, "scale": distribution.scale * c.grid, "stddev": distribution.variance**0.5 * c.grid}
            for c, distribution in zip(components, released.noise, strict=True)
        ],
    }


def _paper(released: LinearPart, plan: Plan) -> dict[str, Any] | None:
    """Return the number of nodes that a unit touches by the paper's count, corrected, and by its theorem 4.3."""
    strategy, constraint = released.strategy, plan.promise.constraint
    if not strategy.sparse:
        return None
    charged: dict[str, Any] = {"nodes": released.sensitivity.nodes}
    if strategy.disjoint_layers and constraint.span is not None and released.family == "net":
        windows = -(-constraint.span // (plan.promise.window * released.leaf))
        charged["nodes_claimed"] = math.fsum(windows / leaves + 1 for leaves in strategy.disjoint_layers)
    return charged


def _number(plan: Plan, place: int, chosen: Option, option: Option, series: Series, windows: int) -> dict[str, Any]:
    """Return the errors of one series with an option; null for ratios, whose error depends on the data."""
    document: dict[str, Any] = series_document(series, plan)
    if any(part.over is not None for part in option.parts if series in part.series):
        document["of"] = plan.demands[place].over.purpose
    none = {"rmse": None, "stddev_first": None, "stddev_last": None}
    if len(plan.demands[place].measure.components) > 1:
        return {**document, **none}
    if option is chosen:
        deviations = stddev(plan, place, series, windows)
    else:
        deviations = _tried(plan, place, chosen, option, series, windows)
    if len(deviations) == 0:
        return {**document, **none}
    return {
        **document,
        "rmse": float(np.sqrt(np.mean(deviations**2))),
        "stddev_first": float(deviations[0]),
        "stddev_last": float(deviations[-1]),
    }


def _tried(plan: Plan, place: int, chosen: Option, option: Option, series: Series, windows: int) -> np.ndarray:
    """Return the errors with an option that was not chosen, for the query's share of the budget."""
    taken = plan.linear(place)[0]
    part = next(p for p in option.parts if series in p.series)
    component = plan.demands[place].measure.components[0]
    node, share = (node_deviation(p.sensitivity, plan.mechanism, plan.accounting) for p in (part, taken))
    split = split_deviation(len(option.parts) / len(chosen.parts), plan.mechanism)
    scale = taken.noise[0].variance ** 0.5 * component.grid * node / share * split
    deviations: np.ndarray = np.sqrt(part.variances(series, windows)) * scale
    return deviations


def _states(spec: Spec) -> dict[str, Any] | None:
    bound = spec.privacy.bound
    if bound is None:
        return None
    return {
        "k": bound.k,
        "path": [list(part) for part in bound.path],
        "merged": [list(part) for part in bound.merged],
    }
