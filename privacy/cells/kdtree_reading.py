"""What the sketch of a kd-tree says of cells: least squares over its regions, then each region evenly over its cells.

Least squares is the two walks of privacy.cells.layers, with the parents that splits have made. What is inside a region
is spread evenly over its cells. So the estimate of a cell is biased wherever its region is not even, and only sums over
whole regions have an error that is known. Standard deviations are those of the noise.
"""

from dataclasses import dataclass

import numpy as np

from privacy.cells.kdtree import KdTree, Regions, totals
from privacy.cells.sums import Floats, Ints


@dataclass(frozen=True, slots=True)
class Reading:
    """Of one sketch, where the noise of a count has variance 1.

    Attributes:
        regions: of the last level; together all cells.
        values: the estimate of each, [regions].
        variances: theirs.
        places: the region of each cell, [cells].
    """

    tree: KdTree
    regions: Regions
    values: Floats
    variances: Floats
    places: Ints

    @property
    def spread(self) -> Ints:
        """Over how many cells what a cell has was spread, [cells]; 1: it is a region by itself."""
        return self.regions.sizes[self.places]

    def cells(self) -> Floats:
        """[cells]."""
        return (self.values / self.regions.sizes)[self.places]

    def deviations(self) -> Floats:
        """Of the noise in each cell, [cells]."""
        return (np.sqrt(self.variances) / self.regions.sizes)[self.places]

    def sums(self, level: Ints) -> Ints:
        """Exact sums over the regions, [regions], of a histogram [cells]."""
        return totals(self.tree.prefixes(level), self.regions)


def read(tree: KdTree, sketch: Ints) -> Reading:
    """Least squares of a sketch.

    Raises:
        ValueError: it is no sketch of this tree.
    """
    levels, noisy = tree.opened(sketch)
    parents = [regions.parent for regions in levels[1:]]
    u = [np.full(len(levels[-1]), 1.0 / tree.weights[-1] ** 2)]
    m: list[Floats] = []
    values: Floats = noisy[-1] / tree.weights[-1]
    below: list[tuple[Floats, Floats]] = []
    for level in reversed(range(tree.height)):
        size = len(levels[level])
        sums: Floats = np.bincount(parents[level], values, minlength=size).astype(np.float64)
        m.append(np.bincount(parents[level], u[-1], minlength=size).astype(np.float64))
        below.append((values, sums))
        u.append(1.0 / (tree.weights[level] ** 2 + 1.0 / m[-1]))
        values = u[-1] * (tree.weights[level] * noisy[level] + sums / m[-1])
    variances = u.pop()
    for level in range(tree.height):
        (own, mean), among, mine, parent = below.pop(), m.pop(), u.pop(), parents[level]
        share = mine / among[parent]
        variances = mine * (1 - share) + share**2 * variances[parent]
        values = own + share * (values - mean)[parent]
    return Reading(tree, levels[-1], values, variances, tree.places(levels[-1]))
