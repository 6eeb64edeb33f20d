"""Published numbers of a series with their smoothed values (privacy.smoothing).

    in    rows of `estimates`, in any order
    out   the same rows by window and cell, with the columns smoothed, model_low, model_high

Post-processing: it reads only published numbers. A row does not change when later windows are published.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from privacy.noise.distributions import widened
from privacy.planning.linear_part import LinearPart
from privacy.planning.plan import Plan
from privacy.series import Series
from privacy.smoothing.noise_covariance import noise_covariances
from privacy.smoothing.segments import Segment, segments
from privacy.smoothing.walk import smooth
from privacy.strategies.base import Floats
from transforms.aggregation.queries import Query
from transforms.common.windows import Windows
from transforms.release.rows_in_order import of_series

SMOOTHED = ("smoothed", "model_low", "model_high")
"""Columns that are added."""


def why_not(query: Query, series: Series, plan: Plan) -> str | None:
    """Return why the numbers of a series are not smoothed; None if they are.

    Args:
        query: The query.
        series: One of its series.
        plan: Plan of the release.
    """
    if not plan.linear(_place(query, plan)):
        return "the data decide which windows are sampled, so the error of a number depends on the data"
    if query.discovers:
        return "its keys are found, so that each has numbers from another window on"
    if len(query.measure.components) > 1:
        return f"the error of a {query.measure.kind} depends on the data; counts and sums are smoothed"
    if query.consistent and series.kind in ("level", "entered", "left"):
        return "its cells were made consistent, which leaves no known noise; smooth a query without `consistent`"
    return None


def smoothed_table(estimates: pa.Table, query: Query, series: Series, plan: Plan, *, windows: Windows) -> pa.Table:
    """Return the smoothed numbers of one series that are published so far.

    Args:
        estimates: Rows of published tables; those of other queries and series are ignored.
        query: The query.
        series: One of its series, for which `why_not` returns None.
        plan: Plan of the release.
        windows: Windows of the release.

    Raises:
        InputError: The rows are not those of all cells of the first windows, each once.
    """
    place = _place(query, plan)
    released = plan.publishing(place, series)
    table = of_series(estimates, query, series, windows)
    numbers = len(table) // query.cells
    parts = segments(numbers, None if plan.promise.windows is None else len(series.ends(plan.promise.windows)))
    grid = plan.demands[place].measure.components[0].grid  # the plan's grid is finer than the query's
    covariances = [grid**2 * found for found in covariances_of(released, series, parts)]
    published, low, high = (
        table.column(name).to_numpy().reshape(numbers, query.cells) for name in ("value", "ci_low", "ci_high")
    )
    each = np.ones(1) if released.over is None else np.sqrt(released.over.variances())
    found = smooth(published / each, low / each, high / each, parts=parts, covariances=covariances)
    value = np.clip(found.value * each, low, high)  # scaling back and forth rounds beyond the published interval
    ends = np.minimum(found.low * each, value), np.maximum(found.high * each, value)
    for name, column in zip(SMOOTHED, (value, *ends), strict=True):
        table = table.append_column(name, pa.array(column.ravel()))
    return table


def covariances_of(released: LinearPart, series: Series, parts: Sequence[Segment]) -> list[Floats]:
    """Return the covariance of the noise of each segment's numbers, in grid steps; over cells for a variance of 1.

    Args:
        released: Part of the plan.
        series: The series.
        parts: Segments of the numbers.
    """
    (noise,), strategy = released.noise, released.strategy
    stretch = strategy.stretch(strategy.nodes(max(part.last for part in parts)))
    if stretch is None:
        return [noise.variance * found for found in noise_covariances(strategy, series.merged(released.leaf), parts)]
    # Each node is a number. Narrow noise is not a scaled copy of wide noise, so each width has a separate variance.
    variances = np.array([widened(noise, width).variance for width in stretch.tolist()])
    return [np.diag(variances[part.first : part.last]) for part in parts]


def _place(query: Query, plan: Plan) -> int:
    return next(place for place, demand in enumerate(plan.demands) if demand.name == query.name)
