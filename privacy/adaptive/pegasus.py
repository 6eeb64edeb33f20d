"""Policy `pegasus`: all windows are sampled, and each cell is smoothed over windows in which it hardly changed.

Source: Chen, Machanavajjhala, Hay, Miklau, "PeGaSus: Data-Adaptive Differentially Private Stream Processing", CCS 2017.
Neighbours: as in privacy.protection; in w windows their histograms differ by at most r in L1. Three parts:

    perturber   each window is a sample: each cell gets noise of scale b
    grouper     for each cell separately: with dev(G) the sum of distances of the exact numbers of the windows G from
                their mean, window t joins the group G before it if dev(G + t) + nu < threshold + rho; rho is sampled
                again for each group, nu for each test. Otherwise the group is closed, and t is a closed group alone
    smoother    publishes the mean, the median or a James-Stein estimate of the noisy numbers of t's group so far:
                post-processing

Noisy numbers and groups are public. Cost with Laplace noise, for w windows in which neighbours differ (all windows, for
everything):

    w r / b + 2 w r (1 / b1 + 2 / b2)

since each window is in the tests of one group, and dev moves by twice the total movement of its windows. So one window
(w = 1, r = 1) costs as much as in the paper with b1 = 4 / epsilon_g and b2 = 8 / epsilon_g. Proof:
docs/proofs/adaptive.md.

A group is closed after `LONGEST` windows, a public number, so that the carry is bounded.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from privacy.adaptive.base import THRESHOLD, AdaptiveTerms, Period, Publication, Rule, Stepped
from privacy.adaptive.carry import AdaptiveCarry, Ints
from privacy.adaptive.samples import Sample
from privacy.adaptive.scales import Scales
from privacy.adaptive.spending import after, check_windows
from privacy.adaptive.step import check_scales
from privacy.cells.base import Reading, Sketcher
from privacy.cells.sums import Floats
from privacy.checks import at_least, proportion
from privacy.columns import Column
from privacy.counted import counted
from privacy.noise.distributions import DiscreteLaplace
from privacy.noise.kinds import Mechanism
from privacy.problems import RuleError

Smooth = Literal["mean", "median", "james_stein"]
SMOOTHS: tuple[Smooth, ...] = get_args(Smooth)

DECISIONS = 0.2
"""Default share of the budget for decisions."""

LONGEST = 64
"""Largest number of windows in a group."""

MOST_CELLS = 1 << 16
"""Largest number of cells of a query: 128 numbers are carried for each."""

LARGEST = 1 << 48
"""Largest absolute value of a number in a deviation, so that no sum over a group exceeds 64 bits."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Private state: the open group of each cell.

    Attributes:
        length: number of windows in it, int64 [cells]; 0 if no group is open.
        limit: its threshold plus noise, int64 [cells].
        exact, noisy: numbers of its windows, int64 [windows, cells]; rows from `length` on are zeros.
    """

    length: Ints
    limit: Ints
    exact: Ints
    noisy: Ints

    def packed(self) -> Ints:
        """Return the groups as one array for `unpacked`, no longer than the longest group needs."""
        rows = int(self.length.max(initial=0))
        parts = (self.length, self.limit, self.exact[:rows].ravel(), self.noisy[:rows].ravel())
        return np.concatenate(parts)


def unpacked(packed: Ints, cells: int) -> Groups:
    """Return the groups that `packed` packed.

    Args:
        packed: int64 [numbers].
        cells: number of cells.

    Raises:
        ValueError: the array does not fit this number of cells.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pegasus:
    """Policy `pegasus` with the settings of a spec.

    Attributes:
        threshold: threshold in the measure's units, for the deviations of one cell in a group.
        smooth: how a number is estimated from a group.
        decisions: share of the query's budget for decisions; None: the default.
    """

    name: ClassVar[str] = "pegasus"
    missing: ClassVar[Mapping[str, str]] = {
        "threshold": "largest sum of deviations of a cell from its mean in a group of windows; add threshold: 100"
    }
    columns: ClassVar[tuple[Column, ...]] = (Column("grouped", int, "pegasus"),)

    threshold: float
    smooth: Smooth = "mean"
    decisions: float | None = None

    def __post_init__(self) -> None:
        THRESHOLD.check("threshold", self.threshold)

    def settled(self, terms: AdaptiveTerms) -> Rule:
        return PegasusRule(
            period=terms.period,
            decisions=DECISIONS if self.decisions is None else self.decisions,
            threshold=round(self.threshold / terms.grid),
            smooth=self.smooth,
        )

    def problems(self, cells: int, *, over: bool) -> Iterator[RuleError]:
        if over or cells > MOST_CELLS:
            yield RuleError(f"pegasus smooths each cell separately, at most {MOST_CELLS:,}; use fewer cells")

    def sentence(self, length: Callable[[int], str]) -> str:
        return "Each cell is smoothed over windows in which it hardly changed. A smoothed number has no known interval."


