"""A step of adaptive publication: from exact histograms to what is published, window by window.

Guarantee: `privacy.adaptive.scales.spent`, for all windows together. All that touches exact data are integers: a
distance, and cells that get noise. Where cells outgrow 64 bits, exact or with their noise, they wrap: all arithmetic is
modulo 2^64, and distances are those on a circle of that length, in which neighbours are no further apart.

Source of the decision, where there is a noisy threshold: AboveThreshold (Dwork et al. 2009), in the form
distance + nu >= offset + rho, with one rho for a run of it and a fresh nu for each window.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privacy.adaptive.carry import AdaptiveCarry, Ints, after, offered, undecided
from privacy.adaptive.offset import offset
from privacy.adaptive.policy import Adaptive
from privacy.adaptive.scales import Scales, anew
from privacy.adaptive.sketch import Over, Reading, Sample, column, read, rounds, sketched
from privacy.counted import counted
from privacy.noise.distributions import DiscreteLaplace

Flags = NDArray[np.bool_]

CHUNK = 1 << 16
"""Cells at once: what is made of them stays in the processor's cache."""

FURTHEST = 1 << 46
"""Most that one cell adds to a distance, so that the sum over a chunk stays below 2^63."""


def step(
    adaptive: Adaptive, scales: Scales, carry: AdaptiveCarry | None, levels: Ints, sample: Sample
) -> tuple[Flags, Ints, AdaptiveCarry]:
    """What is published for the windows that closed now. Many steps give what one gives, on the same noise.

    Args:
        carry: what the step before left; None in the first.
        levels: [windows, cells], exact, in grid steps.
        sample: noise.

    Returns:
        Whether each window was sampled [windows], what is published [windows, cells], and the carry. Flags and values
        are public.

    Raises:
        ValueError: no windows or more than there are to be, other cells than before.

    >>> fixed = Adaptive(policy="fixed", windows=5, interval=2)
    >>> nothing = lambda distribution, size: np.zeros(size, dtype=np.int64)
    >>> exact = np.arange(10, dtype=np.int64).reshape(5, 2)
    >>> flags, values, _ = step(fixed, Scales(sensitivity=1, threshold=None, test=None, whole=1.0, units=3), None,
    ...     exact, nothing)
    >>> flags.tolist(), values[:, 0].tolist()
    ([True, False, True, False, True], [0, 0, 4, 4, 8])
    """
    _check(adaptive, scales, carry, levels)
    if (scales.column, scales.rounds) != (1, 0):
        raise ValueError("scales: of sums over cells, and each cell gets noise of its own")
    if adaptive.policy == "pegasus":
        raise ValueError("pegasus groups windows: privacy.adaptive.grouping")
    flags = np.zeros(len(levels), dtype=np.bool_)
    values = np.empty_like(levels)
    for row, level in enumerate(levels):
        units, rho = _decided(adaptive, scales, carry, level, sample, None)
        if units:
            flags[row] = True
            np.add(level, sample(scales.sample(units), levels.shape[1]), out=values[row])
        elif carry is not None:
            values[row] = carry.published
        carry = after(adaptive, carry, published=values[row], units=units, rho=rho, anew=anew(adaptive, scales))
    if carry is None:
        raise ValueError("levels: no windows")
    # A view would keep all windows of this step in memory.
    return flags, values, replace(carry, published=carry.published.copy())


def step_over(
    adaptive: Adaptive,
    scales: Scales,
    over: Over,
    carry: AdaptiveCarry | None,
    level: Ints,
    sample: Sample,
    reading: Reading | None = None,
) -> tuple[int, Reading, AdaptiveCarry]:
    """The same for one window, where samples are made with sums over cells: what is published is a sketch.

    Args:
        level: [cells], exact, in grid steps.
        reading: of what was published last; None: it is made from the carry.

    Returns:
        How many units its sample took (0: it was not sampled), what the last sketch says, and the carry, whose
        `published` that sketch is.

    Raises:
        ValueError: as `step`; scales, a carry or a level of another way to make samples.
    """
    if len(level) != over.cells:
        raise ValueError(f"levels: {counted(len(level), 'cell')}, but samples are made of {over.cells}")
    if (scales.column, scales.rounds) != (column(over, scales.noise), rounds(over)):
        raise ValueError("scales: of other sums over cells than samples are made with")
    _check(adaptive, scales, None, level[None, :])
    if adaptive.windows is not None and carry is not None and carry.windows >= adaptive.windows:
        raise ValueError(
            f"levels: {counted(carry.windows + 1, 'window')}, but the release ends after {adaptive.windows}"
        )
    if carry is not None and reading is None:
        reading = read(over, carry.published)
    units, rho = _decided(adaptive, scales, carry, level, sample, reading)
    if units or carry is None or reading is None:
        sketch = sketched(over, scales, level, units, sample)
        reading = read(over, sketch)
    else:
        sketch = carry.published
    return units, reading, after(adaptive, carry, published=sketch, units=units, rho=rho, anew=anew(adaptive, scales))


def _decided(
    adaptive: Adaptive,
    scales: Scales,
    carry: AdaptiveCarry | None,
    level: Ints,
    sample: Sample,
    reading: Reading | None,
) -> tuple[int, int | None]:
    """How many units a sample of the next window takes, 0 if there is none, and the noise of the threshold."""
    units = offered(adaptive, carry)
    rho = None if carry is None else carry.rho
    if units and carry is not None and scales.test is not None and undecided(adaptive, carry):
        if rho is None:
            rho = 0 if scales.threshold is None else _one(sample, scales.threshold)
        compared = offset(adaptive, scales, carry, units=units, cells=len(level), reading=reading)
        near = distance(level, carry.published) if reading is None else distance(reading.sums(level), reading.near)
        if near + _one(sample, scales.test) < compared + rho:
            units = 0
    return units, rho


def distance(level: Ints, published: Ints) -> int:
    """The L1 distance of two histograms modulo 2^64; a cell adds 2^46 at most.

    Sensitivity: with `published` fixed it moves by no more than `level` moves in L1. That holds for the distance on a
    circle, so also where `level` has wrapped, and a cap brings distances only closer together.

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


def _check(adaptive: Adaptive, scales: Scales, carry: AdaptiveCarry | None, levels: Ints) -> None:
    if levels.dtype != np.int64 or levels.ndim != 2 or not levels.shape[1]:
        raise ValueError("levels: expected int64, windows x cells, with at least one cell")
    if carry is not None and carry.published.shape != levels.shape[1:]:
        raise ValueError(f"levels: {counted(levels.shape[1], 'cell')}, but {len(carry.published)} in the steps before")
    if scales.units != adaptive.units:
        raise ValueError(f"scales: for {counted(scales.units, 'unit')}, but the policy has {adaptive.units}")
    if (scales.threshold is None) == adaptive.sparse_vector or (scales.test is None) == (
        adaptive.decisions is not None
    ):
        raise ValueError(f"scales: of another policy than {adaptive.policy}")
    closed = len(levels) + (0 if carry is None else carry.windows)
    if adaptive.windows is not None and closed > adaptive.windows:
        raise ValueError(f"levels: {counted(closed, 'window')}, but the release ends after {adaptive.windows}")
