"""Published marginals and inner nodes of hierarchies: separate rows of `estimates`, made only from the noisy cells.

    query, kind (`level_marginal` and so on), window_start, window_end, <keys>, value, stddev, ci_low, ci_high

There is one row for each number, marginal and combination of values of the keys that the marginal keeps. The keys that
it adds up over have the text `all`. A key with a hierarchy has the name of an inner node, and `all` for its root.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import cast

import numpy as np

from privacy.answers.ranges import half_widths
from privacy.cells.base import Along
from privacy.cells.boxes import BLOCK, Boxes, Range, of_boxes
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

Rows = tuple[int | Range | None, ...]
"""Rows of a table along each key: 0 for its values, a higher level of its hierarchy, a range, or None for their sum."""


@dataclass(frozen=True, slots=True)
class Marginal:
    """A published table of sums over the cells of a query.

    Attributes:
        levels: For each key 0 for its values, or a higher level of its hierarchy; None for a key that it adds up over.
    """

    levels: tuple[int | None, ...]


def marginals_of(query: Query) -> tuple[Marginal, ...]:
    """Return the published marginals of a query, with all levels of the hierarchies of the keys that they keep.

    The root of a hierarchy is the sum over its key, so that each table is there once. The cells are not among them.
    """
    every, found = [name for name, _ in query.by], list[Marginal]()
    for kept in (*query.marginals, every):
        levels = [[*_levels(query, name)] if name in kept else [None] for name in every]
        found += [Marginal(one) for one in product(*levels) if any(level != 0 for level in one)]
    return tuple(dict.fromkeys(found))


def over_listed(query: Query) -> tuple[Marginal, ...]:
    """Return the tables over keys without an order that have ranges and quantiles, the cells first."""
    ordered = [name in dict(query.ordered) for name, _ in query.by]
    levels = [tuple(0 for _ in ordered), *(marginal.levels for marginal in marginals_of(query))]
    found = (tuple(0 if fixed else level for fixed, level in zip(ordered, one, strict=True)) for one in levels)
    return tuple(dict.fromkeys(map(Marginal, found)))


def marginal_kind(series: Series) -> str:
    """Return the kind of the rows of marginals of a series.

    >>> marginal_kind(Series(kind="level"))
    'level_marginal'
    """
    return f"{series.kind}_{MARGINAL}"


def marginal_name(query: Query, marginal: Marginal) -> str:
    """Return the name of a marginal for readers, such as `by region and sex` or `total`; empty for the cells."""
    if not any(level != 0 for level in marginal.levels):
        return ""
    keys = [
        f"level {level} of {name}" if level else name
        for (name, _), level in zip(query.by, marginal.levels, strict=True)
        if level is not None
    ]
    return f"by {' and '.join(keys)}" if keys else "total"


def listed_name(query: Query, marginal: Marginal) -> str:
    """Return the name of a table over the keys without an order, as `over_listed` has it; empty for the cells."""
    ordered = dict(query.ordered)
    levels = (None if name in ordered else level for (name, _), level in zip(query.by, marginal.levels, strict=True))
    return marginal_name(
        query, Marginal(tuple(levels)) if any(marginal.levels) or None in marginal.levels else marginal
    )


def by_marginal(query: Query, marginal: Marginal) -> Query:
    """Return the query with the rows of a marginal as cells: keys that it adds up over have the one value `all`."""
    by = []
    for (name, key), level in zip(query.by, marginal.levels, strict=True):
        upper = _level(query, name, level)
        by.append((name, (ALL,) if level is None else key if upper is None else upper.names))
    return replace(query, by=tuple(by), marginals=(), hierarchies=())


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
    rows = estimates_of_rows(series, sums, aggregation, released, [marginal.levels])
    if not made_consistent(query, series):
        return rows
    return consistent(rows, lambda _: over_rows(cells, query, marginal.levels))


def estimates_of_rows(
    series: Series, sums: Sequence[np.ndarray], aggregation: Aggregation, released: LinearPart, tables: Sequence[Rows]
) -> Estimates:
    """Return sums over cells with their errors, [numbers, rows of the first table, of the next one, and so on].

    Args:
        series: The series.
        sums: Noisy components of all cells, each [numbers, cells], in grid steps.
        aggregation: The aggregation.
        released: Part of the plan.
        tables: Tables of alike rows: they differ in ranges only.
    """
    query = aggregation.queries[released.query]
    of = noise_of_rows(query, released.over, tables)
    confidence, deviations, widths = confidence_of(len(released.noise)), [], []
    for component in range(len(released.noise)):
        found = in_time(series, aggregation, released, component)
        deviation, width = np.empty((2, len(found), len(of.squares)))
        for number, (noise, weights) in enumerate(found):
            deviation[number] = np.sqrt(noise.variance * weights.squares * of.squares)
            width[number] = half_widths(noise, weights, of, confidence)
        deviations.append(deviation)
        widths.append(width)
    rows = [np.concatenate([over_rows(each, query, one) for one in tables], axis=1) for each in sums]
    return estimate(query.measure, rows, deviations, widths)


def noise_of_rows(query: Query, over: Product | None, tables: Sequence[Rows], *, without: str | None = None) -> Boxes:
    """Return the noise of the rows of tables, or of one row if all are equal, if a node over cells has variance 1.

    Args:
        query: The query.
        over: Its strategy over cells; None if each cell has separate noise.
        tables: Tables of alike rows: they differ in ranges only.
        without: Key whose part of the noise is left out.
    """
    over = None if over is None or over.trivial else over
    squares, largest = np.ones((2, len(tables), 1))
    axes, place = (None,) * len(query.by) if over is None else over.axes, 0
    for along in axes:
        keys = slice(place, place + (1 if along is None else len(along.shape)))
        place = keys.stop
        if query.by[keys][0][0] == without:
            continue
        found = _noise_along(query, along, keys, tables)
        squares, largest = (
            (before[:, :, None] * np.reshape(after, (len(after), 1, -1))).reshape(len(tables), -1)
            for before, after in ((squares, found.squares), (largest, found.largest))
        )
    squares, largest = squares.ravel(), largest.ravel()
    if (squares == squares[0]).all() and (largest == largest[0]).all():
        squares, largest = squares[:1], largest[:1]
    return Boxes(squares=squares, largest=largest, cells=squares.astype(np.int64) if over is None else None)


def _noise_along(query: Query, along: Along | None, keys: slice, tables: Sequence[Rows]) -> Boxes:
    """Return the noise of rows along the keys of one strategy, [tables or 1, rows]."""
    first, sizes = tables[0][keys], [len(key) for _, key in query.by[keys]]
    if len(first) == 1 and isinstance(first[0], int):
        cells, level = along is None, _level(query, query.by[keys][0][0], first[0])
        if level is None:
            squares = np.ones(sizes[0]) if along is None else along.variances()
            return Boxes(squares=squares[None], largest=_largest(along, range(sizes[0]), range(1, sizes[0] + 1)))
        if cells:
            squares = np.subtract(level.ends, level.begins).astype(np.float64)
            return Boxes(squares=squares[None], largest=1 / squares[None])
        squares = cast(Nested, along).of_layer(first[0])[list(level.places)]  # a plan has the axes of its queries
        return Boxes(squares=squares[None], largest=_largest(along, level.begins, level.ends))
    found = _of_boxes(along, tuple(tuple(map(_side, table[keys], sizes)) for table in tables))
    rows = math.prod(size for level, size in zip(first, sizes, strict=True) if level == 0)
    return Boxes(squares=found.squares[:, None].repeat(rows, 1), largest=found.largest[:, None].repeat(rows, 1))


def _largest(along: Along | None, begins: Sequence[int], ends: Sequence[int]) -> np.ndarray:
    """Return a bound on the largest share of one node in sums of neighbours, [1, sums]: 1 if it takes long to compute.

    Args:
        along: Strategy along an axis; None if each cell has separate noise.
        begins, ends: First cell of each sum, and the cell after the last one.
    """
    if along is None or along.trivial or len(begins) * along.cells > BLOCK:
        return np.ones((1, len(begins)))
    ranges = zip(map(int, begins), map(int, ends), strict=True)
    return _of_boxes(along, tuple((one,) for one in ranges)).largest[None]


@lru_cache(maxsize=256)
def _of_boxes(along: Along | None, boxes: tuple[tuple[Range | None, ...], ...]) -> Boxes:
    return of_boxes(boxes, None if along is None else [along])


def _side(level: int | Range | None, size: int) -> Range | None:
    """Return the cells of a row along a key; None for one of its values."""
    return (0, size) if level is None else None if isinstance(level, int) else level


def over_rows(values: np.ndarray, query: Query, rows: Rows) -> np.ndarray:
    """Return the rows of a table, [numbers, rows], of values [numbers, cells]."""
    grid = values.reshape(len(values), *(len(key) for _, key in query.by))
    for place, ((name, key), level) in enumerate(zip(query.by, rows, strict=True), start=1):
        if level == 0:
            continue
        if (upper := _level(query, name, level)) is not None:
            before = np.insert(np.cumsum(grid, axis=place), 0, 0, axis=place)
            grid = before.take(upper.ends, axis=place) - before.take(upper.begins, axis=place)
        else:
            begin, end = (0, len(key)) if level is None else cast(Range, level)
            grid = np.moveaxis(grid, place, 0)[begin:end].sum(axis=0, keepdims=True)
            grid = np.moveaxis(grid, 0, place)
    return grid.reshape(len(values), math.prod(grid.shape[1:]))


def weights_over_cells(weights: np.ndarray, query: Query, tables: Sequence[Rows]) -> np.ndarray:
    """Return the weights of cells, [cells], with which they have the weighted sum of the rows of tables.

    Args:
        weights: Weight of each row of the first table, of the next one, and so on.
        query: The query with the cells.
        tables: The tables; their rows are `over_rows` of the cells.
    """
    found, place = np.zeros([len(key) for _, key in query.by]), 0
    for rows in tables:
        levels = [_level(query, name, level) for (name, _), level in zip(query.by, rows, strict=True)]
        shape = [
            len(key) if level == 0 else 1 if nodes is None else len(nodes.names)
            for (_, key), level, nodes in zip(query.by, rows, levels, strict=True)
        ]
        grid = weights[place : place + math.prod(shape)].reshape(shape)
        place += grid.size
        for axis, ((_, key), level, nodes) in enumerate(zip(query.by, rows, levels, strict=True)):
            if level == 0:
                continue
            begins, ends = ([0], [len(key)]) if nodes is None else (nodes.begins, nodes.ends)
            if isinstance(level, tuple):
                begins, ends = [level[0]], [level[1]]
            taken = np.zeros((len(begins), len(key)))
            for row, (begin, end) in enumerate(zip(begins, ends, strict=True)):
                taken[row, begin:end] = 1.0
            grid = np.moveaxis(np.tensordot(grid, taken, axes=(axis, 0)), -1, axis)
        found += grid
    return found.ravel()


def _levels(query: Query, name: str) -> list[int | None]:
    """Return the levels of a key, from its values up; None for the sum over them, if they have a root."""
    found: list[int | None] = [0]
    for level, nodes in enumerate(dict(query.hierarchies)[name].levels if name in dict(query.hierarchies) else (), 1):
        found.append(None if nodes.names == (ALL,) else level)
    return found


def _level(query: Query, name: str, level: int | Range | None) -> Level | None:
    """Return a level of the hierarchy of a key; None for its values, a range, or their sum."""
    return dict(query.hierarchies)[name].levels[level - 1] if isinstance(level, int) and level else None