@dataclass(frozen=True, slots=True, kw_only=True)
class PegasusRule:
    """`Pegasus` for one release; it publishes windows itself.

    Attributes:
        decisions: share of the budget for decisions; the rest is for samples.
        threshold: grid steps, for the deviations of one cell in a group.
        smooth: how a number is estimated from a group.
    """

    name: ClassVar[str] = "pegasus"
    pure: ClassVar[bool] = True
    fewest: ClassVar[int] = 1
    repeats: ClassVar[bool] = False
    premise: ClassVar[str | None] = (
        "The data choose over which windows numbers are smoothed, which the budget pays for too: query {names}. A "
        "standard deviation there is that of the noise alone."
    )
    unsummed: ClassVar[str | None] = (
        "its numbers are smoothed over windows that the data chose, so the error of a sum is unknown; use another "
        "policy"
    )
    kept: ClassVar[int] = 2 * LONGEST + 3

    period: Period
    decisions: float
    threshold: int
    smooth: Smooth = "mean"

    def __post_init__(self) -> None:
        proportion("decisions", self.decisions)
        at_least("threshold", self.threshold, 0)
        if self.smooth not in SMOOTHS:
            raise ValueError(f"smooth={self.smooth!r}: expected one of {', '.join(SMOOTHS)}")

    @property
    def units(self) -> int:
        return self.period.among

    @property
    def publication(self) -> Publication:
        return self

    def runs(self, *, fresh: bool) -> tuple[int, int] | None:
        return 2 * self.period.among, 1  # the deviations of all groups move by 2 r in each window

    def wanted(self, carry: AdaptiveCarry | None, left: int) -> int:
        return 1

    def settings(self, grid: float, noise: Mechanism) -> dict[str, Any]:
        found = {**self.period.settings, "threshold": self.threshold * grid, "decisions": self.decisions}
        return found if self.smooth == "mean" else {**found, "smooth": self.smooth}

    def step(
        self,
        scales: Scales,
        over: Sketcher,
        carry: AdaptiveCarry | None,
        level: Ints,
        sample: Sample,
        reading: Reading | None = None,
    ) -> Stepped:
        """Publish one window (`Publication.step`).

        The public numbers are the smoothed ones, bit by bit, and then the number of windows of each. The carry's
        `published` are the packed groups.

        Args:
            scales: scales of the noise.
            over: makes samples.
            carry: carry of the previous step; None in the first.
            level: exact histogram in grid steps, int64 [cells].
            sample: returns noise, int64 [samples].
            reading: not used: groups are computed from the carry.
        """
        if scales.threshold is None or scales.test is None:
            raise ValueError("scales: of a policy that does not group windows")
        check_scales(self, scales, over)
        check_windows(self, carry)
        cells = len(level)
        noisy = level + sample(scales.sample(1), cells)
        rho, nu = (sample(DiscreteLaplace(scale), cells) for scale in (scales.threshold, scales.test))
        none = np.zeros(cells, dtype=np.int64)
        groups = (
            Groups(none, none, none[:0, None], none[:0, None]) if carry is None else unpacked(carry.published, cells)
        )
        exact, seen = (_with(rows, groups.length, new) for rows, new in ((groups.exact, level), (groups.noisy, noisy)))
        length = groups.length + 1
        limit = np.where(groups.length == 0, self.threshold + rho, groups.limit)
        left = (groups.length > 0) & (deviation(exact, length) + nu >= limit)
        values = np.where(left, noisy, smoothed(seen, length, self.smooth, scales.sample(1).variance))
        public = np.concatenate([values.view(np.int64), np.where(left, 1, length)])
        length = np.where(left | (length == LONGEST), 0, length)
        kept = np.arange(len(exact))[:, None] < length
        packed = Groups(length, limit, np.where(kept, exact, 0), np.where(kept, seen, 0)).packed()
        return Stepped(
            units=1,
            public=public,
            reading=self.read(over, public),
            carry=after(self, carry, published=packed, units=1),
        )

    def read(self, over: Sketcher, public: Ints) -> Reading:
        """Return numbers with the deviation of the noise in each mean; that of other smoothers is unknown.

        Args:
            over: makes samples.
            public: int64 [2 cells], as `Stepped.public`: the bits of each number, then its number of windows.

        Raises:
            ValueError: the numbers do not fit the cells.
        """
        if public.shape != (2 * over.cells,):
            raise ValueError(f"smoothed numbers: not of {counted(over.cells, 'cell')}")
        values, lengths = np.ascontiguousarray(public[: over.cells]).view(np.float64), public[over.cells :]
        deviations = 1 / np.sqrt(lengths)
        if self.smooth != "mean":
            deviations[lengths > 1] = np.nan
        return Reading(cells=values, deviations=deviations, spread=lengths)

    def check(self, over: Sketcher, carry: AdaptiveCarry) -> None:
        unpacked(carry.published, over.cells)


