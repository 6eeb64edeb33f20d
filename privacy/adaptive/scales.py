"""The noise of adaptive publication, and what it costs.

Neighbours are those of privacy.protection. At the end of each window the histograms of neighbours differ by at most the
`sensitivity` r in L1: the largest L1 norm of what one unit is at any one time, in grid steps. It is r and not 2 r,
since at no time the unit is there in both. Nothing is asked about how often a unit changes, nor a bound on it.

Two kinds of noise, both discrete Laplace on the integers:

    decisions   on the distance |x - o|_1 of the histogram x from what was published last, o, which is public: it moves
                by at most r between neighbours (triangle inequality), in either direction
    samples     on each cell of a histogram that is published anew: r in L1 between neighbours

What is guaranteed is (epsilon, 0)-DP for all windows together, with `spent` <= epsilon exactly, in rational numbers;
also for data that react to what was published. Proofs, and how each differs from its source: docs/proofs/adaptive.md.

    everything, dsft and dsat   r/b1 + 2 (C - 1) r/b2: AboveThreshold once, with C - 1 answers 'above', since the first
                                window is sampled in any case (Lyu, Su, Li, "Understanding the Sparse Vector Technique
                                for Differential Privacy", VLDB 2017, algorithm 7)
    span, dsft and dsat         C (r/b1 + 2 r/b2): AboveThreshold begins anew after each sample
    bd, ba                      `among` decisions, r/b2 each (Kellaris et al. 2014)
    samples of all              r / scale each; no more than `units` units in any `among` windows
"""

from dataclasses import dataclass
from fractions import Fraction

from privacy.adaptive.policy import Adaptive
from privacy.checks import at_least, positive
from privacy.exact import Json, Members
from privacy.noise.distributions import DiscreteLaplace
from privacy.noise.sampling import LARGEST_SCALE
from privacy.upward import above


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Scales of discrete Laplace noise, in grid steps.

    Attributes:
        sensitivity: r.
        threshold: b1, of the threshold; None where it has no noise.
        test: b2, of each distance; None where nothing is decided by the data.
        whole: of each cell of a sample that takes all units at once; one that takes u of n has n / u times as much.
        units: n.
    """

    sensitivity: int
    threshold: float | None
    test: float | None
    whole: float
    units: int

    def sample(self, units: int) -> DiscreteLaplace:
        """The noise of each cell of a sample that takes so many units."""
        return DiscreteLaplace(above(Fraction(self.whole) * self.units / units))

    def to_json(self) -> Json:
        return {
            "sensitivity": self.sensitivity,
            "threshold": None if self.threshold is None else self.threshold.hex(),
            "test": None if self.test is None else self.test.hex(),
            "whole": self.whole.hex(),
            "units": self.units,
        }


def scales_from_json(members: Members) -> Scales:
    """Scales of a document; `spent` says what they cost."""
    scales = Scales(
        sensitivity=members.positive_count("sensitivity"),
        threshold=members.optional_number("threshold"),
        test=members.optional_number("test"),
        whole=members.number("whole"),
        units=members.positive_count("units"),
    )
    members.end()
    return scales


def scales_for(adaptive: Adaptive, *, epsilon: float, sensitivity: int) -> Scales:
    """The least noise that `epsilon` covers, each scale rounded upward.

    Between threshold and distances epsilon is split as 1 : (2 c)^(2/3) for c answers 'above', which makes the sum of
    the two variances least (Lyu, Su, Li 2017).

    Args:
        epsilon: for decisions and samples together.
        sensitivity: r, in grid steps.

    >>> adaptive = Adaptive(policy="fixed", windows=100, interval=10)
    >>> scales_for(adaptive, epsilon=1.0, sensitivity=3).sample(1)
    DiscreteLaplace(scale=30.0)
    """

    def scale(least: Fraction) -> float:
        if least > LARGEST_SCALE:
            raise ValueError(f"epsilon={epsilon} needs noise beyond 2^55 steps; use a coarser grid or a larger epsilon")
        return above(least)

    positive("epsilon", epsilon)
    at_least("sensitivity", sensitivity, 1)
    whole, r = Fraction(epsilon), Fraction(sensitivity)
    decisions = whole * Fraction(adaptive.decisions or 0)
    threshold = test = None
    if adaptive.sparse_vector:
        runs, answers = _runs(adaptive)
        of_threshold = decisions / (1 + Fraction((2.0 * answers) ** (2 / 3)))
        threshold = scale(r * runs / of_threshold)
        test = scale(2 * r * runs * answers / (decisions - of_threshold))
    elif decisions:
        test = scale(r * adaptive.among / decisions)
    scales = Scales(
        sensitivity=sensitivity,
        threshold=threshold,
        test=test,
        whole=scale(r / (whole - decisions)),
        units=adaptive.units,
    )
    scale(Fraction(scales.sample(1).scale))
    return scales


def spent(adaptive: Adaptive, scales: Scales) -> Fraction:
    """The epsilon that scales cost, all windows of `among` together: exact, and attained but for rounding.

    >>> adaptive = Adaptive(policy="ba", span=7, decisions=0.5)
    >>> spent(adaptive, scales_for(adaptive, epsilon=1.0, sensitivity=3)) <= 1
    True
    """
    r = Fraction(scales.sensitivity)
    samples = r / Fraction(scales.whole)
    if scales.test is None:
        return samples
    if scales.threshold is None:
        return samples + adaptive.among * r / Fraction(scales.test)
    runs, answers = _runs(adaptive)
    return samples + runs * (r / Fraction(scales.threshold) + 2 * answers * r / Fraction(scales.test))


def _runs(adaptive: Adaptive) -> tuple[int, int]:
    """How many runs of AboveThreshold neighbours can differ in, and how many answers 'above' each of them gives."""
    samples = adaptive.samples or 0
    return (1, samples - 1) if adaptive.span is None else (samples, 1)
