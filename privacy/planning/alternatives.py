"""What other strategies would cost: computed from a plan whenever somebody asks, and no part of it."""

from dataclasses import fields

from privacy.planning.plan import Plan
from privacy.planning.planner import Option, Part, Question, nominal, options
from privacy.planning.pricing import root_mean_square


def alternatives(plan: Plan, query: int, *, adaptive_data: bool = False) -> tuple[Option, ...]:
    """The option that was taken for a query, then the best one of each other kind, with the least error first.

    Args:
        plan: of the release.
        query: its place; not of a query that is published adaptively.
        adaptive_data: whether data may react to what is published.
    """
    demand, promise = plan.demands[query], plan.promise
    parts = [
        Part(**{one.name: getattr(released, one.name) for one in fields(Part)})
        for released in plan.released
        if released.query == query
    ]
    error = root_mean_square(parts, nominal(promise.windows, demand.series), plan.mechanism, plan.accounting)
    taken = Option(name=plan.strategies[query], parts=tuple(parts), error=error)
    question = Question(
        demand=demand,
        promise=promise,
        mechanism=plan.mechanism,
        adaptive=adaptive_data,
        accounting=plan.accounting,
    )
    return (taken, *(option for option in options(question) if option.kind != taken.kind))
