"""Every window is published, and each cell's number is smoothed over windows in which it hardly changed: after PeGaSus.

Source: Chen, Machanavajjhala, Hay, Miklau, "PeGaSus: Data-Adaptive Differentially Private Stream Processing", CCS 2017.
Neighbours: those of privacy.protection; in so many windows histograms differ by r in L1 at most. Three parts:

    perturber   each window is a sample: each cell gets noise of scale b
    grouper     for each cell by itself: with dev(G) the sum of distances of the exact numbers of the windows G from
                their mean, window t joins the group G before it where dev(G + t) + nu < threshold + rho; rho is sampled
                anew for each group, nu for each test. Else the group is closed, and t is one by itself, and closed too
    smoother    what is published is the mean, the median or a James-Stein estimate of the noisy numbers of t's group so
                far: post-processing

What is public is noisy numbers and groups. Cost, for w windows in which neighbours differ (all, for everything):

    w r / b + 2 w r (1 / b1 + 2 / b2)

since each window is in the tests of one group, and dev moves by 2 times what its windows move together. So one window
(w = 1, r = 1) costs what the paper says with b1 = 4 / epsilon_g and b2 = 8 / epsilon_g. Proof: docs/proofs/adaptive.md.

A group is closed after `LONGEST` windows, so that what is kept is bounded: which is public.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.adaptive.carry import AdaptiveCarry, after, offered
from privacy.adaptive.policy import Adaptive
from privacy.adaptive.scales import Scales
from privacy.adaptive.sketch import Sample
from privacy.counted import counted
from privacy.noise.distributions import DiscreteLaplace

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LONGEST = 64
"""Windows in a group, at most."""

MOST_CELLS = 1 << 16
"""Of a query: 128 numbers are kept for each."""

LARGEST = 1 << 48
"""Most that a number counts as in a deviation, so that no sum over a group leaves 64 bits."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The open group of each cell: private.

    Attributes:
        length: windows in it, [cells]; 0: none is open.
        limit: its threshold and that one's noise, [cells].
        exact, noisy: its windows' numbers, [windows, cells]; rows from `length` on are zeros.
    """

    length: Ints
    limit: Ints
    exact: Ints
    noisy: Ints

    def packed(self) -> Ints:
        """As one array, which `unpacked` reads; no longer than the longest group needs."""
        rows = int(self.length.max(initial=0))
        parts = (self.length, self.limit, self.exact[:rows].ravel(), self.noisy[:rows].ravel())
        return np.concatenate(parts)


def unpacked(packed: Ints, cells: int) -> Groups:
    """What `packed` made.

    Raises:
        ValueError: it is of other cells.

    >>> groups = Groups(np.array([2, 0]), np.array([5, 6]), np.array([[1, 0], [2, 0]]), np.array([[3, 0], [4, 0]]))
    >>> unpacked(groups.packed(), 2).noisy.tolist()
    [[3, 0], [4, 0]]
    """
    rows, rest = divmod(len(packed) - 2 * cells, 2 * cells)
    if rest or rows < 0:
        raise ValueError(f"groups: not of {counted(cells, 'cell')}")
    length, limit = packed[:cells], packed[cells : 2 * cells]
    exact, noisy = packed[2 * cells :].reshape(2, rows, cells)
    if length.min() < 0 or length.max(initial=0) != rows:
        raise ValueError("groups: not whole")
    return Groups(length, limit, exact, noisy)


def step_grouped(
    adaptive: Adaptive, scales: Scales, carry: AdaptiveCarry | None, level: Ints, sample: Sample
) -> tuple[Floats, Ints, AdaptiveCarry]:
    """What is published for one window. Many steps give what one gives, on the same noise.

    Args:
        carry: what the step before left; its `published` are the packed groups.
        level: [cells], exact, in grid steps.
        sample: noise.

    Returns:
        Numbers in grid steps and of how many windows each is made, [cells], and the carry.

    Raises:
        ValueError: another policy, more windows than there are to be, other cells than before.
    """
    if adaptive.policy != "pegasus" or scales.threshold is None or scales.test is None or adaptive.threshold is None:
        raise ValueError(f"the policy {adaptive.policy} does not group")
    if (scales.units, scales.column, scales.rounds) != (adaptive.units, 1, 0):
        raise ValueError(f"scales: for {counted(scales.units, 'unit')}, but the policy has {adaptive.units}")
    if adaptive.windows is not None and carry is not None and carry.windows >= adaptive.windows:
        raise ValueError(
            f"levels: {counted(carry.windows + 1, 'window')}, but the release ends after {adaptive.windows}"
        )
    cells, units = len(level), offered(adaptive, carry)
    assert units == 1
    noisy = level + sample(scales.sample(units), cells)
    rho, nu = (sample(DiscreteLaplace(scale), cells) for scale in (scales.threshold, scales.test))
    none = np.zeros(cells, dtype=np.int64)
    groups = Groups(none, none, none[:0, None], none[:0, None]) if carry is None else unpacked(carry.published, cells)
    exact, told = (_with(rows, groups.length, new) for rows, new in ((groups.exact, level), (groups.noisy, noisy)))
    length = groups.length + 1
    limit = np.where(groups.length == 0, adaptive.threshold + rho, groups.limit)
    left = (groups.length > 0) & (deviation(exact, length) + nu >= limit)
    made_of = np.where(left, 1, length)
    values = np.where(left, noisy, smoothed(told, length, adaptive.smooth, scales.sample(units).variance))
    length = np.where(left | (length == LONGEST), 0, length)
    kept = np.arange(len(exact))[:, None] < length
    after_it = Groups(length, limit, np.where(kept, exact, 0), np.where(kept, told, 0))
    return values, made_of, after(adaptive, carry, published=after_it.packed(), units=units, rho=None, anew=True)


def _with(rows: Ints, length: Ints, new: Ints) -> Ints:
    """One more window for each cell, in its row."""
    cells = len(new)
    found = np.zeros((int(length.max(initial=0)) + 1, cells), dtype=np.int64)
    found[: len(rows)] = rows if len(rows) else found[:0]
    found[length, np.arange(cells)] = new
    return found


def deviation(exact: Ints, length: Ints) -> Ints:
    """dev of each cell's first `length` rows, rounded down, [cells].

    Sensitivity: 2 times what the rows of a cell move together. |n c_i - sum of c| / n moves by |d_i| + |sum of d| / n,
    which is 2 sum of |d_i| over all rows; that is whole, so rounding down changes nothing. Numbers are folded first.

    >>> deviation(np.array([[1], [2], [6]]), np.array([3])).tolist()
    [6]
    """
    within = np.arange(len(exact))[:, None] < length
    folded = np.where(within, _folded(exact), 0)
    apart = np.where(within, np.abs(length * folded - folded.sum(axis=0)), 0)
    found: Ints = apart.sum(axis=0) // length
    return found


def _folded(numbers: Ints) -> Ints:
    """Numbers as they are up to 2^48, and such that two that are near on the circle of 2^64 come no further apart."""
    far = np.where(numbers > 0, np.iinfo(np.int64).max - numbers, np.iinfo(np.int64).min - numbers)
    found: Ints = np.clip(np.where(np.abs(numbers // 2) > 1 << 61, far, numbers), -LARGEST, LARGEST)
    return found


def smoothed(noisy: Ints, length: Ints, smooth: str, variance: float) -> Floats:
    """From each cell's first `length` rows, [cells].

    Args:
        smooth: `mean`, `median`, or `james_stein`: from the last one towards the mean, the further the more of their
            spread is noise.
        variance: of the noise.

    >>> [smoothed(np.array([[1], [2], [6]]), np.array([3]), how, 1.0).tolist() for how in ("mean", "median")]
    [[3.0], [2.0]]
    """
    within = np.arange(len(noisy))[:, None] < length
    if smooth == "median":
        found: Floats = np.nanmedian(np.where(within, noisy, np.nan), axis=0)
        return found
    mean: Floats = np.asarray(np.where(within, noisy, 0).sum(axis=0) / length)
    if smooth == "mean":
        return mean
    spread = np.where(within, (noisy - mean) ** 2, 0.0).sum(axis=0)
    keep = np.where(length > 3, 1 - (length - 3) * variance / np.where(spread > 0, spread, 1.0), 0.0)
    last = noisy[length - 1, np.arange(noisy.shape[1])]
    towards: Floats = mean + np.clip(keep, 0.0, 1.0) * np.where(spread > 0, last - mean, 0.0)
    return towards
