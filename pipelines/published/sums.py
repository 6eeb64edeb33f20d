"""Errors of sums and differences of published numbers, exact from the plan: post-processing, which costs no privacy."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privacy.planning.plan import Plan
from privacy.planning.unit_rules import SUMS
from privacy.series import Ints, Series
from transforms.aggregation.queries import Query

Floats = NDArray[np.float64]


def why_unknown(query: Query, series: Series, plan: Plan) -> str | None:
    """Return why the errors of sums over cells are unknown; None if they are known."""
    part = plan.of_series(_place(query, plan), series)
    if part.unsummed is not None:
        return part.unsummed
    if len(query.measure.components) > 1:
        return f"a {query.measure.kind} cannot be added up; ask for a count or a sum"
    if query.consistent and series.kind in ("level", "entered", "left"):
        others = dict.fromkeys(one.kind for one in query.publish if one.kind in ("change", "sliding"))
        instead = "".join(f" --kind {kind}," for kind in others)
        return (
            f"`consistent` changes the noise of {series.kind}, so that of a sum is unknown; use{instead} the cells' "
            "own intervals (`slackwater show`), or a query without `consistent`"
        )
    return None


def why_wrong(query: Query, plan: Plan, weights: Floats) -> str | None:
    """Return why the sum of cells with these weights, [cells], has no meaning; None if it has one."""
    several = max(np.count_nonzero(weights > 0), np.count_nonzero(weights < 0)) > 1
    if query.measure.distinct and several and not plan.promise.alone:
        return f"{SUMS}; use --where for one cell, or publish a query without that key"
    return None


def sum_errors(
    query: Query,
    series: Series,
    plan: Plan,
    weights: Floats,
    *,
    wanted: Ints,
    others: Ints | None,
    sampled: Sequence[bool],
) -> Floats:
    """Return standard deviations and half widths of the 95 % intervals of sums over cells, [2, numbers].

    Args:
        query: The query.
        series: Kind of numbers.
        plan: Plan of the release.
        weights: Weight of each cell, [cells]; not all are 0.
        wanted: Places of the numbers, [numbers].
        others: Places of the numbers that are subtracted, [numbers]; None: nothing is subtracted.
        sampled: Whether each window was sampled, if the query is adaptive; not a number for the others.
    """
    place = _place(query, plan)
    grid = plan.demands[place].measure.components[0].grid
    found: Floats = plan.of_series(place, series).sum_errors(series, weights, wanted, others, sampled) * grid
    return found


def _place(query: Query, plan: Plan) -> int:
    return next(place for place, demand in enumerate(plan.demands) if demand.name == query.name)


HIGHER, LOWER, UNCLEAR, UNKNOWN = "higher", "lower", "unclear", "unknown"


def verdict(low: float, high: float) -> str:
    """Return whether a difference is real, from its interval; its ends are not a number if they are unknown.

    >>> verdict(1.0, 5.0), verdict(-5.0, -1.0), verdict(-1.0, 5.0), verdict(float("nan"), float("nan"))
    ('higher', 'lower', 'unclear', 'unknown')
    """
    if np.isnan(low) or np.isnan(high):
        return UNKNOWN
    return HIGHER if low > 0 else LOWER if high < 0 else UNCLEAR


REAL = {
    HIGHER: "higher: more than the noise explains",
    LOWER: "lower: more than the noise explains",
    UNCLEAR: "may be noise alone",
    UNKNOWN: "unknown: the difference has no known interval",
}
"""Answers to the question whether a difference is real."""
