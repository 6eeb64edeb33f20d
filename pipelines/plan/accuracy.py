"""Margins of error of published numbers, and warnings about a spec that wastes its budget. Reads no data.

Each 95 % interval is for one number alone, around the number after contribution bounding.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pipelines.spec.durations import duration_text
from pipelines.spec.load import Spec
from pipelines.spec.series import series_document, series_text
from pipelines.spec.times import now
from privacy.bisection import last_holding
from privacy.cells.product import Product
from privacy.counted import counted
from privacy.estimates import confidence_of
from privacy.measure import Measure
from privacy.noise.distributions import widened
from privacy.noise.mixed import spreads_of_gathered
from privacy.noise.weighted import spreads
from privacy.planning.plan import Plan
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.release.marginal_tables import (
    by_marginal,
    listed_name,
    marginal_kind,
    marginal_name,
    marginals_of,
    noise_of_rows,
    over_listed,
)
from transforms.release.range_tables import by_range, range_kind, ranges_over

MUCH_EPSILON = 5.0
MUCH_DELTA = 1e-5

OF_RANGE = 0.1
"""Margin of error, as a share of a ratio's range, for which `accuracy` states the number of entries needed."""


def accuracy(query: Query, plan: Plan, place: int, windows: int) -> list[dict[str, Any]]:
    """Return the margins of error of each series of a query, with the chosen strategy.

    Args:
        query: The query.
        plan: Plan of the release.
        place: Place of the query in the plan.
        windows: Number of windows over which errors are averaged.

    Returns:
        `kind` (`width`, `every`); for counts and sums `half_width` of a typical number and `half_width_last` of the
        last one, and `of_expected`, the first as a share of the query's `expected`, if it has one; for ratios
        `entries`, the number of entries that the last number needs for an interval of +- `within`. None if no number
        is published yet, or the error depends on the data.
    """
    found = [
        {
            **series_document(series, plan),
            **_of_series(query, plan, place, series, windows, over=_of_cells(query, plan, place, series)),
        }
        for series in query.publish
    ]
    for series in query.publish:
        over = plan.publishing(place, series).over if query.ranges or marginals_of(query) else None
        for number, mean in _made_of_cells(query, series, over):
            off = _of_series(query, plan, place, series, windows, over=mean)
            off |= {"of_expected": None} if "of_expected" in off else {}
            found.append({**series_document(series, plan), **number, **off})
    return found


