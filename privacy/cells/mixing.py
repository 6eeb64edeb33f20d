"""Weights of mixed strategies: single cells and a few weighted sums of cells, fitted to a workload.

With D the norms of the columns of [1; Theta], which has single cells and p rows Theta >= 0, p-identity is the strategy
[1; Theta] D^-1 with columns of norm 1. The sum of all cells is added, s times: a unit that moves from cell to cell does
not change it, so it is cheap if entries change often. With phi = s D as one more row of Theta the mean
variance of the queries V is

    tr(D V D Z),    Z = (1 + Theta^T Theta)^-1 = 1 - Theta^T (1 + Theta Theta^T)^-1 Theta

and an entry with m changes costs at most (1 + s^p + 2 (m - 1))^(2 / p) for the norm p (privacy.cells.fitting). SciPy's
L-BFGS-B minimises the product by its gradient. An iteration takes p^2 times the number of cells, and p products with V,
which is no dense matrix for ranges and prefixes (privacy.cells.quadratic). It starts from the layers of a tree, in
which no two rows are equal: so no random numbers are needed to make them different, and the result is deterministic. It
is a local optimum: its distance from the best of all strategies is bounded only by measurement
(docs/decisions/over-cells.md).

Weights are then rounded to integers, and each single cell's weight is raised until all columns have nearly one norm.

Source: McKenna, Miklau, Hay, Machanavajjhala, VLDB 2018, arXiv:1808.03537, section 5, for L1; L2 and s are added here.
"""

import numpy as np

from privacy.cells.layers import Layers
from privacy.cells.mixed import LARGEST, Mixed
from privacy.cells.sums import Floats
from privacy.cells.wanted import Wanted

ROWS, NUMBERS = 96, 2**15
"""Largest number of rows, and of numbers in them."""

ITERATIONS = 40


def fits(tree: Layers) -> bool:
    """Return whether a tree has few enough sums of several cells to start from; the sum of all cells does not count."""
    rows = tree.matrix.nodes - tree.cells
    return 0 < rows <= ROWS and rows * tree.cells <= NUMBERS and tree.counts[-1] > 1


def mixed(tree: Layers, wanted: Wanted, power: int, changes: int) -> Mixed:
    """Return the mixed strategy that is fitted from a tree.

    Args:
        tree: the starting point.
        wanted: queries whose mean variance is minimised.
        power: 1 if L1 norms are charged, 2 for L2.
        changes: approximate number of changes of an entry.

    >>> tree = Layers(cells=16, sizes=(1, 4), weights=(1, 1))
    >>> found = mixed(tree, Wanted("ranges"), 2, 1)
    >>> norms = found.corners(2)[0][0]
    >>> found.average("ranges") * norms < 0.8 * tree.average("ranges") * 2
    True
    """
    from scipy.optimize import minimize  # slow to import

    cells, rows = tree.cells, tree.matrix.nodes - tree.cells
    begins, ends = (edges[cells:, None] for edges in tree.boxes()[0])
    place = np.arange(cells)
    weights = tree.matrix.of_nodes()[cells:, None] / tree.weights[0]
    begin = ((begins <= place) & (place < ends)) * weights
    found = minimize(
        lambda x: _cost(x[:-1].reshape(rows, cells), float(x[-1]), wanted, power, changes),
        np.append(begin, 1.0),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (begin.size + 1),
        options={"maxiter": ITERATIONS},
    )
    return _whole(found.x[:-1].reshape(rows, cells), float(found.x[-1]), power)


def _cost(theta: Floats, common: float, wanted: Wanted, power: int, changes: int) -> tuple[float, Floats]:
    """Return the logarithm of the mean variance times the cost, and its gradient."""
    whole = 1 + (theta**power).sum(axis=0)
    norms = whole ** (1 / power)
    rows = np.vstack([theta, common * norms])
    heart = np.linalg.inv(np.eye(len(rows)) + rows @ rows.T)
    of_rows = wanted.applied(rows * norms) * norms
    inside, over = heart @ rows, heart @ of_rows
    diagonal = wanted.diagonal(theta.shape[1]) * norms**2
    mean = diagonal.sum() - (over * rows).sum()
    by_rows = -2 * (over - (over @ rows.T) @ inside)
    by_norms = 2 * (diagonal - (of_rows * inside).sum(axis=0)) / norms + common * by_rows[-1]
    by_theta = by_rows[:-1] + by_norms * theta ** (power - 1) * whole ** (1 / power - 1)
    moved = 2 * changes - 1 + common**power
    by_common = by_rows[-1] @ norms / mean + 2 * common ** (power - 1) / moved
    return float(np.log(mean) + 2 / power * np.log(moved)), np.append(by_theta / mean, by_common)


def _whole(theta: Floats, common: float, power: int) -> Mixed:
    """Return the strategy in integers, with each column raised to the longest one as far as its own row allows."""
    columns = np.vstack([np.ones(theta.shape[1]), theta])
    columns = np.vstack([columns / (columns**power).sum(axis=0) ** (1 / power), np.full(theta.shape[1], common)])
    whole = np.rint(columns * (LARGEST / columns.max())).astype(np.int64)
    alone, rows = np.maximum(whole[0], 1), whole[1:]
    others = (rows**power).sum(axis=0)
    room = int((alone**power + others).max()) - others
    alone = np.maximum(alone, room if power == 1 else np.floor(np.sqrt(room)).astype(np.int64))
    kept = rows[rows.max(axis=1) > 0]
    return Mixed(
        alone=np.minimum(alone, LARGEST).astype(np.uint8).tobytes(),
        rows=tuple(row.astype(np.uint8).tobytes() for row in kept),
    )
