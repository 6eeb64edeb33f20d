"""Published ranges: separate rows of `estimates`, sums over adjacent cells made only from the noisy ones.

    query, kind (`level_range` and so on), window_start, window_end, <keys>, value, stddev, ci_low, ci_high

There is one row for each number, range and combination of listed values, also of those of marginals and of inner nodes
of hierarchies. An ordered key has the range as text, from
edge to edge: `[20, 65)`, `(-inf, 20)`, or `(-inf, inf)` if the range is one of the other key only.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privacy.estimates import Estimates
from privacy.planning.linear_part import LinearPart
from privacy.series import Series
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query
from transforms.release.marginal_tables import Marginal, Rows, estimates_of_rows, over_rows

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
    series: Series, sums: Sequence[np.ndarray], aggregation: Aggregation, released: LinearPart, marginal: Marginal
) -> Estimates:
    """Return the sums with their errors, [numbers, ranges x rows of a table over the listed keys].

    Args:
        series: The series.
        sums: Noisy components of all cells, each [numbers, cells], in grid steps.
        aggregation: The aggregation.
        released: Part of the plan.
        marginal: The table over the listed keys.
    """
    tables = ranges_over(aggregation.queries[released.query], marginal)
    return estimates_of_rows(series, sums, aggregation, released, tables)


def ranges_over(query: Query, marginal: Marginal) -> list[Rows]:
    """Return the rows of each range of a query, over a table of its listed keys."""
    places = {name: place for place, (name, _) in enumerate(query.ordered)}
    return [
        tuple(
            box[places[name]] if name in places else level
            for (name, _), level in zip(query.by, marginal.levels, strict=True)
        )
        for box in query.ranges
    ]


def over_ranges(values: np.ndarray, query: Query, marginal: Marginal) -> np.ndarray:
    """Return sums over ranges, [numbers, ranges x rows of the marginal], of values [numbers, cells]."""
    return np.concatenate([over_rows(values, query, one) for one in ranges_over(query, marginal)], axis=1)
