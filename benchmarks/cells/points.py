"""Sorted points with isotonic regression, as Fang and Chang publish a set of points on a line; benchmarks only.

Neighbours differ in the place of one of n units, by at most `reach`; n is public. Sorting does not increase the L1
distance of two sets: of all pairings of two sets of points on a line, the ordered one has the least sum of distances.
So the sorted sets differ by at most `reach`, and all n sorted points with Laplace noise of scale reach / epsilon cost
epsilon. If the distance is a share delta of an axis of length m, this is the paper's scale m delta / epsilon. Isotonic
regression and all answers are post-processing. Sums of k adjacent points cost the same, and their means have noise of
scale reach / (k epsilon), but the order of points within a group is lost.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

Floats = NDArray[np.float64]


def published(points: Floats, *, reach: float, epsilon: float, group: int, random: np.random.Generator) -> Floats:
    """Return noisy ordered points [units].

    Neighbours: sets in which one unit's place differs by at most `reach`. Guarantee: epsilon-DP.

    Args:
        points: places of units, [units].
        reach: the protected distance.
        epsilon: the budget.
        group: number of adjacent points that are published as their mean; the last group may have fewer.
        random: generator of the noise.
    """
    ordered = np.sort(points)
    starts = np.arange(0, len(ordered), group)
    sizes = np.diff(np.append(starts, len(ordered)))
    sums = np.add.reduceat(ordered, starts) + random.laplace(scale=reach / epsilon, size=len(starts))
    # The noise of a mean of s points has a variance of 1 / s^2.
    means = isotonic_regression(sums / sizes, weights=sizes.astype(float) ** 2).x
    return np.repeat(means, sizes)


def group_for(units: int, *, length: float, reach: float, epsilon: float) -> int:
    """Return the number of points in a group that is best if units are spread evenly over the axis.

    It depends on public numbers alone. A group is length k / n wide, so a point has a mean square error of
    (length k / n)^2 / 12 from grouping and of 2 (reach / (k epsilon))^2 from noise.

    Args:
        units: number of units n.
        length: of the axis.
        reach: the protected distance, in units of the axis.
        epsilon: the budget.

    >>> group_for(10_000, length=1.0, reach=0.01, epsilon=1.0)
    22
    """
    return max(1, round((24**0.25) * math.sqrt(units * reach / (length * epsilon))))


def counted(points: Floats, low: Floats, high: Floats) -> Floats:
    """Return the number of ordered points in each range [low, high).

    Args:
        points: in order, [points].
        low: lower ends, [ranges].
        high: upper ends, [ranges].
    """
    return (np.searchsorted(points, high) - np.searchsorted(points, low)).astype(float)
