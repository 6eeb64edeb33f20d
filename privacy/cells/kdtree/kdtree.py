"""kd-trees: regions of cells that are split privately near the medians of the data, with a noisy count of each region.

Beginning with the whole, each region is split along each ordered axis, `height` times. The place of a split is chosen
by permute-and-flip, which improves on the exponential mechanism (privacy.noise.choices), with the score

    -|sum of one side - sum of the other|        at each border between two cells of the region.

Then each region of each level gets a noisy count, `weights[l]` times. The public part of one histogram, its *sketch*,
is one array: all splits, then all noisy counts, level by level. The splits determine the regions; a region of one cell
is not split any more and is repeated in the next level. So every cell is in one region of each level.

Sensitivity, for histograms that are r apart in L1: within one round of splits (all regions of a level along one axis)
regions share no cell, so with r_j of r in region j its scores move by at most r_j, up or down. Counts of one level move
by r in total.

Weights are geometric along two axes (privacy.cells.geometric). Along one axis a range ends in at most two regions of
each level, so all levels have the same weight.

Source: Cormode, Procopiuc, Srivastava, Shen, Yu, "Differentially Private Spatial Decompositions", ICDE 2012,
arXiv:1103.5170. A listed axis is never split: each of its values has a separate tree.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from privacy.cells.base import MEAN_SIZE, FreshNoise, Pick, Reading, Sketcher, whole
from privacy.cells.choice import CellChoice
from privacy.cells.geometric import geometric
from privacy.cells.kdtree.reading import least_squares
from privacy.cells.kdtree.regions import Regions, scores, split, totals
from privacy.cells.offer import CellTerms, CellUse
from privacy.cells.product import Product
from privacy.cells.sums import Ints
from privacy.checks import at_least, proportion
from privacy.columns import Column
from privacy.problems import RuleError

SPLITS = 0.3
"""Default share of a sample's budget for splits (Cormode et al. 2012)."""

FEWEST = 16
"""By default, regions are split while they hold at least this number of cells on average."""

