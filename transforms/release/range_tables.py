"""Published ranges: rows of `estimates` of their own, sums over neighbouring cells made from the noisy ones alone.

    query, kind (`level_range` and so on), window_start, window_end, <keys>, value, stddev, ci_low, ci_high

One row for each number, each range and each combination of listed values; an ordered key has the range as text, from
edge to edge: `[20, 65)`, `(-inf, 20)`, or `(-inf, inf)` where the range is of the other key alone.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privacy.answers.ranges import half_widths
from privacy.cells.boxes import Boxes, of_boxes
from privacy.cells.product import Product
from privacy.estimates import Estimates, confidence_of, estimate
from privacy.planning.plan import Released
from privacy.series import Series
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Box, Query
from transforms.release.in_time import in_time

RANGE = "range"
"""The end of the rows' kind."""


def range_kind(series: Series) -> str:
    """What the rows of ranges of a series are called.

    >>> range_kind(Series(kind="level"))
    'level_range'
    """
    return f"{series.kind}_{RANGE}"


def by_range(query: Query) -> Query:
    """The same with its ranges as cells: in the place of ordered keys one that lists them, and its listed keys."""
    labels = tuple(", ".join(texts.values()) for texts in range_labels(query))
    listed = tuple((name, key) for name, key in query.by if not isinstance(key, OrderedKey))
    return replace(query, by=((", ".join(name for name, _ in query.ordered), labels), *listed), quantiles=(), ranges=())


def range_labels(query: Query) -> list[dict[str, str]]:
    """For each range the text of each ordered key."""
    return [
        {name: key.range_label(*cells) for (name, key), cells in zip(query.ordered, one, strict=True)}
        for one in query.ranges
    ]


def range_estimates(
    series: Series, sums: Sequence[np.ndarray], aggregation: Aggregation, released: Released
) -> Estimates:
    """Of each new number, [numbers, ranges x combinations of listed values].

    Args:
        sums: noisy components of all cells, each [numbers, cells], in grid steps.
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
    """Of each range, where the noise of a node over cells has variance 1."""
    return of_boxes([_along_axes(box, query) for box in query.ranges], None if over is None else over.axes)


def _along_axes(box: Box, query: Query) -> list[tuple[int, int] | None]:
    cells = iter(box)
    return [next(cells) if isinstance(key, OrderedKey) else None for _, key in query.by]


def over_ranges(values: np.ndarray, query: Query) -> np.ndarray:
    """[numbers, cells] to sums, [numbers, ranges x combinations of listed values]."""
    grid = values.reshape(len(values), *(len(key) for _, key in query.by))
    places = tuple(place for place, (_, key) in enumerate(query.by, start=1) if isinstance(key, OrderedKey))
    found = [np.empty((len(values), 0), values.dtype)]
    for box in query.ranges:
        taken = [slice(None)] * grid.ndim
        for place, (first, last) in zip(places, box, strict=True):
            taken[place] = slice(first, last)
        sums = grid[tuple(taken)].sum(axis=places)
        found.append(sums.reshape(len(values), math.prod(sums.shape[1:])))
    return np.concatenate(found, axis=1)
