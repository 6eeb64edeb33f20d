"""When a histogram is published anew: the policies, as values.

A histogram here is the level of a query: counts or sums over all its cells at the end of a window. In each window it is
published anew (the window is *sampled*), with fresh noise, or what was published last is repeated.

    fixed   sampled every so many windows, which may get different parts of the budget; the data are not looked at
    dsft    sampled when it has moved further from what was published last than a threshold, at most C times
    dsat    the same, with a threshold that is steered so that samples are spread over all windows
    bd, ba  sampled when repeating would be further off than publishing anew; a sample gets half of the budget
            that is left (bd), or that of the windows before it that were not sampled (ba)
    pegasus sampled always, and each cell smoothed over windows in which it hardly changed (privacy.adaptive.grouping)

Sources: Li et al., "Differentially Private Histogram Publication for Dynamic Datasets", CIKM 2015 (DSFT, DSAT);
Kellaris et al., "Differentially Private Event Sequences over Infinite Streams", VLDB 2014 (BD, BA). What was mended in
them, and every proof: docs/proofs/adaptive.md.

Choosing a policy or its parameters by looking at the data is a look at the data, which no accounting covers.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from privacy.checks import at_least, proportion
from privacy.noise.kinds import NOISE, Mechanism

Policy = Literal["fixed", "dsft", "dsat", "bd", "ba", "pegasus"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

Smooth = Literal["mean", "median", "james_stein"]
SMOOTHS: tuple[Smooth, ...] = get_args(Smooth)

Noise = Mechanism
"""Of samples; decisions have Laplace noise always."""

NEEDS: dict[Policy, tuple[str, ...]] = {
    "fixed": ("interval",),
    "dsft": ("decisions", "samples", "threshold"),
    "dsat": ("decisions", "samples", "gains"),
    "bd": ("decisions",),
    "ba": ("decisions",),
    "pegasus": ("decisions", "threshold"),
}
"""Which parameters each policy has; others are refused."""

FINEST = 1 << 20
"""Into so many units `bd` divides what a span may spend on samples, so that halving ends and is exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """How strongly `dsat` steers, see privacy.adaptive.offset.

    Attributes:
        proportional: of each sample ahead of schedule.
        integral: of a sample ahead of schedule for as long as one sample is to last.
        dead_band: samples ahead of schedule or behind that are let be.
    """

    proportional: float = 1.0
    integral: float = 0.1
    dead_band: float = 1.0

    def __post_init__(self) -> None:
        for name in ("proportional", "integral", "dead_band"):
            if not 0 <= getattr(self, name) <= 1000:
                raise ValueError(f"gains.{name}={getattr(self, name)} must lie between 0 and 1000")


PARTS = 1 << 32
"""Into so many units the budget is divided where samples get different ones."""


