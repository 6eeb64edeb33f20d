"""Sums over boxes of cells: for each its variance, and how far its weights are spread.

A box takes neighbouring cells along each ordered axis, and one cell of each of the others. It is a linear query q over
cells, a product over the axes, and so are its weights g = S (S^T S)^-1 q under a product of strategies S
(privacy.answers.sums): squares of g multiply over the axes, and so do the shares of the largest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacy.cells.along import Along
from privacy.cells.quadtree import Quadtree
from privacy.cells.sums import Floats, Ints

Range = tuple[int, int]
"""Cells along one axis: the first, and one past the last."""

BLOCK = 2**22
"""About so many numbers are solved for at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """The noise of some sums, where that of a node over cells has variance 1, [sums] each.

    Attributes:
        squares: its variance.
        largest: the largest share that one node has of that.
        cells: how many are added up, where each has noise of its own; None under a strategy over cells.
    """

    squares: Floats
    largest: Floats
    cells: Ints | None = None


def of_boxes(boxes: Sequence[Sequence[Range | None]], axes: Sequence[Along] | None) -> Boxes:
    """Of sums over boxes.

    Args:
        boxes: for each its cells along each axis; None for one cell of an axis, whichever, as all are alike there.
        axes: the strategy along each; None if each cell has noise of its own.

    >>> found = of_boxes([[(0, 3), None], [(2, 12), None]], None)
    >>> found.squares.tolist(), found.largest.round(3).tolist()
    ([3.0, 10.0], [0.333, 0.1])
    """
    if axes is not None and isinstance(axes[0], Quadtree):
        return _at_once(boxes, axes[0])
    squares, largest = np.ones((2, len(boxes)))
    for place in range(len(boxes[0])):
        asked = [box[place] for box in boxes]
        along = None if axes is None else axes[place]
        if asked[0] is None:
            squares *= 1.0 if along is None else float(along.variances()[0])
            continue
        kinds = sorted({one for one in asked if one is not None})
        found = _along(kinds, along)
        at = [kinds.index(one) for one in asked if one is not None]
        squares, largest = squares * found.squares[at], largest * found.largest[at]
    return Boxes(squares=squares, largest=largest, cells=squares.astype(np.int64) if axes is None else None)


def _at_once(boxes: Sequence[Sequence[Range | None]], tree: Quadtree) -> Boxes:
    """Under one strategy for all axes; values of those without an order have trees that are alike."""
    squares, largest = np.empty((2, len(boxes)))
    for place, box in enumerate(boxes):
        query = np.zeros(tree.shape)
        query[tuple(slice(*((0, 1) if side is None else side)) for side in box)] = 1.0
        weights = tree.spread(tree.solve(query.ravel())) ** 2  # type: ignore[arg-type]
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
    """As rows of ones and zeros, [ranges, cells].

    >>> queries_of([(1, 3)], 4).tolist()
    [[0.0, 1.0, 1.0, 0.0]]
    """
    begins, ends = np.array(ranges).T[:, :, None]
    places: Ints = np.arange(cells)
    held: Floats = ((begins <= places) & (places < ends)).astype(np.float64)
    return held