def _with(rows: Ints, length: Ints, new: Ints) -> Ints:
    """Return the rows [windows, cells] with one more window for each cell."""
    cells = len(new)
    found = np.zeros((int(length.max(initial=0)) + 1, cells), dtype=np.int64)
    found[: len(rows)] = rows if len(rows) else found[:0]
    found[length, np.arange(cells)] = new
    return found


def deviation(exact: Ints, length: Ints) -> Ints:
    """Return dev of each cell's first `length` rows, rounded down, int64 [cells].

    Sensitivity: twice the total movement of the rows of a cell. |n c_i - sum of c| / n moves by |d_i| + |sum of d| / n,
    which is 2 sum of |d_i| over all rows; that is an integer, so rounding down changes nothing. Numbers are folded
    first.

    Args:
        exact: exact numbers, int64 [windows, cells].
        length: number of rows of each cell, int64 [cells].

    >>> deviation(np.array([[1], [2], [6]]), np.array([3])).tolist()
    [6]
    """
    within = np.arange(len(exact))[:, None] < length
    folded = np.where(within, _folded(exact), 0)
    apart = np.where(within, np.abs(length * folded - folded.sum(axis=0)), 0)
    found: Ints = apart.sum(axis=0) // length
    return found


def _folded(numbers: Ints) -> Ints:
    """Return numbers unchanged up to 2^48, and folded beyond: numbers near on the circle of 2^64 remain as near."""
    far = np.where(numbers > 0, np.iinfo(np.int64).max - numbers, np.iinfo(np.int64).min - numbers)
    found: Ints = np.clip(np.where(np.abs(numbers // 2) > 1 << 61, far, numbers), -LARGEST, LARGEST)
    return found


def smoothed(noisy: Ints, length: Ints, smooth: str, variance: float) -> Floats:
    """Return an estimate from each cell's first `length` rows, float64 [cells].

    Args:
        noisy: noisy numbers, int64 [windows, cells].
        length: number of rows of each cell, int64 [cells].
        smooth: `mean`, `median`, or `james_stein`: from the last number towards the mean, further if more of their
            spread is noise.
        variance: variance of the noise.

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