def _made_of_cells(query: Query, series: Series, over: Product | None) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield the kind of each number that is a sum of cells, with its variance if the noise of a node has variance 1."""
    for marginal in over_listed(query) if query.ranges else ():
        mean = float(noise_of_rows(query, over, ranges_over(query, marginal)).squares.mean())
        number = {"kind": range_kind(series), "cells": by_range(by_marginal(query, marginal)).cells}
        name = listed_name(query, marginal)
        yield number | ({"marginal": name} if name else {}), mean
    for marginal in marginals_of(query):
        rows, of = by_marginal(query, marginal).cells, noise_of_rows(query, over, [marginal.levels])
        number = {"kind": marginal_kind(series), "cells": rows, "marginal": marginal_name(query, marginal)}
        yield number, float(of.squares.mean())


def _of_cells(query: Query, plan: Plan, place: int, series: Series) -> float | None:
    """Return the mean variance of single cells, if the query also has sums of cells, which have separate rows."""
    over = plan.publishing(place, series).over if query.ranges or marginals_of(query) else None
    return None if over is None else float(over.variances().mean())


def _of_series(
    query: Query, plan: Plan, place: int, series: Series, windows: int, *, over: float | None = None
) -> dict[str, Any]:
    """Return the margins of error of one series.

    `over` is the variance over cells of the numbers; None: the mean variance over the workload of the cells.
    """
    ends = series.ends(windows)
    if len(query.measure.components) > 1:
        low, high = query.measure.bounds
        within = OF_RANGE * (high - low)
        entries = _entries(plan, place, series, int(ends[-1]), within, over) if len(ends) else None
        return {"entries": entries, "within": within}
    expected = query.expected
    typical: float | None = None
    last: float | None = None
    measure = plan.demands[place].measure
    if len(ends) and (found := plan.of_series(place, series).deviations(measure, series, windows)) is not None:
        squares = found**2
        near = int(np.argmin(np.abs(squares - squares.mean())))
        typical, last = (_half_widths(plan, place, series, int(ends[at]), over)[0] for at in (near, -1))
    share = None if typical is None or expected is None else typical / expected
    return {"half_width": typical, "half_width_last": last, "of_expected": share}


def _half_widths(plan: Plan, place: int, series: Series, end: int, of_cells: float | None = None) -> list[float]:
    """Return the half width of each component of the number that ends at a boundary, in the measure's units.

    With a strategy over cells, the number has the mean variance over the workload of the cells, or `of_cells`.
    """
    released = plan.publishing(place, series)
    strategy, merged, until = released.strategy, series.merged(released.leaf), end // released.leaf
    confidence = confidence_of(len(released.noise))
    stretch = strategy.stretch(strategy.nodes(until))
    gathered = released.over is not None and not released.over.trivial
    mean = 1.0 if released.over is None else released.over.average()
    over = math.sqrt(mean if of_cells is None else of_cells)
    found = []
    for noise, component in zip(released.noise, plan.demands[place].measure.components, strict=True):
        if stretch is not None:  # each node is a number
            half = widened(noise, stretch.tolist()[-1]).half_width(1, confidence)
        else:
            _, halves = (spreads_of_gathered if gathered else spreads)(
                noise,
                variances=strategy.variances(merged, until, since=until - 1),
                weights=lambda: strategy.weights(merged, until, since=until - 1),
                confidence=confidence,
            )
            half = float(halves[-1])
        found.append(half * over * component.grid)
    return found


def _entries(plan: Plan, place: int, series: Series, end: int, within: float, over: float | None) -> int:
    """Return the fewest entries with which the interval of a ratio is at most +- `within`, for all their values."""
    measure, widths = plan.demands[place].measure, _half_widths(plan, place, series, end, over)
    low, high = 0, 1
    while ratio_error(measure, widths, high) > within:
        low, high = high, 2 * high
    return last_holding(
        lambda entries: ratio_error(measure, widths, entries) <= within,
        high,
        low,
        near=lambda good, bad: good - bad <= 1,
        whole=True,
    )


def ratio_error(measure: Measure, widths: Sequence[float], entries: int) -> float:
    """Return the largest error of a ratio if no component's noise exceeds its half width.

    Args:
        measure: A mean, second moment or variance.
        widths: Half width of the noise of each component, the count first.
        entries: Number of entries that the ratio is over.

    With S the centred sum over n entries, |S / n| <= R, and noises z and y on S and n: the error is
    |z - (S / n) y| / (n + y) <= (h_z + R h_y) / (n - h_y). Of a variance, Q / n - (S / n)^2 with centred squares Q, by
    that of Q and by 2 R e + e^2 for an error e of S / n.

    >>> ratio_error(Measure(kind="mean", low=0, high=10), [5.0, 25.0], 105)
    0.5
    """
    count, *others = widths
    left = entries - count
    if left <= 0:
        return math.inf
    bounds = [max(abs(c.low), abs(c.high)) * c.grid for c in measure.components[1:]]
    errors = [(half + bound * count) / left for half, bound in zip(others, bounds, strict=True)]
    if measure.kind != "variance":
        return errors[0]
    return errors[1] + 2 * bounds[0] * errors[0] + errors[0] ** 2


def warnings(spec: Spec, plan: Plan, windows: int, accuracies: Sequence[Sequence[dict[str, Any]]]) -> Iterator[str]:
    """Yield a warning for each choice that protects little or wastes budget.

    Args:
        spec: The spec.
        plan: Its plan.
        windows: Number of windows over which errors are averaged.
        accuracies: For each query the result of `accuracy`.
    """
    epsilon, delta = spec.privacy.epsilon, spec.privacy.delta
    if epsilon > MUCH_EPSILON:
        odds = f"{math.exp(epsilon):,.0f}" if epsilon < 30 else f"10^{epsilon / math.log(10):.0f}"
        yield (
            f"privacy.epsilon: {epsilon:g} is above {MUCH_EPSILON:g}: published numbers may change odds by a factor of "
            f"{odds}, which protects almost nobody; take at most 5, better 1"
        )
    if delta > MUCH_DELTA:
        yield (
            f"privacy.delta: {delta:g} is above {MUCH_DELTA:g}: one in 1 / delta people may lose all protection; take "
            "a delta far below 1 / people, such as 1.0e-9"
        )
    constraint, last = spec.privacy.constraint, plan.promise.windows
    changes = constraint.changes if constraint.at_once is None else None
    if changes is not None and last is not None and changes > last + 1:
        yield (
            f"privacy.constraint.at_most: {changes} changes for {counted(windows, 'window')}: noise is the "
            f"same as for {windows + 1}; a smaller bound needs less noise"
        )
    expires, span = spec.changelog.source.expires, spec.privacy.protects.span
    if expires is not None and span is not None and span.length <= expires:
        length, state = duration_text(span.length), duration_text(expires)
        yield (
            f"privacy.protects.span: {length} is not longer than changelog.expires: a single event changes states for "
            f"{state}, which costs several times epsilon; to protect all events of any {length}, take a span of "
            f"{duration_text(span.length + expires)}"
        )
    continues = spec.schedule.until is None or spec.schedule.until > now()
    if spec.changelog.freshness is None and spec.changelog.shrink is None and continues:
        yield (
            "changelog.freshness: missing, so the clock alone decides when a window is over, and a stalled connector "
            "looks like a day without changes; add freshness: newer_file, or {file: ...} or {heartbeat: ...}"
        )
    for query, found in zip(spec.queries, accuracies, strict=True):
        yield from _of_query(query, found)


def _of_query(query: Query, found: Sequence[dict[str, Any]]) -> Iterator[str]:
    where = f"query {query.name}"
    low, high = query.measure.low, query.measure.high
    if query.measure.kind == "sum" and (low > high / 2 > 0 or high < low / 2 < 0):
        near = low if low > 0 else high
        yield (
            f"{where}: each value is {near:g} or more from zero, and noise is for the whole value: measure the mean, "
            f"or the sum of the differences from {near:g}, and count the entries"
        )
    for number in found:
        share, text = number.get("of_expected"), series_text(number)
        if share is not None and share >= 0.5:
            cells = (
                f" Use fewer and larger cells than {query.cells}"
                if query.cells > 1 and not query.discovers
                else " Use longer windows"
            )
            yield (
                f"{where}, {text}: mostly noise: the margin of error is {number['half_width']:.4g}, and "
                f"{query.expected:g} is expected.{cells} or a smaller contribution bound"
            )
