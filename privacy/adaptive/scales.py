"""The noise of adaptive publication, and what it costs.

Neighbours are those of privacy.protection. At the end of each window the histograms of neighbours differ by at most the
`sensitivity` r in L1: the largest L1 norm of what one unit is at any one time, in grid steps. It is r and not 2 r,
since at no time the unit is there in both. Nothing is asked about how often a unit changes, nor a bound on it.

Two kinds of noise on the integers:

    decisions   discrete Laplace, on the distance |x - o|_1 of the histogram x from what was published last, o, which is
                public: it moves by at most r between neighbours (triangle inequality), in either direction
    samples     discrete Laplace or discrete Gaussian, on each cell of a histogram that is published anew: r in L1
                between neighbours. Or on sums over cells, which move by r times the norm of the largest column; and
                with a kd-tree splits are chosen privately (privacy.adaptive.sketch)

With Laplace samples what is guaranteed is (epsilon, 0)-DP for all windows together, with `spent` <= epsilon:

    everything, dsft and dsat   r/b1 + 2 (C - 1) r/b2: AboveThreshold once, with C - 1 answers 'above', since the first
                                window is sampled in any case (Lyu, Su, Li, "Understanding the Sparse Vector Technique
                                for Differential Privacy", VLDB 2017, algorithm 7)
    span, dsft and dsat         C (r/b1 + 2 r/b2): AboveThreshold begins anew after each sample
    bd, ba                      `among` decisions, r/b2 each (Kellaris et al. 2014)
    pegasus                     2 `among` (r/b1 + 2 r/b2), see privacy.adaptive.grouping
    samples of all              r column / scale each; no more than `units` units in any `among` windows
    splits of samples           rounds * 2 r / scale, where a cell is in so many splits (privacy.noise.choices)

With Gaussian samples it is rho-zCDP, with `spent` <= rho (Bun, Steinke, "Concentrated Differential Privacy", TCC 2016).
There many small parts cost less than their sum, so AboveThreshold begins anew after each sample in both cases:

    everything, dsft and dsat   (C - 1) (r/b1 + 2 r/b2)^2 / 2
    span, dsft and dsat         C (r/b1 + 2 r/b2)^2 / 2
    bd, ba                      `among` decisions, (r/b2)^2 / 2 each
    samples of all              r^2 column / (2 scale^2) each; the L2 norm of what a unit is at any one time is at most
                                r, too
    splits of samples           rounds * (2 r / scale)^2 / 2

`spent` is exact, in rational numbers, and both hold also for data that react to the release. Proofs, and how each
differs from its source: docs/proofs/adaptive.md.
"""

from dataclasses import dataclass
from fractions import Fraction

