"""Least squares over the noisy counts of a kd-tree's regions: two walks, as in privacy.cells.layers.

The splits define the parents of regions.
"""

from collections.abc import Sequence

import numpy as np

from privacy.cells.kdtree.regions import Regions
from privacy.cells.sums import Floats, Ints


def least_squares(levels: Sequence[Regions], noisy: Sequence[Ints], weights: Sequence[int]) -> tuple[Floats, Floats]:
    """Return estimates of the sums over the last regions and their variances, float64 [regions] each.

    Args:
        levels: regions of each level, the whole first.
        noisy: count of each region of each level, int64 [regions] each: noise of variance 1, times the level's weight.
        weights: weight of each level.
    """
    parents = [regions.parent for regions in levels[1:]]
    height = len(parents)
    u = [np.full(len(levels[-1]), 1.0 / weights[-1] ** 2)]
    m: list[Floats] = []
    values: Floats = noisy[-1] / weights[-1]
    below: list[tuple[Floats, Floats]] = []
    for level in reversed(range(height)):
        size = len(levels[level])
        sums: Floats = np.bincount(parents[level], values, minlength=size).astype(np.float64)
        m.append(np.bincount(parents[level], u[-1], minlength=size).astype(np.float64))
        below.append((values, sums))
        u.append(1.0 / (weights[level] ** 2 + 1.0 / m[-1]))
        values = u[-1] * (weights[level] * noisy[level] + sums / m[-1])
    variances = u.pop()
    for level in range(height):
        (own, mean), among, mine, parent = below.pop(), m.pop(), u.pop(), parents[level]
        share = mine / among[parent]
        variances = mine * (1 - share) + share**2 * variances[parent]
        values = own + share * (values - mean)[parent]
    return values, variances
