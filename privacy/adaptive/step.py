"""Step of adaptive publication: from an exact histogram to published numbers, for rules that sample or repeat.

Guarantee: `privacy.adaptive.budget.spent`, for all windows together. All operations on exact data are in integers: a
distance, and numbers that get noise. If these exceed 64 bits, exact or with their noise, they wrap: all arithmetic is
modulo 2^64, and distances are those on a circle of that length, on which neighbours are no further apart.

Source of the decision, with a noisy threshold: AboveThreshold (Dwork et al. 2009), in the form
distance + nu >= offset + rho, with one rho for a run of it and a fresh nu for each window.

The offset is public: a function of published numbers and of public parameters, in grid steps. It costs no privacy, so
it may be adjusted and clamped in any way. It does not contain the noise of the threshold, which is never clamped or
published: that error made the paper's DSAT cost 45 times its epsilon (docs/proofs/adaptive.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privacy.adaptive.base import Rule, Stepped
from privacy.adaptive.budget import restarts
from privacy.adaptive.carry import AdaptiveCarry, Ints
from privacy.adaptive.samples import Sample, sketched
from privacy.adaptive.scales import Scales
from privacy.adaptive.spending import after, check_windows, offered
from privacy.cells.base import Reading, Sketcher
from privacy.counted import counted
from privacy.noise.distributions import DiscreteLaplace
from privacy.noise.kinds import NOISE

CHUNK = 1 << 16
"""Number of cells that are processed at a time, so that they stay in the processor's cache."""

FURTHEST = 1 << 46
"""Largest contribution of one cell to a distance, so that the sum over a chunk stays below 2^63."""


Offset = Callable[[Scales, AdaptiveCarry, float, float], int]
"""Value with which a noisy distance is compared in the next window, in grid steps: a function of public values.

Its arguments are the scales of the noise, the carry of the previous step, the mean L1 norm of a sample's noise (the
distance if nothing changes), and the standard deviation of the noise in a distance, if that of a node is 1.
"""


def error_of_a_sample(scales: Scales, carry: AdaptiveCarry, floor: float, root: float) -> int:
    """Return the mean error of a new sample, as an `Offset`: a window is sampled if repeating has a larger error.

    Args:
        scales: scales of the noise.
        carry: carry of the previous step.
        floor: mean L1 norm of the noise of the last sample.
        root: standard deviation of the noise in a distance, if that of a node is 1.
    """
    return round(floor)


def _always(carry: AdaptiveCarry) -> bool:
    return True


