"""A step of adaptive publication: from exact histograms to what is published, window by window.

Guarantee: `privacy.adaptive.scales.spent`, for all windows together. All that touches exact data are integers: a
distance, and cells that get noise. Where cells outgrow 64 bits, exact or with their noise, they wrap: all arithmetic is
modulo 2^64, and distances are those on a circle of that length, in which neighbours are no further apart.

Source of the decision, where there is a noisy threshold: AboveThreshold (Dwork et al. 2009), in the form
distance + nu >= offset + rho, with one rho for a run of it and a fresh nu for each window.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privacy.adaptive.carry import Carry, Ints, after, offered, undecided
from privacy.adaptive.offset import offset
from privacy.adaptive.policy import Adaptive
from privacy.adaptive.scales import Scales
from privacy.noise.distributions import DiscreteLaplace

Flags = NDArray[np.bool_]

Sample = Callable[[DiscreteLaplace, int], Ints]
"""So many fresh independent samples of a distribution; where noise comes from is not this room's."""

CHUNK = 1 << 16
"""Cells at once: what is made of them stays in the processor's cache."""

FURTHEST = 1 << 46
"""Most that one cell adds to a distance, so that the sum over a chunk stays below 2^63."""


def step(
    adaptive: Adaptive, scales: Scales, carry: Carry | None, levels: Ints, sample: Sample
) -> tuple[Flags, Ints, Carry]:
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
    flags = np.zeros(len(levels), dtype=np.bool_)
    values = np.empty_like(levels)
    for row, level in enumerate(levels):
        units = offered(adaptive, carry)
        rho = None if carry is None else carry.rho
        if units and carry is not None and scales.test is not None and undecided(adaptive, carry):
            if rho is None:
                rho = 0 if scales.threshold is None else _one(sample, scales.threshold)
            compared = offset(adaptive, scales, carry, units=units, cells=levels.shape[1])
            noisy = distance(level, carry.published) + _one(sample, scales.test)
            if noisy < compared + rho:
                units = 0
        if units:
            flags[row] = True
            np.add(level, sample(scales.sample(units), levels.shape[1]), out=values[row])
        elif carry is not None:
            values[row] = carry.published
        carry = after(adaptive, carry, published=values[row], units=units, rho=rho)
    if carry is None:
        raise ValueError("levels: no windows")
    # A view would keep all windows of this step in memory.
    return flags, values, replace(carry, published=carry.published.copy())


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


def _check(adaptive: Adaptive, scales: Scales, carry: Carry | None, levels: Ints) -> None:
    if levels.dtype != np.int64 or levels.ndim != 2 or not levels.shape[1]:
        raise ValueError("levels: expected int64, windows x cells, with at least one cell")
    if carry is not None and carry.published.shape != levels.shape[1:]:
        raise ValueError(f"levels: {levels.shape[1]} cells, but {len(carry.published)} in the steps before")
    if scales.units != adaptive.units:
        raise ValueError(f"scales: for {scales.units} units, but the policy has {adaptive.units}")
    if (scales.threshold is None) == adaptive.sparse_vector or (scales.test is None) == (
        adaptive.decisions is not None
    ):
        raise ValueError(f"scales: of another policy than {adaptive.policy}")
    closed = len(levels) + (0 if carry is None else carry.windows)
    if adaptive.windows is not None and closed > adaptive.windows:
        raise ValueError(f"levels: {closed} windows, but the release ends after {adaptive.windows}")
