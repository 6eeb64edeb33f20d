"""Regions of a kd-tree: their sums, the scores of their splits, and their halves."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privacy.cells.sums import Ints

FURTHEST = 1 << 46
"""Largest absolute score."""


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions of one level as arrays [regions]. `low` and `high` are the ends along the first and the second axis.

    Attributes:
        own: the tree that each region is in.
        parent: place of its parent among the regions of the level before.
    """

    own: Ints
    low: tuple[Ints, Ints]
    high: tuple[Ints, Ints]
    parent: Ints

    def __len__(self) -> int:
        return len(self.own)

    @property
    def sizes(self) -> Ints:
        """Number of cells of each region, int64 [regions]."""
        first, second = (high - low for low, high in zip(self.low, self.high, strict=True))
        sizes: Ints = first * second
        return sizes


def totals(sums: Ints, regions: Regions) -> Ints:
    """Return the sums over regions, int64 [regions], modulo 2^64, from `KdTree.prefixes`."""
    (low, below), (high, above), own = regions.low, regions.high, regions.own
    found: Ints = sums[own, high, above] - sums[own, low, above] - sums[own, high, below] + sums[own, low, below]
    return found


def scores(sums: Ints, regions: Regions, axis: int, place: int) -> Ints:
    """Return the score of a split before each cell of a region except the first, int64 [cells along the axis - 1].

    Args:
        sums: of `KdTree.prefixes`, int64 [trees, 1 + first axis, 1 + second axis].
        regions: regions of a level.
        axis: the axis along which the region is split, 0 or 1.
        place: place of the region.
    """
    (low, below), (high, above) = ((int(ends[0][place]), int(ends[1][place])) for ends in (regions.low, regions.high))
    of_tree = sums[regions.own[place]]
    if axis == 0:
        along = of_tree[low : high + 1, above] - of_tree[low : high + 1, below]
    else:
        along = of_tree[high, below : above + 1] - of_tree[low, below : above + 1]
    apart = (along[-1] - along[1:-1]) - (along[1:-1] - along[0])  # wraps
    found: Ints = -np.abs(np.clip(apart, -FURTHEST, FURTHEST))
    return found


def split(regions: Regions, axis: int, choose: Callable[[Regions, int, int], int]) -> Regions:
    """Return both halves of each region, or the region if it is one cell wide.

    Args:
        regions: regions of a level.
        axis: the axis along which they are split, 0 or 1.
        choose: for a region by its place, and an axis, returns the cell that begins its second half.
    """
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
