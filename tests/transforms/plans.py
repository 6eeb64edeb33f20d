"""Plans for tests that are about neither contribution bounds nor noise."""

from collections.abc import Sequence

from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query, Timeline, planned


def laplace_plan(queries: Sequence[Query], constraint: AtMost, timeline: Timeline) -> tuple[Plan, Aggregation]:
    """Return a plan with epsilon = 2 for a release as long as the timeline."""
    plan = make_plan(
        [query.demand for query in queries],
        promise=Promise(constraint=constraint, window=timeline.every, windows=timeline.windows, owner=False),
        budget=Budget(epsilon=2.0, delta=0.0),
        mechanism="laplace",
        accounting=None,
    )
    return plan, Aggregation(queries=planned(queries, plan), timeline=timeline, constraint=constraint)