from privacy.adaptive.policy import Adaptive, Noise
from privacy.checks import at_least, positive
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.kinds import NOISE
from privacy.noise.sampling import LARGEST_SCALE
from privacy.upward import above


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Scales of noise, in grid steps.

    Attributes:
        sensitivity: r.
        threshold: b1, of the threshold; None where it has no noise.
        test: b2, of each distance; None where nothing is decided by the data.
        whole: of each cell, or node, of a sample that takes all units at once. One that takes u of n has n / u times as
            much with Laplace noise, and sqrt(n / u) times as much with Gaussian.
        units: n.
        noise: of samples.
        column: how much what gets noise in a sample moves where cells move by 1: in L1, or with Gaussian noise in
            squared L2.
        splits: of the choice of splits by a sample that takes all units; None where it splits nothing.
        rounds: in how many splits a cell is.
    """

    sensitivity: int
    threshold: float | None
    test: float | None
    whole: float
    units: int
    noise: Noise = "laplace"
    column: int = 1
    splits: float | None = None
    rounds: int = 0

    def __post_init__(self) -> None:
        for name in ("sensitivity", "units", "column"):
            at_least(name, getattr(self, name), 1)
        if (self.splits is None) != (self.rounds == 0):
            raise ValueError("scales: splits and rounds belong together")

    def sample(self, units: int) -> NoiseDistribution:
        """The noise of each cell of a sample that takes so many units.

        >>> Scales(sensitivity=1, threshold=None, test=None, whole=3.0, units=4, noise="gaussian").sample(1)
        DiscreteGaussian(scale=6.0)
        """
        kind = NOISE[self.noise]
        return kind.distribution(above(kind.widened(Fraction(self.whole), Fraction(self.units, units))))

    def split(self, units: int) -> float:
        """The scale of choices of splits, of a sample that takes so many units.

        Raises:
            ValueError: they are scales of samples that split nothing.
        """
        if self.splits is None:
            raise ValueError("scales: of samples without splits")
        return above(NOISE[self.noise].widened(Fraction(self.splits), Fraction(self.units, units)))


def scales_for(
    adaptive: Adaptive,
    *,
    budget: float,
    sensitivity: int,
    noise: Noise = "laplace",
    column: int = 1,
    rounds: int = 0,
    share: float = 0.0,
) -> Scales:
    """The least noise that a budget covers; each scale rounded upward.

    A run of AboveThreshold splits its epsilon between threshold and distances as 1 : (2 c)^(2/3) for c answers 'above',
    which makes the sum of the two variances least (Lyu, Su, Li 2017).

    Args:
        budget: epsilon, or rho where samples have Gaussian noise, for decisions and samples together; the policy's
            share of it is for decisions.
        sensitivity: r, in grid steps.
        noise: of samples.
        column, rounds: of what samples are made with (privacy.adaptive.sketch).
        share: of what samples get, for their splits; 0 if there are none.

    >>> adaptive = Adaptive(policy="fixed", windows=100, interval=10)
    >>> scales_for(adaptive, budget=1.0, sensitivity=3).sample(1)
    DiscreteLaplace(scale=30.0)
    >>> round(scales_for(adaptive, budget=0.2, sensitivity=3, noise="gaussian").sample(1).scale, 9)
    15.0
    """
    positive(NOISE[noise].unit, budget)
    at_least("sensitivity", sensitivity, 1)
    if (rounds == 0) != (share == 0.0):
        raise ValueError(f"rounds={rounds} and share={share}: both, or neither")
    if adaptive.policy == "pegasus" and not NOISE[noise].pure:
        raise ValueError("pegasus has Laplace noise alone; use privacy.mechanism: laplace")
    whole, r = Fraction(budget), Fraction(sensitivity)
    decisions = whole * Fraction(adaptive.decisions or 0)
    threshold = test = None
    if adaptive.sparse_vector:
        runs, answers = _runs(adaptive, noise)
        threshold, test = _of_run(r, 1 / _least(noise, decisions / runs), answers)
    elif decisions:
        test = _scale(r * _least(noise, decisions / adaptive.among))
    of_splits = (whole - decisions) * Fraction(share)
    scales = Scales(
        sensitivity=sensitivity,
        threshold=threshold,
        test=test,
        whole=_scale(r * _least(noise, (whole - decisions - of_splits) / column)),
        units=adaptive.units,
        noise=noise,
        column=column,
        splits=_scale(2 * r * _least(noise, of_splits / rounds)) if rounds else None,
        rounds=rounds,
    )
    _scale(Fraction(scales.sample(adaptive.fewest).scale))
    return scales


def _of_run(r: Fraction, epsilon: Fraction, answers: int) -> tuple[float, float]:
    """Noise of the threshold and of each distance, for a run of AboveThreshold with so many answers 'above'."""
    of_threshold = epsilon / (1 + Fraction((2.0 * answers) ** (2 / 3)))
    return _scale(r / of_threshold), _scale(2 * r * answers / (epsilon - of_threshold))


def _scale(least: Fraction) -> float:
    if least > LARGEST_SCALE:
        raise ValueError("the budget needs noise beyond 2^55 steps; use a coarser grid or a larger epsilon")
    return above(least)


def _least(noise: Noise, cost: Fraction) -> Fraction:
    """The scale for sensitivity 1 and this cost, rounded up."""
    _scale(1 / (cost * Fraction(LARGEST_SCALE)))  # no float holds the square of what is far beyond
    return NOISE[noise].scale_for(cost)


def spent(adaptive: Adaptive, scales: Scales) -> Fraction:
    """What scales cost, all windows of `among` together: epsilon, or rho where samples are Gaussian.

    Epsilon is exact, and attained but for rounding.

    >>> adaptive = Adaptive(policy="ba", span=7, decisions=0.5)
    >>> spent(adaptive, scales_for(adaptive, budget=1.0, sensitivity=3)) <= 1
    True
    >>> spent(adaptive, scales_for(adaptive, budget=1.0, sensitivity=3, noise="gaussian")) <= 1
    True
    """
    r = Fraction(scales.sensitivity)
    sample, splits, runs, run = r / Fraction(scales.whole), Fraction(0), adaptive.among, Fraction(0)
    if scales.splits is not None:
        splits = 2 * r / Fraction(scales.splits)
    if scales.threshold is not None and scales.test is not None:
        runs, answers = _runs(adaptive, scales.noise)
        run = r / Fraction(scales.threshold) + 2 * answers * r / Fraction(scales.test)
    elif scales.test is not None:
        run = r / Fraction(scales.test)
    cost = NOISE[scales.noise].cost
    return scales.column * cost(sample) + scales.rounds * cost(splits) + runs * cost(run)


def anew(adaptive: Adaptive, scales: Scales) -> bool:
    """Whether AboveThreshold begins anew after each sample, with fresh noise of the threshold."""
    return _anew(adaptive, scales.noise)


def _anew(adaptive: Adaptive, noise: Noise) -> bool:
    return adaptive.span is not None or NOISE[noise].restarts


def _runs(adaptive: Adaptive, noise: Noise) -> tuple[int, int]:
    """How many runs of AboveThreshold neighbours can differ in, and how many answers 'above' each of them gives.

    The first of all windows is sampled without a question; in a span it may lie before.
    """
    if adaptive.policy == "pegasus":  # deviations of all groups together move by 2 r in each window
        return 2 * adaptive.among, 1
    samples = adaptive.samples or 0
    answers = samples if adaptive.span is not None else samples - 1
    return (answers, 1) if _anew(adaptive, noise) else (1, answers)
