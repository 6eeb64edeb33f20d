"""Errors of other strategies, computed from a plan on request and never stored in it."""

from dataclasses import fields

from privacy.planning.costed import Costed, Option
from privacy.planning.plan import Plan
from privacy.planning.planner import PlanningTask, nominal, options
from privacy.planning.pricing import root_mean_square


def alternatives(plan: Plan, query: int, *, adaptive_data: bool = False) -> tuple[Option, ...]:
    """Return the chosen option of a query, then the best option of each other kind, with the least error first.

    Args:
        plan: plan of the release.
        query: its place; the query must not be published adaptively.
        adaptive_data: whether data may react to published numbers.
    """
    demand, promise = plan.demands[query], plan.promise
    parts = [
        Costed(**{one.name: getattr(released, one.name) for one in fields(Costed)}) for released in plan.of_query(query)
    ]
    error = root_mean_square(parts, nominal(promise.windows, demand.series), plan.mechanism, plan.accounting)
    taken = Option(name=plan.strategies[query], parts=tuple(parts), error=error)
    task = PlanningTask(
        demand=demand,
        promise=promise,
        mechanism=plan.mechanism,
        reacting=adaptive_data,
        accounting=plan.accounting,
    )
    return (taken, *(option for option in options(task) if option.kind != taken.kind))
