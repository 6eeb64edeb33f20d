"""Cells of ordered keys as a page has them: listed keys first, adjacent cells merged if they are too many."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.pages.numbers import Floats, Numbers
from pipelines.pages.pictures.base import Pictured
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query
from transforms.release.marginal_tables import ALL

Ints = NDArray[np.int64]

ALONG, OVER = 200, 2_500
"""Most cells along one ordered key, and most cells of two, for each combination of listed values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxGrid:
    """Boxes of adjacent cells of a query, for each combination of listed values.

    Attributes:
        query: The query.
        choices: Combinations of listed values, as places among all of them, int64 [choices].
        bounds: For each ordered key the first cell of each box, and the end of the last one, int64 [boxes + 1].
        summed: Whether the sum over all combinations of listed values is a further choice, the first one.
    """

    query: Query
    choices: Ints
    bounds: tuple[Ints, ...]
    summed: bool = False

    @property
    def count(self) -> int:
        """Number of choices."""
        return len(self.choices) + self.summed

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of boxes along each ordered key."""
        return tuple(len(one) - 1 for one in self.bounds)

    @property
    def merged(self) -> int:
        """Largest number of cells that one box merges along a key."""
        return max(int(np.diff(one).max()) for one in self.bounds)

    def sums(self, values: Floats) -> Floats:
        """Return the sums of boxes, [numbers, choices x boxes], of values [numbers, cells]."""
        names, kept = [name for name, _ in self.query.by], [name for name, _ in self.query.ordered]
        last = [1 + names.index(name) for name in kept]
        grid = values.reshape(len(values), *(len(key) for _, key in self.query.by))
        grid = np.moveaxis(grid, last, range(-len(last), 0))
        combinations = math.prod(len(listed) for _, listed in self.query.listed)
        grid = grid.reshape(len(values), combinations, *grid.shape[-len(last) :])
        whole = [grid.sum(axis=1, keepdims=True)] if self.summed else []
        grid = np.concatenate([*whole, grid[:, self.choices]], axis=1)
        for axis, bounds in enumerate(self.bounds, start=2):
            if self.merged > 1:
                grid = np.add.reduceat(grid, bounds[:-1], axis=axis)
        return grid.reshape(len(values), self.count * math.prod(self.shape))

    def labels(self) -> list[list[str]]:
        """Return the value of each key, listed ones first, of each choice and box."""
        boxes: list[list[str]] = [[]]
        for (_, key), bounds in zip(self.query.ordered, self.bounds, strict=True):
            along = box_labels(key, bounds)
            boxes = [[*before, one] for before in boxes for one in along]
        return [[*choice, *box] for choice in self.choice_labels() for box in boxes]

    def choice_labels(self) -> list[list[str]]:
        """Return the listed values of each choice; of the sum over all of them, `ALL` for each key."""
        found: list[list[str]] = [[ALL] * len(self.query.listed)] if self.summed else []
        sizes = [len(values) for _, values in self.query.listed]
        for choice in self.choices.tolist():
            at = np.unravel_index(choice, sizes) if sizes else ()
            found.append([str(values[place]) for (_, values), place in zip(self.query.listed, at, strict=True)])
        return found

    def document(self) -> dict[str, Any]:
        """Return the axes and choices for the script."""
        return {
            "axes": [
                {
                    "key": name,
                    "labels": box_labels(key, bounds),
                    "edges": _edges(key, bounds),
                    "texts": [key.text(int(bound) - 1) for bound in bounds[1:-1]],
                }
                for (name, key), bounds in zip(self.query.ordered, self.bounds, strict=True)
            ],
            "choices": self.choice_labels(),
            "merged": self.merged,
            "summed": self.summed,
        }


def beyond(grid: BoxGrid) -> NDArray[np.bool_]:
    """Return which boxes of a choice are below or above the edges of a key, [boxes]."""
    inside = np.zeros(grid.shape, dtype=bool)
    inside[tuple(slice(1, -1) for _ in grid.shape)] = True
    return ~inside.ravel()


def box_labels(key: OrderedKey, bounds: Ints) -> list[str]:
    """Return the name of each box along a key."""
    if len(bounds) == len(key) + 1:
        return [str(one) for one in key.labels(0, len(key)).to_pylist()]
    return [key.range_label(first, last) for first, last in zip(bounds.tolist(), bounds[1:].tolist(), strict=False)]


def _edges(key: OrderedKey, bounds: Ints) -> list[float]:
    """Return the edges of inner boxes; moments in milliseconds."""
    edges = key.edges(0, key.steps + 1)[bounds[1:-1] - 1]
    return (edges / 1000 if key.moments else edges).tolist()


def grid_of(subject: Pictured, room: int, *, summed: bool = False) -> BoxGrid | None:
    """Return the boxes that a page shows; None if they must merge cells that cannot be added up.

    Args:
        subject: Numbers of a query with ordered keys.
        room: Most boxes of one window, over all combinations of listed values.
        summed: Whether the sum over all listed values has known intervals.
    """
    query = subject.query
    lengths, listed = [len(key) for _, key in query.ordered], math.prod(len(values) for _, values in query.listed)
    most = max(1, min(ALONG if len(lengths) == 1 else OVER, room))
    size = 1
    while math.prod(2 + -(-(length - 2) // size) for length in lengths) > most and size < max(lengths):
        size += 1
    if size > 1 and len(query.measure.components) > 1:
        return None
    bounds = tuple(np.array([0, *range(1, length - 1, size), length - 1, length]) for length in lengths)
    grid = BoxGrid(query=query, choices=np.arange(listed), bounds=bounds, summed=summed and listed > 1)
    count = max(1, room // math.prod(grid.shape))
    if count >= listed:
        return grid
    sizes = grid.sums(np.abs(np.nan_to_num(_last(subject.numbers[0])))).reshape(grid.count, -1).sum(axis=1)
    return replace(grid, choices=np.sort(np.argsort(-sizes[int(grid.summed) :], kind="stable")[:count]))


def _last(numbers: Numbers) -> Floats:
    value = numbers.value[-1:]
    return value if len(value) else np.zeros((1, numbers.value.shape[1]))


def rounded_sums(values: Floats, shape: tuple[int, ...], digits: int) -> Floats:
    """Return values rounded so that the sum of any box of them is at most 2 units off: 1 unit along one key.

    Args:
        values: Numbers, [.., choices x boxes], float64; finite.
        shape: Number of boxes along each ordered key.
        digits: A unit is 10 ** -digits.

    >>> rounded_sums(np.array([[0.4, 0.4, 0.4, 0.4]]), (4,), 0).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    grid = values.reshape(*values.shape[:-1], values.shape[-1] // math.prod(shape), *shape) * 10.0**digits
    axes = range(-len(shape), 0)
    for axis in axes:
        grid = np.cumsum(grid, axis=axis)
    grid = np.rint(grid)
    for axis in axes:
        grid = np.diff(grid, axis=axis, prepend=0)
    found: Floats = grid.reshape(values.shape) / 10.0**digits
    return found
