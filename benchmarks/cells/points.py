"""Sorted points with isotonic regression, as Fang and Chang publish a set of points on a line; in benchmarks alone.

Neighbours differ in the place of one of n units, by at most `reach`: n is public. Sorting brings no two sets further
apart: the sorted sets differ by at most `reach` in L1 (of all pairings of two sets of points on a line the one in order
has the least sum of distances). So all n sorted points with Laplace noise of scale reach / epsilon cost epsilon; where
the distance is a share delta of an axis of length m, that is their m delta / epsilon. Isotonic regression and all
answers are post-processing. Sums of k neighbours cost the same, and their means have noise of reach / (k epsilon):
what is lost is how points lie within a group.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

Floats = NDArray[np.float64]


def published(points: Floats, *, reach: float, epsilon: float, group: int, random: np.random.Generator) -> Floats:
    """The same number of points, in order.

    Args:
        group: so many neighbours are published as their mean; the last group holds what is left.
    """
    ordered = np.sort(points)
    starts = np.arange(0, len(ordered), group)
    sizes = np.diff(np.append(starts, len(ordered)))
    sums = np.add.reduceat(ordered, starts) + random.laplace(scale=reach / epsilon, size=len(starts))
    # The noise of a mean of s points has a variance of 1 / s^2.
    means = isotonic_regression(sums / sizes, weights=sizes.astype(float) ** 2).x
    return np.repeat(means, sizes)


def group_for(units: int, *, length: float, reach: float, epsilon: float) -> int:
    """Points to a group, from public numbers alone: the best if units were spread evenly over the axis.

    A group is length k / n wide, so that a point is off by (length k / n)^2 / 12 in the mean of squares, and its mean
    by 2 (reach / (k epsilon))^2.

    >>> group_for(10_000, length=1.0, reach=0.01, epsilon=1.0)
    22
    """
    return max(1, round((24**0.25) * math.sqrt(units * reach / (length * epsilon))))


def counted(points: Floats, low: Floats, high: Floats) -> Floats:
    """How many ordered points are in each range [low, high)."""
    return (np.searchsorted(points, high) - np.searchsorted(points, low)).astype(float)
