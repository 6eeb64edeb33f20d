"""Cost of adaptive publication, and the least noise that a budget covers.

Neighbours are those of privacy.protection. At the end of each window the histograms of neighbours differ by at most the
`sensitivity` r in L1: the largest L1 norm of one unit at any one time, in grid steps. It is r and not 2 r, since the
unit is at no time present in both. No bound on the number of a unit's changes is needed.

Two kinds of noise on the integers:

    decisions   discrete Laplace, on the distance |x - o|_1 of the histogram x from the last published numbers o, which
                are public: it moves by at most r between neighbours (triangle inequality), up or down
    samples     discrete Laplace or discrete Gaussian, on each cell of a new histogram: r in L1 between neighbours. Or
                on sums over cells, which move by r times the norm of the largest column; and some sketchers choose
                places privately (privacy.adaptive.samples)

With Laplace samples the guarantee is (epsilon, 0)-DP for all windows together, with `spent` <= epsilon:

    a noisy threshold    m (r/b1 + 2 c r/b2): neighbours can differ in m runs of AboveThreshold, each with c answers
                         'above' (Lyu, Su, Li, "Understanding the Sparse Vector Technique for Differential Privacy",
                         VLDB 2017, algorithm 7). The rule defines m and c, with its reason (`Rule.runs`)
    decisions only       `among` decisions, r/b2 each (Kellaris et al. 2014)
    all samples          r column / scale each; no more than `units` units in any `among` windows
    splits of samples    rounds * 2 r / scale, if a cell is in `rounds` splits (privacy.noise.choices)

With Gaussian samples it is rho-zCDP, with `spent` <= rho (Bun, Steinke, "Concentrated Differential Privacy", TCC 2016).
In rho many small parts cost less than their sum, so AboveThreshold restarts after each sample, c = 1:

    a noisy threshold    m (r/b1 + 2 r/b2)^2 / 2
    decisions only       `among` decisions, (r/b2)^2 / 2 each
    all samples          r^2 column / (2 scale^2) each; the L2 norm of one unit at any one time is at most r, too
    splits of samples    rounds * (2 r / scale)^2 / 2

`spent` is exact, in rational numbers, and both guarantees also hold for data that react to the release. Proofs, and how
each differs from its source: docs/proofs/adaptive.md.
"""

from fractions import Fraction

from privacy.adaptive.base import Rule
from privacy.adaptive.scales import Scales
from privacy.cells.base import Sketcher
from privacy.cells.each import Each
from privacy.checks import at_least, positive
from privacy.noise.kinds import NOISE, Mechanism
from privacy.noise.sampling import LARGEST_SCALE
from privacy.upward import above


