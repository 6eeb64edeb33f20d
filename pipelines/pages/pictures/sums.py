"""Errors of sums over boxes of cells, so that the page can state the interval of any box that a reader selects.

A sum over a box has the variance t c of a node, with t from the number's weights in time and c from the box
(privacy.answers.sums); the page has t of each window and c of each box. c is a product over the keys, or, under one
strategy for two keys, a table of all boxes. The half width of Laplace noise also depends on the spread of the weights:

- each cell has its own noise, and all nodes in time have one weight: as for a sum of samples, exactly;
- one key under a strategy: exactly, for the last windows, as far as `EXACT` boxes reach;
- otherwise the bound of `privacy.noise.mixed` for the spread, rounded down to one of `SPREADS`: up to 15 % wider than
  the interval of `slackwater answer`, and never narrower.

With Gaussian noise it is the same as that of `slackwater answer`.

All numbers are rounded up. This is post-processing: it reads the plan alone.
"""

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from pipelines.pages.numbers import Floats, Numbers
from pipelines.pages.pictures.base import Pictured
from pipelines.pages.pictures.grid import BoxGrid
from privacy.answers.in_time import NoiseInTime
from privacy.answers.ranges import half_widths
from privacy.cells.base import Along
from privacy.cells.boxes import Range, of_boxes
from privacy.cells.product import Product
from privacy.estimates import CONFIDENCE
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.mixed import half_width_by_spread
from privacy.noise.weighted import half_width
from privacy.planning.part import Part
from transforms.aggregation.queries import Query

SPREADS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 512)
"""Spreads of weights for which the page has half widths."""

SIZES, BOXES, EXACT = 3_000, 60_000, 1_000
"""Most numbers of cells, most boxes of one strategy for two keys, and most boxes of one key, with exact half widths."""

INTERVALS_OF_CELLS = "Only the cells have intervals here"


def unknown(subject: Pictured, numbers: Numbers) -> str | None:
    """Return why the interval of a sum over cells is unknown, as a sentence; None if it is known."""
    query, part = subject.query, _part(subject, numbers)
    if len(query.measure.components) > 1:
        return f"A {query.measure.kind} cannot be added up."
    if not can_be_added(subject):
        return "A unit can be in several cells, and a sum would count it several times."
    if subject.of:
        return f"{INTERVALS_OF_CELLS}: these numbers are sums themselves."
    if part.unsummed is not None:
        return f"{INTERVALS_OF_CELLS}: {part.unsummed}."
    if query.consistent and numbers.series.kind in ("level", "entered", "left"):
        return f"{INTERVALS_OF_CELLS}: `consistent` changes the noise of these numbers."
    return None


def can_be_added(subject: Pictured) -> bool:
    """Return whether a sum of cells is the number of these cells together."""
    measure = subject.query.measure
    return len(measure.components) == 1 and (not measure.distinct or subject.plan.promise.alone)


def _part(subject: Pictured, numbers: Numbers) -> Part:
    place = next(at for at, demand in enumerate(subject.plan.demands) if demand.name == subject.query.name)
    return subject.plan.of_series(place, numbers.series)


def _step(subject: Pictured) -> float:
    """Return the grid step of the noise, in the measure's units."""
    return next(one for one in subject.plan.demands if one.name == subject.query.name).measure.components[0].grid


def noise_of(subject: Pictured, numbers: Numbers) -> list[NoiseInTime | None]:
    """Return the noise of each number in time."""
    repeated = numbers.repeated
    sampled = [] if repeated is None else (~repeated).tolist()
    return _part(subject, numbers).noise_in_time(numbers.series, len(numbers.value), sampled)


def half_widths_of(subject: Pictured, numbers: Numbers, grid: BoxGrid, *, every: bool = False) -> Floats:
    """Return the half widths of all boxes of a grid, [numbers, boxes], in the measure's units.

    Args:
        subject: Numbers of a query with ordered keys.
        numbers: One series of it.
        grid: The boxes.
        every: Whether boxes add up all combinations of listed values, and not one of them.
    """
    boxes: list[list[Range | None]] = [[]]
    for bounds in grid.bounds:
        pairs = list(zip(bounds.tolist(), bounds[1:].tolist(), strict=False))
        boxes = [[*box, pair] for box in boxes for pair in pairs]
    of = of_boxes([_placed(subject.query, box, every) for box in boxes], _part(subject, numbers).along)
    step, unknown_ = _step(subject), np.full(len(boxes), np.nan)
    rows = [unknown_ if one is None else half_widths(*one, of, CONFIDENCE) * step for one in noise_of(subject, numbers)]
    return np.array(rows).reshape(-1, len(boxes))


