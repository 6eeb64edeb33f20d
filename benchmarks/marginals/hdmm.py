"""HDMM's OPT_M for tables of marginals: its objective over the weights of all 2^d marginals, minimised as in the paper.

With C(a) the Kronecker product of I for the keys in a and of 1 1^T for the others, marginals with squared weights u
have the Gram matrix G(u) = sum of u_a C(a). All C(a) have the same eigenspaces, one for each set b of keys, of
dimension the product of (size - 1) over b. There C(a) has the eigenvalue c(a), the product of the sizes of the keys
that a lacks, if a contains b, and otherwise 0. So the error of a workload G(w) is

    squared norm of the weights * sum over b of dimension(b) * (eigenvalue of G(w) on b) / (eigenvalue of G(u) on b).

This is the paper's objective, whose C(a) C(b) = c(a or b) C(a and b) leads to a triangular matrix in place of the
eigenvalues. It needs an inverse, and loses digits if the weight of the full table is small.

Source: McKenna, Miklau, Hay, Machanavajjhala, VLDB 2018, arXiv:1808.03537, section 6 (OPT_M), random starts included;
written from the formulas. The paper minimises the L1 norm; the L2 norm is an option of the authors' program
(github.com/dpcomp-org/hdmm).
"""

import math
from collections.abc import Sequence

import numpy as np

from privacy.cells.balance import Asked
from privacy.cells.sums import Floats

STARTS = 5
"""Searches from random weights."""

LEAST = 1e-12
"""Least weight, compared with random ones below 1."""


def optimised(asked: Asked, power: int) -> float:
    """Return the least error found of the tables, for an L1 (power 1) or squared L2 (power 2) norm of 1.

    Args:
        asked: the tables and their shares; the full table need not be among them.
        power: 1 for L1, 2 for L2.
    """
    from scipy.optimize import minimize  # slow to import

    sets = range(2 ** len(asked.shape))
    lacks = [[size for bit, size in enumerate(asked.shape) if not one >> bit & 1] for one in sets]
    values = np.array([[float(math.prod(lacks[a])) * (a & b == b) for a in sets] for b in sets])
    workload = np.zeros(len(sets))
    for kept, share in zip(asked.kept, asked.shares, strict=True):
        workload[_bits(kept)] += share / asked.rows(kept)
    sides = [[size - 1 for bit, size in enumerate(asked.shape) if b >> bit & 1] for b in sets]
    errors = np.array([float(math.prod(some)) for some in sides]) * (values @ workload)
    values, errors = values[errors > 0], errors[errors > 0]

    def objective(weights: Floats) -> tuple[float, Floats]:
        """Return the logarithm of the error and its gradient, in weights (L1) or squared weights (L2)."""
        measured = values @ weights ** (2 // power)
        error, total = float((errors / measured).sum()), float(weights.sum())
        slope = -(errors / measured**2) @ values * (2 * weights if power == 1 else 1.0)
        return math.log(error) + 2 / power * math.log(total), slope / error + 2 / power / total

    found = math.inf
    for seed in range(STARTS):
        begin = np.random.default_rng(seed).random(len(sets))
        options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-13}
        bounds = [(LEAST, None)] * len(sets)
        found = min(found, minimize(objective, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun)
    return math.exp(found)


def _bits(kept: Sequence[int]) -> int:
    return sum(1 << axis for axis in kept)
