"""Check that a plan fits an aggregation: the assumptions of its guarantee must be those that are enforced."""

from privacy.planning.adaptive_rules import not_consistent
from privacy.planning.demand import Demand
from privacy.planning.plan import Plan
from privacy.problems import enforce, placed
from privacy.protection import Protection
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query, numbers_and_times
from transforms.release.published_columns import columns_of_some, name_problems
from transforms.release.query_rules import kind_problems, problems


def refuse_mismatch(plan: Plan, aggregation: Aggregation) -> None:
    """Refuse a plan whose guarantee assumes anything that the aggregation does not enforce.

    Raises:
        ValueError: Queries, constraint, unit, windows or the columns that are read differ.
    """
    planned = [_of_nodes(demand) for demand in plan.demands]
    summed = [_of_nodes(query.demand) for query in aggregation.queries]
    if planned != summed:
        raise ValueError("the plan's demands and the aggregation's queries differ; make both from the same queries")
    for part in plan.parts:
        if part.together and aggregation.chunks(part.query) > 1:
            name = plan.demands[part.query].name
            raise ValueError(
                f"query {name}: a strategy over cells works on all of them at once; set it in `Query.over`"
            )
    some, (numbers, _) = columns_of_some(aggregation.queries), numbers_and_times(aggregation.queries)
    for query in aggregation.queries:
        if query.adaptive is not None and query.consistent:
            enforce(not_consistent(query.name))
        with placed("queries", query.name):
            enforce(problems(query, plan))
            enforce(kind_problems(dict(query.ordered), numbers))
            enforce(name_problems([name for name, _ in query.by], some))
        if moved := _moved(query, plan.promise.protects):
            raise ValueError(
                f"query {query.name}: ranges of {', '.join(moved)} are near in the plan or in the query, not in both"
            )
    if plan.promise.constraint != aggregation.constraint:
        raise ValueError("the plan was made for another constraint than the one that is enforced")
    if plan.promise.owner != (aggregation.owner is not None):
        unit, other = ("owners", "entries") if plan.promise.owner else ("entries", "owners")
        raise ValueError(f"the plan protects {unit}, and {other} are bounded; name an owner in both, or in neither")
    timeline = aggregation.timeline
    if plan.promise.window != timeline.every or (
        plan.promise.windows is not None and plan.promise.windows < timeline.windows
    ):
        raise ValueError("the plan was made for other or for fewer windows than the aggregation has")
    if timeline.bounds.slack > plan.promise.slack and plan.promise.counts_windows:
        raise ValueError("the plan was made for windows of equal lengths, or longer ones; give it their slack")


def _of_nodes(demand: Demand) -> object:
    """Return the terms of a demand that determine its nodes and the arrangement of their cells."""
    cells = demand.cells, demand.axes, demand.apart, demand.discover
    return demand.name, demand.measure, cells, demand.series, demand.adaptive


def _moved(query: Query, protects: Protection) -> list[str]:
    """Return the keys with ranges in which units are near either for the plan or for the query."""
    near = set() if protects.span is None else {column for column, _ in protects.span.near}
    moved = {name for (name, _), apart in zip(query.by, query.apart, strict=False) if apart}
    return sorted((near & {name for name, _ in query.ordered}) ^ moved)
