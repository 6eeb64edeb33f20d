"""Variances of sums over boxes of cells, and how much of each a single node contributes.

A box takes adjacent cells along each ordered axis, and one cell or all cells of each other axis. It is a linear query q
over cells, a product over the axes, and so are its weights g = S (S^T S)^-1 q under a product of strategies S
(privacy.answers.sums): squares of g multiply over the axes, and so do the shares of the largest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacy.cells.base import Along
from privacy.cells.sums import Floats, Ints

Range = tuple[int, int]
"""Cells along one axis: the first, and the one after the last."""

BLOCK = 2**22
"""Approximate size of the arrays that are solved for at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """Noise of sums, each attribute [sums], if the noise of a node over cells has variance 1.

    Attributes:
        squares: variance of each sum, float64 [sums].
        largest: largest share of that variance that one node has, float64 [sums].
        cells: number of cells that are added up, if each has its own noise; None under a strategy over cells.
    """

    squares: Floats
    largest: Floats
    cells: Ints | None = None


def of_boxes(boxes: Sequence[Sequence[Range | None]], axes: Sequence[Along] | None) -> Boxes:
    """Return the noise of sums over boxes.

    Args:
        boxes: cells of each box along each axis; None for one cell of an axis: the mean of all.
        axes: the strategy along each axis; None if each cell has its own noise.

    >>> found = of_boxes([[(0, 3), None], [(2, 12), None]], None)
    >>> found.squares.tolist(), found.largest.round(3).tolist()
    ([3.0, 10.0], [0.333, 0.1])
    """
    squares, largest = np.ones((2, len(boxes)))
    place = 0
    for along in (None,) * len(boxes[0]) if axes is None else axes:
        sides = 1 if along is None else len(along.shape)
        found = _of_sides([box[place : place + sides] for box in boxes], along)
        squares, largest, place = squares * found.squares, largest * found.largest, place + sides
    return Boxes(squares=squares, largest=largest, cells=squares.astype(np.int64) if axes is None else None)


def _of_sides(boxes: Sequence[Sequence[Range | None]], along: Along | None) -> Boxes:
    """Return the noise of the sides of boxes along the axes of one strategy."""
    if along is not None and len(along.shape) > 1:
        return _at_once(boxes, along)
    sides = [side for (side,) in boxes]
    kinds = sorted({side for side in sides if side is not None})
    found, cell = _along(kinds, along) if kinds else None, 1.0 if along is None else float(along.variances().mean())
    squares, largest = np.full(len(sides), cell), np.ones(len(sides))
    for place, side in enumerate(sides):
        if side is not None and found is not None:
            at = kinds.index(side)
            squares[place], largest[place] = found.squares[at], found.largest[at]
    return Boxes(squares=squares, largest=largest)


def _at_once(boxes: Sequence[Sequence[Range | None]], along: Along) -> Boxes:
    """Return the noise under one strategy for several axes, which treats all values of an unordered axis equally."""
    squares, largest = np.empty((2, len(boxes)))
    for place, box in enumerate(boxes):
        query = np.zeros(along.shape)
        query[tuple(slice(*((0, 1) if side is None else side)) for side in box)] = 1.0
        weights = along.spread(along.solve(query.ravel())) ** 2  # type: ignore[arg-type]
        squares[place], largest[place] = weights.sum(), weights.max()
    return Boxes(squares=squares, largest=largest / squares)


def _along(ranges: Sequence[Range], along: Along | None) -> Boxes:
    lengths = np.array([end - begin for begin, end in ranges], dtype=np.float64)
    if along is None:
        return Boxes(squares=lengths, largest=1 / lengths)
    squares, largest = np.empty((2, len(ranges)))
    rows = max(1, BLOCK // along.cells)
    for first in range(0, len(ranges), rows):
        some = slice(first, first + rows)
        weights = along.spread(along.solve(queries_of(ranges[some], along.cells))) ** 2  # type: ignore[arg-type]
        squares[some], largest[some] = weights.sum(axis=1), weights.max(axis=1)
    return Boxes(squares=squares, largest=largest / squares)


def queries_of(ranges: Sequence[Range], cells: int) -> Floats:
    """Return ranges as rows of ones and zeros, float64 [ranges, cells].

    >>> queries_of([(1, 3)], 4).tolist()
    [[0.0, 1.0, 1.0, 0.0]]
    """
    begins, ends = np.array(ranges).T[:, :, None]
    places: Ints = np.arange(cells)
    held: Floats = ((begins <= places) & (places < ends)).astype(np.float64)
    return held
