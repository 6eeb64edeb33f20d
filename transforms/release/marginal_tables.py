"""Published marginals: separate rows of `estimates`, sums over listed keys made only from the noisy cells.

    query, kind (`level_marginal` and so on), window_start, window_end, <keys>, value, stddev, ci_low, ci_high

There is one row for each number, marginal and combination of values of the keys that the marginal keeps. The keys that
it adds up over have the text `all`.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from privacy.answers.ranges import half_widths
from privacy.cells.boxes import Boxes, Range, of_boxes
from privacy.cells.product import Product
from privacy.estimates import Estimates, confidence_of, estimate
from privacy.planning.linear_part import LinearPart
from privacy.series import Series
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query
from transforms.release.in_time import in_time

MARGINAL = "marginal"
"""Ending of the rows' kind."""

ALL = "all"
"""Value of the keys that a marginal adds up over."""

Marginal = tuple[str, ...]
"""Keys that a marginal keeps."""


def marginal_kind(series: Series) -> str:
    """Return the kind of the rows of marginals of a series.

    >>> marginal_kind(Series(kind="level"))
    'level_marginal'
    """
    return f"{series.kind}_{MARGINAL}"


def marginal_name(marginal: Marginal) -> str:
    """Return the name of a marginal for readers.

    >>> marginal_name(("region", "sex")), marginal_name(())
    ('by region and sex', 'total')
    """
    return f"by {' and '.join(marginal)}" if marginal else "total"


def by_marginal(query: Query, marginal: Marginal) -> Query:
    """Return the query with the rows of a marginal as cells: keys that it adds up over have the one value `all`."""
    by = tuple((name, key if name in marginal else (ALL,)) for name, key in query.by)
    return replace(query, by=by, marginals=())


def marginal_estimates(
    series: Series, sums: Sequence[np.ndarray], aggregation: Aggregation, released: LinearPart, marginal: Marginal
) -> Estimates:
    """Return the sums of a marginal with their errors, [numbers, rows of the marginal].

    Args:
        series: The series.
        sums: Noisy components of all cells, each [numbers, cells], in grid steps.
        aggregation: The aggregation.
        released: Part of the plan.
        marginal: Keys that the marginal keeps.
    """
    query = aggregation.queries[released.query]
    of = noise_of_marginal(query, released.over, marginal)
    confidence, deviations, widths = confidence_of(len(released.noise)), [], []
    for component in range(len(released.noise)):
        found = in_time(series, aggregation, released, component)
        deviation, width = np.empty((2, len(found)))
        for number, (noise, weights) in enumerate(found):
            deviation[number] = np.sqrt(noise.variance * weights.squares * of.squares[0])
            width[number] = half_widths(noise, weights, of, confidence)[0]
        deviations.append(deviation)
        widths.append(width)
    return estimate(query.measure, [over_marginal(each, query, marginal) for each in sums], deviations, widths)


def noise_of_marginal(query: Query, over: Product | None, marginal: Marginal) -> Boxes:
    """Return the noise of a row, the same for all rows, if the noise of a node over cells has variance 1."""
    return _noise(None if over is None or over.trivial else over, box_of(query, marginal))


def box_of(query: Query, marginal: Marginal) -> tuple[Range | None, ...]:
    """Return the cells of a row of a marginal along each key: None for any one cell of a key that it keeps."""
    return tuple(None if name in marginal else (0, len(key)) for name, key in query.by)


@lru_cache(maxsize=256)
def _noise(over: Product | None, box: tuple[Range | None, ...]) -> Boxes:
    return of_boxes([box], None if over is None else over.axes)


def over_marginal(values: np.ndarray, query: Query, marginal: Marginal) -> np.ndarray:
    """Return sums over the keys that a marginal does not keep, [numbers, rows], of values [numbers, cells]."""
    grid = values.reshape(len(values), *(len(key) for _, key in query.by))
    added = tuple(place for place, (name, _) in enumerate(query.by, start=1) if name not in marginal)
    found: np.ndarray = grid.sum(axis=added).reshape(len(values), by_marginal(query, marginal).cells)
    return found