RESERVE = 10.0
"""Of new releases, see privacy.adaptive.offset; why so much: docs/decisions/adaptive-thresholds.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a budget is spread over the samples of a fixed rhythm, which matter differently.

    Attributes:
        weights: how much samples matter, one after another, and then from the first one again.
        units: what each of them takes, of `PARTS`.
        least: no units have a smaller sum of squared errors, in squares of weights (privacy.strategies.window_budgets).
    """

    weights: tuple[float, ...]
    units: tuple[int, ...]
    least: float

    def __post_init__(self) -> None:
        if not self.units or len(self.units) != len(self.weights):
            raise ValueError("units: expected one for each weight")
        if not 1 <= min(self.units) <= max(self.units) <= PARTS:
            raise ValueError(f"units: expected 1 to {PARTS} for each sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """A policy with its parameters, all of them public.

    Just one of `windows` and `span` is given: what is protected is everything that a unit does in a release of
    so many windows, or what it does in any so many consecutive windows (privacy.protection) of a release without end.

    Attributes:
        windows: N.
        span: w.
        decisions: share of the budget, epsilon or rho, for decisions; the rest is for samples.
        samples: C, how many windows may be sampled, of N or of any w.
        threshold: grid steps; a window is sampled that is so much further (in L1) from what was published last than the
            noise of a sample accounts for.
        gains: of steering.
        interval: windows from one sample to the next.
        spread: what each sample of a rhythm takes; None: all of them the same.
        reserve: of dsat in a span, how much dearer its last samples are; 0 in plans that say nothing of it.
        smooth: how `pegasus` smooths; there the threshold is for the deviations of one cell in a group.

    >>> Adaptive(policy="dsft", windows=365, decisions=0.2, samples=20, threshold=500).among
    365
    >>> Adaptive(policy="ba", span=7)
    Traceback (most recent call last):
    ValueError: decisions: missing; the policy ba needs it
    """

    policy: Policy
    windows: int | None = None
    span: int | None = None
    decisions: float | None = None
    samples: int | None = None
    threshold: int | None = None
    gains: Gains | None = None
    interval: int | None = None
    spread: Spread | None = None
    reserve: float = 0.0
    smooth: Smooth = "mean"

    def __post_init__(self) -> None:
        if not 0 <= self.reserve <= 1000 or (self.reserve and (self.policy != "dsat" or self.span is None)):
            raise ValueError(f"reserve={self.reserve} must lie between 0 and 1000, and is for dsat in a span")
        if self.policy not in POLICIES:
            raise ValueError(f"policy={self.policy!r} must be one of {', '.join(POLICIES)}")
        if (self.windows is None) == (self.span is None):
            raise ValueError("give windows (to protect everything) or span (to protect any so many windows), not both")
        at_least("span" if self.windows is None else "windows", self.among, 1)
        for name in ("decisions", "samples", "threshold", "gains", "interval"):
            given, needed = getattr(self, name) is not None, name in NEEDS[self.policy]
            if given != needed:
                what = "missing" if needed else "unknown"
                raise ValueError(f"{name}: {what}; the policy {self.policy} {'needs it' if needed else 'has none'}")
        if self.decisions is not None:
            proportion("decisions", self.decisions)
        if self.samples is not None:
            # The first window is always sampled, so that one sample for everything would leave nothing to decide.
            at_least("samples", self.samples, 2 if self.span is None else 1)
            if self.samples > self.among:
                raise ValueError(f"samples={self.samples} must be at most the number of windows, {self.among}")
        if self.threshold is not None:
            at_least("threshold", self.threshold, 0)
        if self.interval is not None:
            at_least("interval", self.interval, 1)
        if self.smooth not in SMOOTHS or (self.smooth != "mean" and self.policy != "pegasus"):
            raise ValueError(f"smooth={self.smooth!r}: one of {', '.join(SMOOTHS)}, of the policy pegasus")
        if self.spread is not None and self.policy != "fixed":
            raise ValueError(f"weights: unknown; the policy {self.policy} has none")

    @property
    def among(self) -> int:
        """The number of windows that the budget is for: N or w."""
        return self.windows or self.span or 0

    @property
    def units(self) -> int:
        """Into how many equal units the budget of samples is divided; no more are spent in any `among` windows."""
        if self.samples is not None:
            return self.samples
        if self.spread is not None:
            return PARTS
        if self.interval is not None:
            return -(-self.among // self.interval)
        return self.among if self.policy in ("ba", "pegasus") else FINEST

    @property
    def fewest(self) -> int:
        """The fewest units that a sample takes."""
        return 1 if self.spread is None else min(self.spread.units)

    @property
    def sparse_vector(self) -> bool:
        """Whether decisions are those of AboveThreshold: a noisy threshold, and only 'above' is paid for each time."""
        return self.samples is not None or self.policy == "pegasus"


def usual_decisions(policy: Policy, cells: int, noise: Noise = "laplace") -> float | None:
    """A share of the budget for decisions that does well where nothing else is known: it is no look at the data.

    A distance over many cells is uncertain by the noise of what was published, about sqrt(cells) times that of one
    cell. Noise of decisions that is far below that is of no use: the more cells, the less budget they need.
    Kellaris et al. give them one half, for one cell; `bd` keeps that. Beside Gaussian samples it is a share of rho: a
    standard deviation grows with the root alone of what is taken from its budget, so decisions get more where cells are
    few. benchmarks/adaptive compares.

    >>> usual_decisions("dsat", 1), usual_decisions("dsat", 49), usual_decisions("bd", 49), usual_decisions("fixed", 1)
    (0.25, 0.1, 0.5, None)
    >>> usual_decisions("dsat", 1, "gaussian"), usual_decisions("ba", 1, "gaussian")
    (0.4, 0.15)
    """
    if policy == "fixed":
        return None
    if policy in ("bd", "pegasus"):
        return 0.5 if policy == "bd" else 0.2
    if NOISE[noise].pure:
        return 1 / (3 + math.sqrt(cells))
    return 0.15 if policy == "ba" else 1 / (1.5 + math.sqrt(cells))
