"""Weights of the layers of a hierarchy (privacy.cells.nested), without data.

The error is half the mean variance of cells plus half that of the layers above. As for marginals
(privacy.cells.balance), the charge is c w in the weights for L1 and c w^2 for squared L2, with c = 1 + 2 (changes - 1)
for layers in which two cells may differ and 1 for those of one node, and the charge of the radius if that is larger.
For Gaussian noise the error times the charge is convex in the squared weights up to scale, so the search ends at the
best weights except for rounding. For Laplace noise it begins at equal weights, and at these without one of the layers.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from privacy.cells.balance import SMALL, rounded
from privacy.cells.nested import Children, Nested, error
from privacy.ties import cheapest


@lru_cache(maxsize=64)
def hierarchy(children: Children, power: int, changes: int) -> Nested:
    """Return the hierarchy with integer weights of the least error found.

    Args:
        children: number of nodes below each node, for each layer above the cells.
        power: 1 if L1 norms are charged, 2 for L2.
        changes: approximate number of changes of an entry.
    """
    from scipy.optimize import minimize  # slow to import

    counts = np.array([sum(children[0]), *map(len, children)])
    charge = 1.0 + 2.0 * (changes - 1) * (counts > 1)

    def cost(weights: Sequence[float]) -> float:
        sizes = np.array(weights, dtype=np.float64)
        moved = max(float(charge @ sizes**power), changes * float((sizes**power).sum()))
        return moved ** (2 // power) * error(children, tuple((sizes**2).tolist()))

    equal = np.zeros(len(counts))
    starts = [equal]
    if power == 1:
        starts += [np.where(np.arange(len(counts)) == layer, math.log(SMALL), equal) for layer in range(1, len(counts))]
    tried: set[tuple[int, ...]] = set()
    for start in starts:
        bounds = [(-6.0, 6.0)] * len(counts)
        found = minimize(lambda logs: math.log(cost(np.exp(logs))), start, method="L-BFGS-B", bounds=bounds)
        tried |= rounded(np.exp(found.x))
    return Nested(children=children, weights=cheapest(sorted(tried), cost))