HIGHEST = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class KdTree:
    """Sketcher that splits regions, for all axes of a query at once.

    Attributes:
        shape: number of cells of each axis.
        ordered: whether regions are split along each axis; one or two are.
        height: number of splits of a region along each ordered axis.
        weights: weight of the counts of each level, from the whole to the last regions.
        share: share of a sample's budget for splits.

    >>> tree = kdtree((6,), (True,), height=1, share=0.5)
    >>> tree.sketch(np.array([9, 9, 0, 0, 0, 1]), lambda scores: int(scores.argmax()),
    ...     lambda size: np.zeros(size, dtype=np.int64)).tolist()
    [0, 19, 9, 10]
    """

    kind: ClassVar[str] = "kd_tree"
    linear: ClassVar[None] = None
    alone: ClassVar[bool] = False
    columns: ClassVar[tuple[Column, ...]] = (Column("spread_over", int, "kdtrees"),)
    premise: ClassVar[str | None] = (
        "The data choose where regions of cells are split, which the budget of each sample pays for too: query "
        "{names}. A number there is a region's, spread evenly over its cells: its standard deviation is that of the "
        "noise alone."
    )
    unsummed: ClassVar[str | None] = (
        "its cells share counts of regions, so the error of a sum is unknown; use a quadtree or tree"
    )
    sentence: ClassVar[str] = (
        "Counts are of regions, spread evenly over their cells. A number that was spread has no known interval."
    )
    of: ClassVar[str] = "regions"
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
        """Number of splits that a cell takes part in."""
        return self.height * sum(self.ordered)

    @property
    def decided(self) -> int:
        """Largest number of regions of the last level."""
        sizes = [size for size, split in zip(self.shape, self.ordered, strict=True) if split]
        trees = self.cells // math.prod(sizes)
        return trees * math.prod(min(2**self.height, size) for size in sizes)

    @property
    def settings(self) -> dict[str, Any]:
        return {"cells": f"kdtree {self.height}", "splits": self.share}

    def column(self, power: int) -> int:
        return sum(weight**power for weight in self.weights)

    def prefixes(self, level: Ints) -> Ints:
        """Return sums of [cells] from the first place on, [trees, 1 + first axis, 1 + second axis], modulo 2^64."""
        trees = self._trees(level)
        sums = np.zeros((len(trees), trees.shape[1] + 1, trees.shape[2] + 1), dtype=np.int64)
        np.cumsum(trees, axis=1, out=sums[:, 1:, 1:])
        np.cumsum(sums[:, 1:, 1:], axis=2, out=sums[:, 1:, 1:])
        return sums

    def sketch(self, level: Ints, pick: Pick, noise: FreshNoise) -> Ints:
        """Return the sketch that a sample publishes of a histogram (`Sketcher.sketch`)."""
        sums, cuts, counts = self.prefixes(level), [], []

        def choose(regions: Regions, axis: int, place: int) -> int:
            cut = pick(scores(sums, regions, axis, place))
            cuts.append(cut)
            return cut

        for weight, regions in zip(self.weights, self.levels(choose), strict=True):
            counts.append(weight * totals(sums, regions))
        exact = np.concatenate(counts)
        return np.concatenate([np.array(cuts, dtype=np.int64), exact + noise(len(exact))])

    def read(self, sketch: Ints) -> Reading:
        """Return least-squares estimates over regions, each region spread evenly over its cells.

        The estimate of a cell is biased if its region is not even; only sums over whole regions have a known error.

        Args:
            sketch: int64 [splits and counts].
        """
        levels, noisy = self.opened(sketch)
        regions, places = levels[-1], self.places(levels[-1])
        values, variances = least_squares(levels, noisy, self.weights)
        deviations, sizes = np.sqrt(variances), regions.sizes
        return Reading(
            cells=(values / sizes)[places],
            deviations=(deviations / sizes)[places],
            spread=sizes[places],
            near=whole(values),
            sums=partial(_sums, self, regions),
            mean_norm=MEAN_SIZE * float(deviations.sum()),
            root=math.sqrt(float(variances.sum())),
        )

    def typical_deviation(self) -> float:
        """Return the typical deviation over the last regions, if splits are even."""
        nothing = np.zeros(self.cells, dtype=np.int64)
        even = self.sketch(nothing, lambda scores: len(scores) // 2, lambda size: np.zeros(size, dtype=np.int64))
        _, variances = least_squares(*self.opened(even), self.weights)
        return math.sqrt(float(variances.mean()))

    def opened(self, sketch: Ints) -> tuple[list[Regions], list[Ints]]:
        """Return the regions of each level, and their noisy counts, int64 [regions] each.

        Args:
            sketch: int64 [splits and counts].

        Raises:
            ValueError: the sketch does not fit this tree.
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
        """Yield the regions level by level, the whole first.

        Args:
            choose: for a region by its place, and an axis, returns the cell, other than the first, that begins its
                second half.
        """
        trees, *sides = self._sizes()
        none = np.zeros(trees, dtype=np.int64)
        whole = [np.full(trees, side, dtype=np.int64) for side in sides]
        regions = Regions(np.arange(trees), (none, none), (whole[0], whole[1]), none)
        yield regions
        for _ in range(self.height):
            before = np.arange(len(regions))
            for axis in range(sum(self.ordered)):
                regions = split(regions, axis, choose)
                before = before[regions.parent]
            regions = Regions(regions.own, regions.low, regions.high, before)
            yield regions

    def places(self, regions: Regions) -> Ints:
        """Return the place of the region that contains each cell, int64 [cells]."""
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
    """Return a tree with geometric weights along two axes, equal ones along one axis.

    Args:
        shape: number of cells of each axis.
        ordered: whether regions are split along each axis.
        height: number of splits of a region along each ordered axis.
        share: share of a sample's budget for splits, between 0 and 1.
    """
    weights = geometric(height + 1) if sum(ordered) == 2 else (1,) * (height + 1)
    return KdTree(shape=shape, ordered=ordered, height=height, weights=weights, share=share)


class KdTreeOffer:
    """Offer of kd-trees, only for samples of adaptive publication (privacy.cells.offer.CellOffer).

    >>> from privacy.cells.space import Axis
    >>> plane = (Axis(cells=102, ordered=True), Axis(cells=102, ordered=True))
    >>> KdTreeOffer().sketcher(CellTerms(space=plane, choice=CellChoice(name="kdtree"), power=1, changes=1)).height
    4
    """

    settings: ClassVar[tuple[str, ...]] = ("height", "splits")
    sketched: ClassVar[type[Sketcher]] = KdTree

    def strategies(self, terms: CellTerms) -> tuple[Product, ...]:
        raise _looks_at_data()

    def sketcher(self, terms: CellTerms) -> KdTree:
        shape, ordered = zip(*((axis.cells, axis.ordered) for axis in terms.space), strict=True)
        height, share = terms.choice.height, terms.choice.splits
        if height is None:
            sides = [axis.cells for axis in terms.space if axis.ordered]
            per_axis = math.prod(sides) / FEWEST
            height = max(1, min(HIGHEST, int(math.log2(max(per_axis, 1)) / max(len(sides), 1))))
        return kdtree(shape, ordered, height=height, share=SPLITS if share is None else share)

    def problems(self, choice: CellChoice, use: CellUse) -> Iterator[RuleError]:
        if choice.workload != "cells":
            yield RuleError("a kdtree is the same for all of them; remove it", "cells", "for")
        if not use.adaptive:
            yield _looks_at_data()


def _looks_at_data() -> RuleError:
    message = "a kdtree looks at the data: for samples of strategy: {adaptive: ...} alone; use quadtree or tree"
    return RuleError(message, "cells", "strategy")


def _sums(tree: KdTree, regions: Regions, level: Ints) -> Ints:
    """Return exact sums over regions, [regions], of a histogram [cells]."""
    return totals(tree.prefixes(level), regions)