def scales_for(
    rule: Rule,
    *,
    budget: float,
    sensitivity: int,
    noise: Mechanism = "laplace",
    over: Sketcher = Each(cells=1),  # noqa: B008 - a frozen value
) -> Scales:
    """Return the least noise that a budget covers; each scale is rounded upward.

    A run of AboveThreshold splits its epsilon between threshold and distances as 1 : (2 c)^(2/3) for c answers 'above',
    which minimises the sum of the two variances (Lyu, Su, Li 2017).

    Args:
        rule: decides which windows are sampled; its share of the budget is for decisions.
        budget: epsilon, or rho if samples have Gaussian noise, for decisions and samples together.
        sensitivity: r, in grid steps.
        noise: noise of samples.
        over: makes samples; its share of the samples' budget is for splits.

    Raises:
        ValueError: the rule has no proof for this noise, or the noise exceeds what can be sampled.

    >>> from privacy.adaptive.base import Period
    >>> from privacy.adaptive.fixed import FixedRule
    >>> rule = FixedRule(period=Period(windows=100), interval=10)
    >>> scales_for(rule, budget=1.0, sensitivity=3).sample(1)
    DiscreteLaplace(scale=30.0)
    >>> round(scales_for(rule, budget=0.2, sensitivity=3, noise="gaussian").sample(1).scale, 9)
    15.0
    """
    positive(NOISE[noise].unit, budget)
    at_least("sensitivity", sensitivity, 1)
    if rule.pure and not NOISE[noise].pure:
        raise ValueError(f"{rule.name} is proved for Laplace samples alone")
    whole, r, column, rounds = Fraction(budget), Fraction(sensitivity), over.column(NOISE[noise].power), over.rounds
    decisions = whole * Fraction(rule.decisions or 0)
    threshold = test = None
    runs = rule.runs(fresh=restarts(rule, noise))
    if runs is not None:
        threshold, test = _of_run(r, 1 / _least(noise, decisions / runs[0]), runs[1])
    elif decisions:
        test = _scale(r * _least(noise, decisions / rule.period.among))
    of_splits = (whole - decisions) * Fraction(over.share)
    scales = Scales(
        sensitivity=sensitivity,
        threshold=threshold,
        test=test,
        whole=_scale(r * _least(noise, (whole - decisions - of_splits) / column)),
        units=rule.units,
        noise=noise,
        column=column,
        splits=_scale(2 * r * _least(noise, of_splits / rounds)) if rounds else None,
        rounds=rounds,
    )
    _scale(Fraction(scales.sample(rule.fewest).scale))
    return scales


def _of_run(r: Fraction, epsilon: Fraction, answers: int) -> tuple[float, float]:
    """Return the noise of the threshold and of each distance, for a run with `answers` answers 'above'."""
    of_threshold = epsilon / (1 + Fraction((2.0 * answers) ** (2 / 3)))
    return _scale(r / of_threshold), _scale(2 * r * answers / (epsilon - of_threshold))


def _scale(least: Fraction) -> float:
    if least > LARGEST_SCALE:
        raise ValueError("the budget needs noise beyond 2^55 steps; use a coarser grid or a larger epsilon")
    return above(least)


def _least(noise: Mechanism, cost: Fraction) -> Fraction:
    """Return the scale for sensitivity 1 and this cost, rounded up."""
    _scale(1 / (cost * Fraction(LARGEST_SCALE)))  # floats cannot represent the square of a much larger one
    return NOISE[noise].scale_for(cost)


def spent(rule: Rule, scales: Scales) -> Fraction:
    """Return the cost of scales over all windows that the budget is for: epsilon, or rho if samples are Gaussian.

    Epsilon is exact, and attained except for rounding. Neighbours and sensitivity are those of the module.

    >>> from privacy.adaptive.ba import BaRule
    >>> from privacy.adaptive.base import Period
    >>> rule = BaRule(period=Period(span=7), decisions=0.5)
    >>> spent(rule, scales_for(rule, budget=1.0, sensitivity=3)) <= 1
    True
    >>> spent(rule, scales_for(rule, budget=1.0, sensitivity=3, noise="gaussian")) <= 1
    True
    """
    r = Fraction(scales.sensitivity)
    sample, splits, runs, run = r / Fraction(scales.whole), Fraction(0), rule.period.among, Fraction(0)
    if scales.splits is not None:
        splits = 2 * r / Fraction(scales.splits)
    noisy = rule.runs(fresh=restarts(rule, scales.noise))
    if noisy is not None and scales.threshold is not None and scales.test is not None:
        runs = noisy[0]
        run = r / Fraction(scales.threshold) + 2 * noisy[1] * r / Fraction(scales.test)
    elif scales.test is not None:
        run = r / Fraction(scales.test)
    cost = NOISE[scales.noise].cost
    return scales.column * cost(sample) + scales.rounds * cost(splits) + runs * cost(run)


def restarts(rule: Rule, noise: Mechanism) -> bool:
    """Return whether AboveThreshold restarts after each sample, with fresh noise of the threshold."""
    return rule.period.span is not None or NOISE[noise].restarts