def _nothing(carry: AdaptiveCarry | None, sampled: bool) -> tuple[float, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Sampled:
    """Publication that samples a window or repeats the last published numbers.

    Attributes:
        rule: decides how many units a sample would take.
        offset: value with which a distance is compared; None if there are no decisions.
        undecided: whether the data decide about the next window, if a sample of it is offered: a function of public
            values. The first window is always sampled, before there is a carry.
        memory: further values of the rule after a window that was sampled or not: a function of public values.
    """

    rule: Rule
    offset: Offset | None = None
    undecided: Callable[[AdaptiveCarry], bool] = _always
    memory: Callable[[AdaptiveCarry | None, bool], tuple[float, ...]] = _nothing
    repeats: ClassVar[bool] = True
    premise: ClassVar[str | None] = None
    unsummed: ClassVar[str | None] = None
    kept: ClassVar[int] = 2

    def step(
        self,
        scales: Scales,
        over: Sketcher,
        carry: AdaptiveCarry | None,
        level: Ints,
        sample: Sample,
        reading: Reading | None = None,
    ) -> Stepped:
        """Publish one window (`Publication.step`). The carry's `published` are the public numbers."""
        self._check(scales, over, level)
        check_windows(self.rule, carry)
        if carry is not None and reading is None:
            reading = over.read(carry.published)
        units, rho = self.decided(scales, over, carry, level, sample, reading)
        if units or carry is None or reading is None:
            public = sketched(over, scales, level, units, sample)
            reading = over.read(public)
        else:
            public = carry.published
        fresh = restarts(self.rule, scales.noise)
        memory = self.memory(carry, bool(units))
        left = after(self.rule, carry, published=public, units=units, rho=rho, fresh=fresh, memory=memory)
        return Stepped(units=units, public=public, reading=reading, carry=left)

    def read(self, over: Sketcher, public: Ints) -> Reading:
        """Return the estimates that published numbers, int64 [numbers], give."""
        return over.read(public)

    def check(self, over: Sketcher, carry: AdaptiveCarry) -> None:
        over.read(carry.published)

    def decided(
        self,
        scales: Scales,
        over: Sketcher,
        carry: AdaptiveCarry | None,
        level: Ints,
        sample: Sample,
        reading: Reading | None,
    ) -> tuple[int, int | None]:
        """Return the units that a sample of the next window takes, 0 without one, and the noise of the threshold.

        Neighbours' distances differ by at most r = `scales.sensitivity`. The cost of a decision is stated in
        privacy.adaptive.budget. The arguments are those of `Publication.step`.
        """
        units = offered(self.rule, carry)
        rho = None if carry is None else carry.rho
        if not units or carry is None or reading is None or not self.undecided(carry):
            return units, rho
        if self.offset is None or scales.test is None:
            return units, rho
        if rho is None:
            rho = 0 if scales.threshold is None else _one(sample, scales.threshold)
        noise = scales.sample(units)
        if over.alone:
            floor, root = over.cells * NOISE[scales.noise].mean_size(noise.scale), math.sqrt(over.cells)
        else:
            floor, root = reading.mean_norm * noise.variance**0.5, reading.root
        compared = self.offset(scales, carry, floor, root)
        if distance(reading.sums(level), reading.near) + _one(sample, scales.test) < compared + rho:
            units = 0
        return units, rho

    def _check(self, scales: Scales, over: Sketcher, level: Ints) -> None:
        if level.dtype != np.int64 or level.shape != (over.cells,):
            raise ValueError(f"levels: expected int64 in {counted(over.cells, 'cell')}, from which samples are made")
        check_scales(self.rule, scales, over)


def check_scales(rule: Rule, scales: Scales, over: Sketcher) -> None:
    """Refuse noise that belongs to another rule or sketcher.

    Args:
        rule: the rule of the release.
        scales: scales of the noise.
        over: makes samples.

    Raises:
        ValueError: the noise belongs to another rule or sketcher, and so may be too small.
    """
    if (scales.column, scales.rounds) != (over.column(NOISE[scales.noise].power), over.rounds):
        raise ValueError("scales: the noise was calibrated for samples with other sums over cells")
    if scales.units != rule.units:
        raise ValueError(f"scales: for {counted(scales.units, 'unit')}, but the policy has {rule.units}")
    noisy = rule.runs(fresh=restarts(rule, scales.noise)) is not None
    if (scales.threshold is not None) != noisy or (scales.test is not None) != (rule.decisions is not None):
        raise ValueError(f"scales: for another policy than {rule.name}")


def distance(level: Ints, published: Ints) -> int:
    """Return the L1 distance of two histograms [cells] modulo 2^64; a cell adds at most 2^46.

    Sensitivity: with `published` fixed it moves by at most as much as `level` moves in L1. That holds for the distance
    on a circle, so also if `level` has wrapped, and the cap brings distances only closer together.

    >>> distance(np.array([1, 5, -(2**63)]), np.array([3, 4, 2**63 - 1]))
    4
    """
    total = 0
    for start in range(0, len(level), CHUNK):
        cells = slice(start, start + CHUNK)
        gap = level[cells] - published[cells]  # wraps
        np.clip(gap, -FURTHEST, FURTHEST, out=gap)
        np.abs(gap, out=gap)
        total += int(gap.sum())
    return total


def _one(sample: Sample, scale: float) -> int:
    return int(sample(DiscreteLaplace(scale), 1)[0])
