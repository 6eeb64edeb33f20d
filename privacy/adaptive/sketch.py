"""How a sample is made of a histogram: noise for each cell, for sums over ordered cells, or for regions.

A sample's *sketch* is all that it makes public: noisy sums, and with a kd-tree where regions were split. Cells, and
what decisions are taken on, are made from sketches alone: post-processing.

    none        a sketch is the noisy cells themselves
    Product     noisy nodes of a strategy S over cells (privacy.cells.product); cells by least squares
    KdTree      splits and noisy regions (privacy.cells.kdtree); cells evenly from regions

Distances are measured between whole numbers. Under a Product they are those of cells, from the estimates rounded to
grid steps. Under a KdTree those of the last sample's regions: sums over sets without a cell in common come no further
apart than the cells do. What they are measured from is public, so neighbours' distances differ by r at most, as for
cells. (Regions tell change from what was spread evenly though it is not even, which stays however long one waits. What
moves within a region is not seen.)

What a sample costs: privacy.adaptive.scales.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privacy.adaptive.policy import Noise
from privacy.adaptive.scales import Scales
from privacy.cells import kdtree_reading
from privacy.cells.kdtree import KdTree
from privacy.cells.product import Product
from privacy.counted import counted
from privacy.noise.choices import Choice
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.kinds import NOISE

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Sample = Callable[[NoiseDistribution | Choice, int], Ints]
"""So many fresh independent samples of a distribution; where noise comes from is not this room's."""

Over = Product | KdTree
"""What samples are made with, where not with noise of its own for each cell."""

MEAN_SIZE = math.sqrt(2 / math.pi)
"""Of a normal variable, in standard deviations: what least squares adds up from many samples is near to one."""

ENOUGH = 2.0**62
"""Estimates are rounded within these: what is beyond is noise on noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a sketch says; for noise of a node of variance 1.

    Attributes:
        cells: [cells], in grid steps.
        deviations: of the noise in each cell, [cells].
        spread: over how many cells what a cell has was spread, [cells]; None: over none but itself.
        regions: of a kd-tree.
        near: what distances are measured from, whole grid steps.
        mean_norm: the mean L1 norm of the noise in what distances are measured from.
        root: its L2 norm's square's root.
    """

    cells: Floats
    deviations: Floats
    spread: Ints | None
    regions: kdtree_reading.Reading | None
    near: Ints
    mean_norm: float
    root: float

    def sums(self, level: Ints) -> Ints:
        """Of a histogram [cells], what is compared with `near`."""
        return level if self.regions is None else self.regions.sums(level)


def column(over: Over | None, noise: Noise) -> int:
    """How much sums move where cells move by 1: the largest L1 norm of a column of S, with Gaussian noise L2, squared.

    >>> from privacy.cells.layers import Layers
    >>> tree = Product(axes=(Layers(cells=4, sizes=(1, 2, 4), weights=(3, 1, 1)),))
    >>> column(None, "laplace"), column(tree, "laplace"), column(tree, "gaussian")
    (1, 5, 11)
    """
    power = NOISE[noise].power
    if over is None:
        return 1
    if isinstance(over, KdTree):
        return sum(weight**power for weight in over.weights)
    return max(whole for whole, _, _ in over.corners(power))


def rounds(over: Over | None) -> int:
    """How many private splits a cell is in."""
    return over.rounds if isinstance(over, KdTree) else 0


def sketched(over: Over, scales: Scales, level: Ints, units: int, sample: Sample) -> Ints:
    """The sketch of a histogram, [cells], by a sample that takes so many units of the budget.

    Raises:
        ValueError: scales of another way to make samples.
    """
    noise = scales.sample(units)
    if isinstance(over, Product):
        return over.spread(level) + sample(noise, over.nodes)
    scale = scales.split(units)
    return over.sketch(level, lambda scores: int(sample(Choice(scores, scale), 1)[0]), lambda size: sample(noise, size))


def read(over: Over, sketch: Ints) -> Reading:
    """What a sketch says.

    Raises:
        ValueError: it is none of this kind.
    """
    if isinstance(over, KdTree):
        found = kdtree_reading.read(over, sketch)
        deviations = np.sqrt(found.variances)
        cells, spread, near = found.cells(), found.spread, found.values
        return Reading(
            cells=cells,
            deviations=found.deviations(),
            spread=spread,
            regions=found,
            near=_whole(near),
            mean_norm=MEAN_SIZE * float(deviations.sum()),
            root=math.sqrt(float(found.variances.sum())),
        )
    if sketch.shape != (over.nodes,):
        raise ValueError(f"a sketch of {counted(len(sketch), 'node')}, and the strategy has {over.nodes}")
    cells = over.gather(sketch.astype(np.float64))
    deviations, mean_norm, root = _of_cells(over)
    return Reading(
        cells=cells,
        deviations=deviations,
        spread=None,
        regions=None,
        near=_whole(cells),
        mean_norm=mean_norm,
        root=root,
    )


@lru_cache(maxsize=8)
def _of_cells(over: Product) -> tuple[Floats, float, float]:
    variances = over.variances()
    deviations = np.sqrt(variances)
    deviations.flags.writeable = False
    return deviations, MEAN_SIZE * float(deviations.sum()), math.sqrt(float(variances.sum()))


def _whole(values: Floats) -> Ints:
    return np.rint(np.clip(values, -ENOUGH, ENOUGH)).astype(np.int64)


def typical_deviation(over: Over | None) -> float:
    """Root mean square over cells, or over the last regions of a kd-tree of even splits, for nodes of variance 1."""
    if over is None:
        return 1.0
    if isinstance(over, Product):
        return math.sqrt(over.average())
    even = over.sketch(np.zeros(over.cells, dtype=np.int64), lambda scores: len(scores) // 2, _no_noise)
    return math.sqrt(float(kdtree_reading.read(over, even).variances.mean()))


def _no_noise(size: int) -> Ints:
    return np.zeros(size, dtype=np.int64)
