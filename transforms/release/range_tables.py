"""Published ranges: separate rows of `estimates`, sums over adjacent cells made only from the noisy ones.

    query, kind (`level_range` and so on), window_start, window_end, <keys>, value, stddev, ci_low, ci_high

There is one row for each number, range and combination of listed values. An ordered key has the range as text, from
edge to edge: `[20, 65)`, `(-inf, 20)`, or `(-inf, inf)` if the range is one of the other key only.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privacy.answers.ranges import half_widths
from privacy.cells.boxes import Boxes, of_boxes
from privacy.cells.product import Product
from privacy.estimates import Estimates, confidence_of, estimate
from privacy.planning.linear_part import LinearPart
from privacy.series import Series
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Box, Query
from transforms.release.in_time import in_time

RANGE = "range"
"""Ending of the rows' kind."""


def range_kind(series: Series) -> str:
    """Return the kind of the rows of ranges of a series.

    >>> range_kind(Series(kind="level"))
    'level_range'
    """
    return f"{series.kind}_{RANGE}"


def by_range(query: Query) -> Query:
    """Return the query with its ranges as cells: a key that lists them replaces the ordered keys."""
    labels = tuple(", ".join(texts.values()) for texts in range_labels(query))
    ordered = ", ".join(name for name, _ in query.ordered)
    return replace(query, by=((ordered, labels), *query.listed), quantiles=(), ranges=())


def range_labels(query: Query) -> list[dict[str, str]]:
    """Return for each range the text of each ordered key."""
    return [
        {name: key.range_label(*cells) for (name, key), cells in zip(query.ordered, one, strict=True)}
        for one in query.ranges
    ]


def range_estimates(
    series: Series, sums: Sequence[np.ndarray], aggregation: Aggregation, released: LinearPart
) -> Estimates:
    """Return the sums with their errors, [numbers, ranges x combinations of listed values].

    Args:
        series: The series.
        sums: Noisy components of all cells, each [numbers, cells], in grid steps.
        aggregation: The aggregation.
        released: Part of the plan.
    """
    query = aggregation.queries[released.query]
    over = None if released.over is None or released.over.trivial else released.over
    of = noise_of_ranges(query, over)
    listed = by_range(query).cells // len(query.ranges)
    confidence, deviations, widths = confidence_of(len(released.noise)), [], []
    for component in range(len(released.noise)):
        found = in_time(series, aggregation, released, component)
        deviation, width = np.empty((2, len(found), len(query.ranges)))
        for number, (noise, weights) in enumerate(found):
            deviation[number] = np.sqrt(noise.variance * weights.squares * of.squares)
            width[number] = half_widths(noise, weights, of, confidence)
        deviations.append(np.repeat(deviation, listed, axis=1))
        widths.append(np.repeat(width, listed, axis=1))
    return estimate(query.measure, [over_ranges(component, query) for component in sums], deviations, widths)


def noise_of_ranges(query: Query, over: Product | None) -> Boxes:
    """Return the variance of the noise of each range if the noise of a node over cells has variance 1."""
    return of_boxes([_along_axes(box, query) for box in query.ranges], None if over is None else over.axes)


def _along_axes(box: Box, query: Query) -> list[tuple[int, int] | None]:
    cells = dict(zip(dict(query.ordered), box, strict=True))
    return [cells.get(name) for name, _ in query.by]


def over_ranges(values: np.ndarray, query: Query) -> np.ndarray:
    """Return sums over ranges, [numbers, ranges x combinations of listed values], of values [numbers, cells]."""
    grid = values.reshape(len(values), *(len(key) for _, key in query.by))
    places = tuple(place for place, axis in enumerate(query.axes, start=1) if axis.ordered)
    found = [np.empty((len(values), 0), values.dtype)]
    for box in query.ranges:
        taken = [slice(None)] * grid.ndim
        for place, (first, last) in zip(places, box, strict=True):
            taken[place] = slice(first, last)
        sums = grid[tuple(taken)].sum(axis=places)
        found.append(sums.reshape(len(values), math.prod(sums.shape[1:])))
    return np.concatenate(found, axis=1)
