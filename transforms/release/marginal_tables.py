"""Published marginals and inner nodes of hierarchies: separate rows of `estimates`, made only from the noisy cells.

    query, kind (`level_marginal` and so on), window_start, window_end, <keys>, value, stddev, ci_low, ci_high

There is one row for each number, marginal and combination of values of the keys that the marginal keeps. The keys that
it adds up over have the text `all`. A key with a hierarchy has the name of an inner node, and `all` for its root.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np

from privacy.answers.ranges import half_widths
from privacy.cells.boxes import Boxes, Range, of_boxes
from privacy.cells.nested import Nested
from privacy.cells.product import Product
from privacy.consistency import consistent
from privacy.estimates import Estimates, confidence_of, estimate
from privacy.planning.linear_part import LinearPart
from privacy.series import Series
from transforms.aggregation.hierarchy_key import Level
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query
from transforms.release.estimated_numbers import made_consistent
from transforms.release.in_time import in_time

MARGINAL = "marginal"
"""Ending of the rows' kind."""

ALL = "all"
"""Value of the keys that a marginal adds up over."""


@dataclass(frozen=True, slots=True)
class Marginal:
    """A published table of sums over the cells of a query.

    Attributes:
        kept: Keys whose values it has; it adds up over the others.
        level: Level of the hierarchy of a key that takes the place of its values; 0: the values.
    """

    kept: tuple[str, ...]
    level: int = 0


def marginals_of(query: Query) -> tuple[Marginal, ...]:
    """Return the published marginals of a query, and all levels of its hierarchy, from the deepest one up."""
    found = tuple(Marginal(kept) for kept in query.marginals)
    if query.hierarchy is None:
        return found
    every = tuple(name for name, _ in query.by)
    return found + tuple(Marginal(every, level) for level in range(1, len(query.hierarchy[1].levels) + 1))


def marginal_kind(series: Series) -> str:
    """Return the kind of the rows of marginals of a series.

    >>> marginal_kind(Series(kind="level"))
    'level_marginal'
    """
    return f"{series.kind}_{MARGINAL}"


def marginal_name(query: Query, marginal: Marginal) -> str:
    """Return the name of a marginal for readers, such as `by region and sex` or `total`."""
    keys = list(marginal.kept)
    if (level := _level(query, marginal)) is not None and query.hierarchy is not None:
        name = query.hierarchy[0]
        keys = [f"level {marginal.level} of {key}" if key == name else key for key in keys]
        if level.names == (ALL,):
            keys = [key for key in marginal.kept if key != name]
    return f"by {' and '.join(keys)}" if keys else "total"


def by_marginal(query: Query, marginal: Marginal) -> Query:
    """Return the query with the rows of a marginal as cells: keys that it adds up over have the one value `all`."""
    level, by = _level(query, marginal), []
    for name, key in query.by:
        upper = level is not None and query.hierarchy is not None and name == query.hierarchy[0]
        by.append((name, level.names if upper and level else key if name in marginal.kept else (ALL,)))
    return replace(query, by=tuple(by), marginals=(), hierarchy=None)


def marginal_estimates(
    series: Series,
    sums: Sequence[np.ndarray],
    aggregation: Aggregation,
    released: LinearPart,
    marginal: Marginal,
    cells: np.ndarray,
) -> Estimates:
    """Return the sums of a marginal with their errors, [numbers, rows of the marginal].

    If the cells were made consistent, the rows are their sums. Their intervals are as wide as before and contain them.

    Args:
        series: The series.
        sums: Noisy components of all cells, each [numbers, cells], in grid steps.
        aggregation: The aggregation.
        released: Part of the plan.
        marginal: The marginal.
        cells: Published numbers of the cells, [numbers, cells].
    """
    query = aggregation.queries[released.query]
    of = noise_of_marginal(query, released.over, marginal)
    confidence, deviations, widths = confidence_of(len(released.noise)), [], []
    for component in range(len(released.noise)):
        found = in_time(series, aggregation, released, component)
        deviation, width = np.empty((2, len(found), len(of.squares)))
        for number, (noise, weights) in enumerate(found):
            deviation[number] = np.sqrt(noise.variance * weights.squares * of.squares)
            width[number] = half_widths(noise, weights, of, confidence)
        deviations.append(deviation)
        widths.append(width)
    rows = estimate(query.measure, [over_marginal(each, query, marginal) for each in sums], deviations, widths)
    return consistent(rows, lambda _: over_marginal(cells, query, marginal)) if made_consistent(query, series) else rows


def noise_of_marginal(query: Query, over: Product | None, marginal: Marginal) -> Boxes:
    """Return the noise of each row, or of one if all are equal, if the noise of a node over cells has variance 1."""
    over = None if over is None or over.trivial else over
    level = _level(query, marginal)
    if level is None:
        return _noise(over, box_of(query, marginal.kept))
    assert query.hierarchy is not None
    place = [name for name, _ in query.by].index(query.hierarchy[0])
    shape = [len(level.names) if at == place else len(key) for at, (_, key) in enumerate(query.by)]
    along = [-1 if at == place else 1 for at in range(len(shape))]
    if over is None:
        cells = np.subtract(level.ends, level.begins).reshape(along) * np.ones(shape, dtype=np.int64)
        squares = cells.ravel().astype(np.float64)
        return Boxes(squares=squares, largest=1 / squares, cells=cells.ravel())
    axis = cast(Nested, over.axes[place])  # a plan has the same axes as its queries
    others = math.prod(float(one.variances()[0]) for at, one in enumerate(over.axes) if at != place)
    squares = (axis.of_layer(marginal.level)[list(level.places)].reshape(along) * others * np.ones(shape)).ravel()
    return Boxes(squares=squares, largest=np.ones(len(squares)))


def box_of(query: Query, kept: Sequence[str]) -> tuple[Range | None, ...]:
    """Return the cells of a row of a marginal along each key: None for any one cell of a key that it keeps."""
    return tuple(None if name in kept else (0, len(key)) for name, key in query.by)


@lru_cache(maxsize=256)
def _noise(over: Product | None, box: tuple[Range | None, ...]) -> Boxes:
    return of_boxes([box], None if over is None else over.axes)


def over_marginal(values: np.ndarray, query: Query, marginal: Marginal) -> np.ndarray:
    """Return the rows of a marginal, [numbers, rows], of values [numbers, cells]."""
    grid, level = values.reshape(len(values), *(len(key) for _, key in query.by)), _level(query, marginal)
    added = tuple(place for place, (name, _) in enumerate(query.by, start=1) if name not in marginal.kept)
    if level is not None and query.hierarchy is not None:
        place = 1 + [name for name, _ in query.by].index(query.hierarchy[0])
        before = np.insert(np.cumsum(grid, axis=place), 0, 0, axis=place)
        grid = before.take(level.ends, axis=place) - before.take(level.begins, axis=place)
    found: np.ndarray = grid.sum(axis=added).reshape(len(values), by_marginal(query, marginal).cells)
    return found


def _level(query: Query, marginal: Marginal) -> Level | None:
    """Return the level of the query's hierarchy that a marginal has; None: its values, or none of them."""
    return query.hierarchy[1].levels[marginal.level - 1] if query.hierarchy is not None and marginal.level else None