def half_widths_within(subject: Pictured, numbers: Numbers, grid: BoxGrid, *, outside: bool) -> Floats:
    """Return the half widths of the sum of the cells of each choice, [numbers, choices], as `answer` does.

    Args:
        subject: Numbers of a query with ordered keys.
        numbers: One series of it.
        grid: The choices.
        outside: Whether only cells beyond the edges of the ordered keys are added up, and not all cells.

    Returns:
        Half widths in the measure's units; not a number if unknown.
    """
    query, found = subject.query, np.full((len(numbers.value), grid.count), np.nan)
    if unknown(subject, numbers) is not None or not len(numbers.value):
        return found
    names, sizes = [name for name, _ in query.by], [len(key) for _, key in query.by]
    ordered = [names.index(name) for name, _ in query.ordered]
    added = np.ones([sizes[at] for at in ordered])
    if outside:
        added[tuple(slice(1, -1) for _ in ordered)] = 0.0
    sampled, wanted = [] if numbers.repeated is None else (~numbers.repeated).tolist(), np.arange(len(numbers.value))
    part = _part(subject, numbers)
    choices = [*([slice(None)] if grid.summed else []), *grid.choices.tolist()]
    for place, choice in enumerate(choices):
        if place > grid.summed and not part.together:  # each cell has its own noise: single choices have the same
            found[:, place] = found[:, int(grid.summed)]
            continue
        chosen = np.zeros([math.prod(sizes) // added.size, *added.shape])
        chosen[choice] = added
        listed = [size for at, size in enumerate(sizes) if at not in ordered]
        weights = np.moveaxis(chosen.reshape([*listed, *added.shape]), range(-len(ordered), 0), ordered)
        found[:, place] = part.sum_errors(numbers.series, weights.ravel(), wanted, None, sampled)[1] * _step(subject)
    return found


def _placed(query: Query, box: Sequence[Range | None], every: bool) -> list[Range | None]:
    """Return the cells of a box along each key of a query; `every`: all listed values, otherwise None for any one."""
    sides = dict(zip([name for name, _ in query.ordered], box, strict=True))
    listed = {name: (0, len(values)) for name, values in query.listed} if every else {}
    return [(sides | listed).get(name) for name, _ in query.by]


class SumErrors:
    """What the page needs for the errors of sums over boxes of the cells of one query.

    Args:
        every: Whether boxes add up all combinations of listed values, and not one of them.

    Attributes:
        spaces: Variances of sums over boxes, for each strategy over cells.
        tables: Half widths by number of cells or by spread, for each kind of noise.
    """

    def __init__(self, subject: Pictured, grid: BoxGrid, *, every: bool = False) -> None:
        self.spaces: list[dict[str, Any]] = []
        self.tables: list[dict[str, Any]] = []
        self._subject, self._grid, self._every = subject, grid, every
        self._times = math.prod(len(values) for _, values in subject.query.listed) if every else 1
        self._of_along: list[Sequence[Along] | None] = []
        self._of_noise: list[tuple[object, ...]] = []
        self._left = EXACT

    def of_series(self, numbers: Numbers, last: slice) -> dict[str, Any]:
        """Return the errors of a series: its space, and the noise of each shown window; or why they are unknown.

        Args:
            numbers: The series.
            last: Which of its numbers the page shows.
        """
        why = unknown(self._subject, numbers)
        if why is not None:
            return {"why": why, "unsummed": not can_be_added(self._subject)}
        along = _part(self._subject, numbers).along
        if along not in self._of_along:
            self._of_along.append(along)
            self.spaces.append(_space(self._subject.query, self._grid, along, self._every, self._times))
        space = self._of_along.index(along)
        if not self.spaces[space]:
            return {"why": f"{INTERVALS_OF_CELLS}: those of sums would be too large for this page."}
        shown = list(enumerate(noise_of(self._subject, numbers)))[last]
        noise = [None if one is None else self._noise(numbers, at, one, along) for at, one in reversed(shown)]
        return {"space": space, "noise": noise[::-1]}

    def _noise(self, numbers: Numbers, window: int, one: NoiseInTime, along: Sequence[Along] | None) -> list[float]:
        """Return the place of a table, and the sum of the squares of weights and the share of the largest one."""
        distribution, weights = one
        boxes, samples = self._grid.shape[0] * (self._grid.shape[0] + 1) // 2, None
        key: tuple[object, ...] = (distribution,)
        if along is None and weights.weight is not None and not distribution.stable:
            samples = round(weights.squares / weights.weight**2)
            key = distribution, samples, weights.weight
        exact = along is not None and len(self._grid.shape) == 1 and not distribution.stable
        if exact and ((*key, weights) in self._of_noise or boxes <= self._left):
            key = (*key, weights)
        if key not in self._of_noise:
            self._of_noise.append(key)
            if weights in key:
                self._left -= boxes
                self.tables.append({"boxes": self._each_box(numbers, window)})
            else:
                self.tables.append(self._table(distribution, samples, weights.weight or 0.0))
        return [self._of_noise.index(key), _above(weights.squares), _above(weights.largest)]

    def _each_box(self, numbers: Numbers, window: int) -> list[float]:
        """Return the half width of each box of one key, in the measure's units, as `slackwater answer` does."""
        query, sampled = self._subject.query, [] if numbers.repeated is None else (~numbers.repeated).tolist()
        part, step, found = _part(self._subject, numbers), _step(self._subject), []
        for first, last in combinations(self._grid.bounds[0].tolist(), 2):
            chosen = np.zeros([len(key) for _, key in query.by])
            chosen[tuple(slice(*(side or (0, 1))) for side in _placed(query, [(first, last)], self._every))] = 1.0
            _, (half,) = part.sum_errors(numbers.series, chosen.ravel(), np.array([window]), None, sampled)
            found.append(_above(float(half) * step))
        return found

    def _table(self, distribution: NoiseDistribution, samples: int | None, weight: float) -> dict[str, Any]:
        """Return half widths in the measure's units: by number of cells, or for a variance of 1 by spread."""
        step = _step(self._subject)
        if distribution.stable:
            return {"spread": [[1, _above(step * half_width(distribution, np.ones(1), CONFIDENCE))]]}
        sizes = set() if samples is None else {one * self._times for one in _sizes(self._grid)}
        if sizes and samples and len(sizes) <= SIZES:
            each = {one: _above(step * weight * distribution.half_width(samples * one, CONFIDENCE)) for one in sizes}
            return {"exact": each}
        return {
            "spread": [[one, _above(step * half_width_by_spread(distribution, one, CONFIDENCE))] for one in SPREADS]
        }

    def document(self) -> dict[str, Any]:
        return {"spaces": self.spaces, "tables": self.tables}


def _sizes(grid: BoxGrid) -> set[int]:
    """Return how many cells boxes may have."""
    found = {1}
    for bounds in grid.bounds:
        lengths = {int(last - first) for first, last in combinations(bounds.tolist(), 2)}
        found = {one * length for one in found for length in lengths}
    return found


def _space(query: Query, grid: BoxGrid, along: Sequence[Along] | None, every: bool, times: int) -> dict[str, Any]:
    """Return the variances of boxes if a node has variance 1, and the share of the largest node; empty if too large.

    Args:
        query: The query.
        grid: Boxes of the page.
        along: Strategies over cells along the axes; None if each cell has its own noise.
        every: Whether boxes add up all combinations of listed values.
        times: Number of these combinations that a box adds up.
    """
    if along is None:
        return {"bounds": [one.tolist() for one in grid.bounds], "times": times}
    places, names, first = [], [name for name, _ in query.by], 0
    for one in along:
        places.append({name for name, _ in query.ordered} & set(names[first : first + len(one.shape)]))
        first += len(one.shape)
    if any(len(one) > 1 for one in places):
        return _at_once(query, grid, along, every)
    whole = of_boxes([_placed(query, [None] * len(grid.bounds), every)], along)
    axes = []
    for place, bounds in enumerate(grid.bounds):
        pairs = list(combinations(bounds.tolist(), 2))
        sides = [[pair if at == place else None for at in range(len(grid.bounds))] for pair in pairs]
        boxes = [_placed(query, side, every) for side in sides]
        found = of_boxes(boxes, along)
        squares = found.squares / (float(whole.squares[0]) if place else 1.0)
        largest = found.largest / (float(whole.largest[0]) if place else 1.0)
        axes.append({"squares": [*map(_above, squares)], "largest": [*map(_above, largest)]})
    return {"axes": axes}


def _at_once(query: Query, grid: BoxGrid, along: Sequence[Along], every: bool) -> dict[str, Any]:
    """Return the variances of all boxes of two keys under one strategy, which are sums of covariances of the cells."""
    rows, columns = grid.shape
    if rows * (rows + 1) * columns * (columns + 1) // 4 > BOXES:
        return {}
    cells = list(product(*(zip(one.tolist(), one[1:].tolist(), strict=False) for one in grid.bounds)))
    covariance = _covariance([_placed(query, box, every) for box in cells], query, along)
    table = covariance.reshape(rows, columns, rows, columns)
    for axis in range(4):
        table = np.insert(np.cumsum(table, axis=axis), 0, 0, axis=axis)
    tops, lefts = (np.array(list(combinations(range(size + 1), 2))) for size in (rows, columns))
    squares = np.zeros((len(tops), len(lefts)))
    for signs in product((0, 1), repeat=4):
        a, b, c, d = (part[:, at] for part, at in zip((tops, lefts, tops, lefts), signs, strict=True))
        squares += (-1) ** sum(signs) * table[a[:, None], b, c[:, None], d]
    return {"boxes": [*map(_above, squares.ravel())]}


def _covariance(boxes: Sequence[Sequence[Range | None]], query: Query, along: Sequence[Along]) -> Floats:
    """Return the covariances of sums over boxes, [boxes, boxes], at the first of the listed values."""
    shape = [len(key) for _, key in query.by]
    queries = np.zeros((len(boxes), *shape))
    for place, box in enumerate(boxes):
        queries[place][tuple(slice(*(side or (0, 1))) for side in box)] = 1.0
    flat = queries.reshape(len(boxes), -1)
    return flat @ Product(axes=tuple(along)).solve(flat).T


def _above(value: float) -> float:
    """Return a number of seven digits that is not smaller.

    >>> _above(1.0), _above(2 / 3), _above(117.50520978)
    (1.0, 0.6666667, 117.5053)
    """
    near = float(f"{value:.7g}")
    return near if near >= value else float(f"{value * (1 + 1e-6):.7g}")
