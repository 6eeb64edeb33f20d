"""A kd-tree: regions of cells that are split where the data have their medians, privately, and a noisy count of each.

From the whole on each region is split along each ordered axis, `height` times over; where to split is chosen by the
exponential mechanism's better sibling (privacy.noise.choices), with the score

    -|sum of one side - sum of the other|        at each border between two cells of the region.

Then each region of each level gets a noisy count, `weights[l]` times. What is public of one histogram, its *sketch*, is
one array: all splits, then all noisy counts, level by level. Which regions there are follows from the splits before; a
region of one cell is not split any more and stands in the next level again. So every cell is in one region of each
level.

Sensitivity, for histograms that are r apart in L1: within one round of splits (all regions of a level along one axis)
regions share no cell, so with r_j of r in region j its scores move by at most r_j, in either direction. Counts of one
level move by r in all.

Weights are geometric along two axes (privacy.cells.quadtree). Along one axis a range ends in at most two regions of
each level, so all levels have the same.

Source: Cormode, Procopiuc, Srivastava, Shen, Yu, "Differentially Private Spatial Decompositions", ICDE 2012,
arXiv:1103.5170. A listed axis is never split: each of its values has a tree of its own.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from privacy.cells.quadtree import geometric
from privacy.cells.space import Space
from privacy.cells.sums import Ints
from privacy.checks import at_least, proportion

SPLITS = 0.3
"""Share of a sample's budget for splits, where the spec does not say (Cormode et al. 2012)."""

FEWEST = 16
"""Where the spec does not say, regions are split as long as they hold so many cells in the mean."""

HIGHEST = 6

FURTHEST = 1 << 46
"""The largest size of a score."""

Pick = Callable[[Ints], int]
"""Which of so many scores is chosen."""
Noise = Callable[[int], Ints]


@dataclass(frozen=True, slots=True)
class Regions:
    """Of one level; all are arrays, [regions]. `low` and `high` are the ends along the first and the second axis.

    Attributes:
        own: which of the trees it is in.
        parent: its place among the regions of the level before.
    """

    own: Ints
    low: tuple[Ints, Ints]
    high: tuple[Ints, Ints]
    parent: Ints

    def __len__(self) -> int:
        return len(self.own)

    @property
    def sizes(self) -> Ints:
        """Cells of each."""
        first, second = (high - low for low, high in zip(self.low, self.high, strict=True))
        sizes: Ints = first * second
        return sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class KdTree:
    """How regions are made, for all axes of a query at once.

    Attributes:
        shape: cells of each axis.
        ordered: whether regions are split along an axis, for each; one or two are.
        height: how often along each.
        weights: of the counts of each level, from the whole to the last regions.
        share: of a sample's budget, for splits.

    >>> tree = kdtree((6,), (True,), height=1, share=0.5)
    >>> tree.sketch(np.array([9, 9, 0, 0, 0, 1]), lambda scores: int(scores.argmax()),
    ...     lambda size: np.zeros(size, dtype=np.int64)).tolist()
    [0, 19, 9, 10]
    """

    shape: tuple[int, ...]
    ordered: tuple[bool, ...]
    height: int
    weights: tuple[int, ...]
    share: float

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.ordered) or sum(self.ordered) not in (1, 2) or min(self.shape) < 1:
            raise ValueError("a kdtree is over one or two ordered axes")
        at_least("height", self.height, 1)
        proportion("splits", self.share)
        if len(self.weights) != self.height + 1 or min(self.weights) < 1:
            raise ValueError(f"weights={self.weights}: one for each of {self.height + 1} levels")

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def rounds(self) -> int:
        """How many splits a cell is in."""
        return self.height * sum(self.ordered)

    @property
    def regions(self) -> int:
        """Of the last level, at most."""
        sizes = [size for size, split in zip(self.shape, self.ordered, strict=True) if split]
        trees = self.cells // math.prod(sizes)
        return trees * math.prod(min(2**self.height, size) for size in sizes)

    def prefixes(self, level: Ints) -> Ints:
        """Sums of [cells] from the first place on, [trees, 1 + first axis, 1 + second axis], modulo 2^64."""
        trees = self._trees(level)
        sums = np.zeros((len(trees), trees.shape[1] + 1, trees.shape[2] + 1), dtype=np.int64)
        np.cumsum(trees, axis=1, out=sums[:, 1:, 1:])
        np.cumsum(sums[:, 1:, 1:], axis=2, out=sums[:, 1:, 1:])
        return sums

    def sketch(self, level: Ints, pick: Pick, noise: Noise) -> Ints:
        """What a sample publishes of a histogram, [cells].

        Args:
            pick: chooses a split.
            noise: of so many counts.
        """
        sums, cuts, counts = self.prefixes(level), [], []

        def choose(regions: Regions, axis: int, place: int) -> int:
            cut = pick(_scores(sums, regions, axis, place))
            cuts.append(cut)
            return cut

        for weight, regions in zip(self.weights, self.levels(choose), strict=True):
            counts.append(weight * totals(sums, regions))
        exact = np.concatenate(counts)
        return np.concatenate([np.array(cuts, dtype=np.int64), exact + noise(len(exact))])

    def opened(self, sketch: Ints) -> tuple[list[Regions], list[Ints]]:
        """The regions of each level, and their noisy counts.

        Raises:
            ValueError: it is no sketch of this tree.
        """
        wrong, place = ValueError("a sketch of another kdtree"), 0

        def choose(regions: Regions, axis: int, at: int) -> int:
            nonlocal place
            if place >= len(sketch) or not 0 <= sketch[place] < regions.high[axis][at] - regions.low[axis][at] - 1:
                raise wrong
            place += 1
            return int(sketch[place - 1])

        levels = list(self.levels(choose))
        if len(sketch) - place != sum(map(len, levels)):
            raise wrong
        return levels, np.split(sketch[place:], np.cumsum([len(regions) for regions in levels])[:-1])

    def levels(self, choose: Callable[[Regions, int, int], int]) -> Iterator[Regions]:
        """Regions level by level, the whole first.

        Args:
            choose: of a region by its place, along an axis: before which of its cells but the first it is split.
        """
        trees, *sides = self._sizes()
        none = np.zeros(trees, dtype=np.int64)
        whole = [np.full(trees, side, dtype=np.int64) for side in sides]
        regions = Regions(np.arange(trees), (none, none), (whole[0], whole[1]), none)
        yield regions
        for _ in range(self.height):
            before = np.arange(len(regions))
            for axis in range(sum(self.ordered)):
                regions = _split(regions, axis, choose)
                before = before[regions.parent]
            regions = Regions(regions.own, regions.low, regions.high, before)
            yield regions

    def places(self, regions: Regions) -> Ints:
        """The place of the region that holds each cell, [cells]."""
        trees, *sides = self._sizes()
        steps = np.zeros((trees, sides[0] + 1, sides[1] + 1), dtype=np.int64)
        number = np.arange(len(regions))
        (low, below), (high, above) = regions.low, regions.high
        for first, second, sign in ((low, below, 1), (high, below, -1), (low, above, -1), (high, above, 1)):
            np.add.at(steps, (regions.own, first, second), sign * number)
        found = steps.cumsum(axis=1).cumsum(axis=2)[:, :-1, :-1]
        listed = [size for size, split in zip(self.shape, self.ordered, strict=True) if not split]
        along = [size for size, split in zip(self.shape, self.ordered, strict=True) if split]
        ends = range(len(listed), len(self.shape))
        split = [axis for axis, one in enumerate(self.ordered) if one]
        return np.ascontiguousarray(np.moveaxis(found.reshape(*listed, *along), ends, split)).ravel()

    def _sizes(self) -> tuple[int, int, int]:
        sizes = [size for size, split in zip(self.shape, self.ordered, strict=True) if split]
        first, second = (*sizes, 1)[:2]
        return self.cells // math.prod(sizes), first, second

    def _trees(self, level: Ints) -> Ints:
        split = [axis for axis, one in enumerate(self.ordered) if one]
        ends = range(len(self.shape) - len(split), len(self.shape))
        return np.moveaxis(level.reshape(self.shape), split, ends).reshape(self._sizes())


