"""Medians by smooth sensitivity if places are protected up to a distance, after Fang and Chang; benchmarks only.

n units are on an axis from `low` to `high`; one *move* changes the place of one unit by at most `reach`, and neighbours
are one move apart. The median is the ordered point number ceil(n / 2).

A set z that is k moves away can have a gap of w <= reach next to its median if k points can leave an interval of length
w around it, to either side: one move each, since w <= reach. Other intervals cost no less (a point that must cross an
interval has to move as well). So with x_0 = low, x_(n+1) = high and m the median's number, the local sensitivity at
distance k is

    A(k) = max over t = 0..k+1 of min(reach, x_(m+t) - x_(m+t-k-1)),

and the smooth one is S = max over k of exp(-beta k) A(k) (Nissim, Raskhodnikova, Smith 2007, whose A(k) for
replacements has no cap). S <= reach, which is the global sensitivity.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def rank(units: int) -> int:
    """Return the median's number, counted from 1."""
    return (units + 1) // 2


def smooth_sensitivity(points: Floats, *, low: float, high: float, reach: float, beta: float) -> float:
    """Return the smooth sensitivity S of the median of ordered points [units].

    Args:
        points: in order, [units].
        low: lower end of the axis.
        high: upper end of the axis.
        reach: protected distance, in units of the axis.
        beta: rate at which the weight of a distance decreases.

    >>> smooth_sensitivity(np.array([1.0, 2.0, 3.0]), low=0.0, high=4.0, reach=5.0, beta=100.0)
    1.0
    """
    units, middle = len(points), rank(len(points))
    padded = np.concatenate([[low], points, [high]])
    best = 0.0
    for k in range(units + 1):
        if reach * math.exp(-beta * k) <= best:
            break
        first = np.arange(max(0, middle - k - 1), min(middle, units - k) + 1)
        widest = float(np.minimum(reach, padded[first + k + 1] - padded[first]).max(initial=0.0))
        if k >= units or not len(first):
            widest = min(reach, high - low)
        best = max(best, math.exp(-beta * k) * widest)
    return best


def cauchy(
    points: Floats, *, low: float, high: float, reach: float, epsilon: float, random: np.random.Generator
) -> float:
    """Return the median of ordered points [units] with Cauchy noise (Nissim et al., lemma 2.7).

    Its density is 1 / (1 + z^2), its scale 6 S / epsilon, and beta = epsilon / 6. By the rule of `student` with d = 1
    this costs epsilon / 3.

    Args:
        points: in order, [units].
        low: lower end of the axis.
        high: upper end of the axis.
        reach: protected distance, in units of the axis.
        epsilon: the budget.
        random: generator of the noise.
    """
    beta = epsilon / 6
    scale = smooth_sensitivity(points, low=low, high=high, reach=reach, beta=beta) / beta
    return float(np.clip(points[rank(len(points)) - 1] + scale * random.standard_cauchy(), low, high))


def student(
    points: Floats, *, low: float, high: float, reach: float, epsilon: float, random: np.random.Generator
) -> float:
    """Return the median of ordered points [units] with noise of Student's t distribution and scale S / s.

    It has d = 3 degrees of freedom, so that its variance is finite. The density's logarithm changes by at most
    (d + 1) / (2 sqrt(d)) with z, at z^2 = d, and by -1 to d with the logarithm of its scale. The medians of neighbours
    differ by at most the S of either, which is s scales, and the scales by a factor of exp(beta). Together this costs
    epsilon = s (d + 1) / (2 sqrt(d)) + d beta (after Bun and Steinke 2019, who have (d + 1) beta). beta = epsilon / 6
    is best if gaps are similar: A(k) ~ k + 1, S / s ~ 1 / (e beta s).

    Args:
        points: in order, [units].
        low: lower end of the axis.
        high: upper end of the axis.
        reach: protected distance, in units of the axis.
        epsilon: the budget.
        random: generator of the noise.
    """
    beta, s = epsilon / 6, epsilon / 2 * math.sqrt(3) / 2
    scale = smooth_sensitivity(points, low=low, high=high, reach=reach, beta=beta) / s
    return float(np.clip(points[rank(len(points)) - 1] + scale * random.standard_t(3), low, high))


def by_reach(
    points: Floats, *, low: float, high: float, reach: float, epsilon: float, random: np.random.Generator
) -> float:
    """Return the median of ordered points [units] with Laplace noise for the global sensitivity.

    Args:
        points: in order, [units].
        low: lower end of the axis.
        high: upper end of the axis.
        reach: protected distance, in units of the axis.
        epsilon: the budget.
        random: generator of the noise.
    """
    return float(np.clip(points[rank(len(points)) - 1] + random.laplace(scale=reach / epsilon), low, high))


def exponential(
    points: Floats, *, low: float, high: float, epsilon: float, random: np.random.Generator, share: float = 0.5
) -> float:
    """Return a quantile of ordered points [units] by the exponential mechanism (Smith 2011), for a public n.

    The score of a place is minus the distance between n share and the number of points below it. A point that moves
    by any distance changes a score by 1. So this protects all places, and gains nothing from a distance.

    Args:
        points: in order, [units].
        low: lower end of the axis.
        high: upper end of the axis.
        epsilon: the budget.
        random: generator of the choice.
        share: of the quantile.
    """
    padded = np.concatenate([[low], points, [high]])
    widths = np.diff(padded)
    below = np.arange(len(points) + 1)
    with np.errstate(divide="ignore"):
        log = np.log(widths) - epsilon / 2 * np.abs(below - share * len(points))
    chosen = int(np.argmax(log + random.gumbel(size=len(log))))
    return float(padded[chosen] + random.random() * widths[chosen])
