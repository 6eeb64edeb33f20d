"""The least error of tables of marginals that any unbiased mechanism with Gaussian noise can have, in one window.

Source: Xiao, He, Zhang, Kifer, arXiv:2305.08175 (ResidualPlanner), theorem 4: recomputed, not taken from their tables.
"""

import math
from itertools import combinations

import numpy as np

from privacy.cells.balance import Asked, weighing
from privacy.cells.marginals import Marginals


def least_possible(asked: Asked) -> float:
    """Return the least weighted sum of variances of rows, for a squared sensitivity of 1.

    The residual of each set B of axes has dimension d and is measured with variance s: it adds d to the error for each
    unit of s, as often as tables contain it, and d / (cells * s) to the squared sensitivity.
    """
    axes, cells, total = range(len(asked.shape)), math.prod(asked.shape), 0.0
    for count in range(len(asked.shape) + 1):
        for residual in combinations(axes, count):
            dimension = math.prod(asked.shape[axis] - 1 for axis in residual)
            error = dimension * sum(
                share * (cells / asked.rows(kept)) / asked.rows(kept)
                for kept, share in zip(asked.kept, asked.shares, strict=True)
                if set(residual) <= set(kept)
            )
            total += math.sqrt(error * dimension / cells)
    return total**2


def error_of(found: Marginals, asked: Asked, power: int = 2) -> float:
    """Return the weighted sum of variances of rows under weighted blocks, for an L1 or squared L2 norm of 1.

    Args:
        found: the blocks, some of which may not be asked for.
        asked: the tables.
        power: 1 for L1, 2 for L2.
    """
    weights = dict(zip(found.kept, found.weights, strict=True))
    others = tuple(kept for kept in found.kept if kept not in asked.kept)
    every = Asked(asked.shape, asked.kept + others, asked.shares + (0.0,) * len(others))
    squares = np.array([weights.get(kept, 0) ** 2.0 for kept in every.kept])
    return weighing(every).error(squares) * float(sum(w**power for w in found.weights)) ** (2 // power)