def kdtree(shape: tuple[int, ...], ordered: tuple[bool, ...], *, height: int, share: float) -> KdTree:
    """With geometric weights along two axes, equal ones along one."""
    weights = geometric(height + 1) if sum(ordered) == 2 else (1,) * (height + 1)
    return KdTree(shape=shape, ordered=ordered, height=height, weights=weights, share=share)


def kdtree_over(space: Space, *, height: int | None, share: float | None) -> KdTree:
    """The kd-tree of a query's axes.

    Args:
        height, share: None where the spec does not say.

    Raises:
        ValueError: none or more than two of them have an order.

    >>> from privacy.cells.space import Axis
    >>> kdtree_over((Axis(cells=102, ordered=True), Axis(cells=102, ordered=True)), height=None, share=None).height
    4
    """
    shape, ordered = tuple(axis.cells for axis in space), tuple(axis.ordered for axis in space)
    sides = [axis.cells for axis in space if axis.ordered]
    if height is None:
        per_axis = math.prod(sides) / FEWEST
        height = max(1, min(HIGHEST, int(math.log2(max(per_axis, 1)) / max(len(sides), 1))))
    return kdtree(shape, ordered, height=height, share=SPLITS if share is None else share)


def totals(sums: Ints, regions: Regions) -> Ints:
    """Sums over regions, modulo 2^64, from `prefixes`."""
    (low, below), (high, above), own = regions.low, regions.high, regions.own
    found: Ints = sums[own, high, above] - sums[own, low, above] - sums[own, high, below] + sums[own, low, below]
    return found


def _scores(sums: Ints, regions: Regions, axis: int, place: int) -> Ints:
    """Of a split before each cell of a region but the first, [cells along the axis - 1]."""
    (low, below), (high, above) = ((int(ends[0][place]), int(ends[1][place])) for ends in (regions.low, regions.high))
    of_tree = sums[regions.own[place]]
    if axis == 0:
        along = of_tree[low : high + 1, above] - of_tree[low : high + 1, below]
    else:
        along = of_tree[high, below : above + 1] - of_tree[low, below : above + 1]
    apart = (along[-1] - along[1:-1]) - (along[1:-1] - along[0])  # wraps
    scores: Ints = -np.abs(np.clip(apart, -FURTHEST, FURTHEST))
    return scores


def _split(regions: Regions, axis: int, choose: Callable[[Regions, int, int], int]) -> Regions:
    """Both halves of each region, or itself where it is one cell wide."""
    wide = regions.high[axis] - regions.low[axis] > 1
    cuts = regions.high[axis].copy()
    for place in np.flatnonzero(wide).tolist():
        cuts[place] = regions.low[axis][place] + 1 + choose(regions, axis, place)
    parent = np.repeat(np.arange(len(regions)), 1 + wide)
    second = np.zeros(len(parent), dtype=np.bool_)
    second[1:] = parent[1:] == parent[:-1]
    first = np.zeros_like(second)
    first[:-1] = second[1:]
    low, high = ([ends[parent] for ends in of] for of in (regions.low, regions.high))
    low[axis] = np.where(second, cuts[parent], low[axis])
    high[axis] = np.where(first, cuts[parent], high[axis])
    return Regions(regions.own[parent], (low[0], low[1]), (high[0], high[1]), parent)
