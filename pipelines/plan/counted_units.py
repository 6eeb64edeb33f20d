"""Margins of error of units in place of entries, and the reverse, for specs whose privacy unit is an owner."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pipelines.epochs.plans import plan_of
from pipelines.plan.accuracy import accuracy
from pipelines.spec.load import Spec
from privacy.measure import COUNTS, Measure
from privacy.planning.plan import Plan
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError

Accuracies = Sequence[Sequence[dict[str, Any]]]


def with_other_counts(spec: Spec, plan: Plan, windows: int, found: Accuracies) -> list[list[dict[str, Any]]]:
    """Return the margins of error, with those of the other kind of count under `instead`.

    An owner may have several entries at a time: a count of units then has less noise than a count of entries.

    Args:
        spec: The spec.
        plan: Its plan.
        windows: Number of windows over which errors are averaged.
        found: For each query the result of `accuracy`.
    """
    others = [_other(query) for query in spec.queries]
    if plan.promise.alone or not any(others):
        return [list(numbers) for numbers in found]
    queries = tuple(other or query for other, query in zip(others, spec.queries, strict=True))
    try:
        planned = plan_of(replace(spec, queries=queries))
    except SpecError:  # the other kind of count cannot be released
        return [list(numbers) for numbers in found]
    shown = []
    for place, (numbers, other) in enumerate(zip(found, others, strict=True)):
        if other is None:
            shown.append(list(numbers))
            continue
        instead = accuracy(other, planned, place, windows)
        shown.append(
            [
                {**number, "instead": {"measure": other.measure.kind, "half_width": another["half_width"]}}
                for number, another in zip(numbers, instead, strict=True)
            ]
        )
    return shown


def _other(query: Query) -> Query | None:
    """Return the query with the other kind of count; None if it cannot be compared with it."""
    sums = query.ranges or query.quantiles or query.over.asks or query.apart
    if query.measure.kind not in COUNTS or query.adaptive is not None or sums:
        return None
    return replace(query, measure=Measure(kind="count" if query.measure.distinct else "units"))
