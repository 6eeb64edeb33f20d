"""Weights of residuals (privacy.cells.residuals), without data, and the choice between residuals and blocks.

Let v_B be the error that residual space R_B adds to the requested tables for each unit of 1 / l_B: its dimension d_B,
times the sum over tables t that contain B of share_t N_t / (rows of t). The error is the sum of v_B / l_B, and the
squared norm of a column is the sum of l_B d_B / N, with N cells. So l_B proportional to sqrt(N v_B / d_B) has the least
error of all unbiased mechanisms with Gaussian noise, for one change of an entry (ResidualPlanner, theorem 4). v_B / d_B
is never smaller than that of the residuals that no marginal contains, so the weights exist: those residuals are
measured by single cells, with w_0^2 = l, and the others in addition by their own contrasts.

Further changes move an entry between two cells, and cost 2 (norm - inner product of the two columns), again linear in
l. The cost is the largest over all pairs; each pair's charge has its own closed form, and the best of these is chosen.
It need not be the best of all residuals.

Source: Xiao, He, Zhang, Kifer, arXiv:2305.08175, theorem 4. Integer weights and further changes are added here.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np

from privacy.cells.balance import GAIN, MOST_AXES, Asked, asked_tables, balanced
from privacy.cells.choice import CellChoice
from privacy.cells.intersections import Kept
from privacy.cells.marginals import Marginals
from privacy.cells.residuals import HEAVIEST, Residuals, disagreements, products
from privacy.cells.sums import Floats

FINEST = 16
"""Largest value of the smallest weight."""

ROUNDING = 5e-4
"""Increase of the cost by rounding that is accepted for smaller weights."""


def marginals_over(
    sizes: Sequence[int], choice: CellChoice, *, power: int, changes: int, blocks: bool
) -> list[Marginals | Residuals]:
    """Return strategies over the listed axes of a query that serve its marginals, the best first; none for cells alone.

    Residuals have many more nodes that a cell is in, so they are used if they reduce the error by more than 1 %.

    Args:
        sizes: number of cells of each listed axis, which are the first axes of the query.
        choice: marginals of the query; what they keep of other axes does not matter here.
        power: 1 if L1 norms are charged, 2 for L2.
        changes: approximate number of changes of an entry.
        blocks: whether rows must fall into blocks.
    """
    asked = asked_tables(sizes, choice) if choice.marginals else None
    if asked is None:
        return []
    found, cost = balanced(asked, power, changes)
    if power == 1 or blocks or len(sizes) > MOST_AXES:
        return [found]
    other, less = residuals(asked, changes)
    return [other, found] if other is not None and less < (1 - GAIN) * cost else [found]


@lru_cache(maxsize=256)
def residuals(asked: Asked, changes: int) -> tuple[Residuals | None, float]:
    """Return the residuals with integer weights of the least error found, and their cost; None without such weights.

    Args:
        asked: the tables; the first one has all axes.
        changes: approximate number of changes of an entry.

    >>> found, cost = residuals(Asked((4, 3), ((0, 1), (0,), (1,)), (12.0, 4.0, 3.0)), 1)
    >>> found.kept, found.weights, round(cost, 2)
    (((0, 1), (0,), (1,), ()), (21, 3, 4, 8), 31.05)
    """
    shape, cells = asked.shape, math.prod(asked.shape)
    several = [axis for axis, size in enumerate(shape) if size > 1]
    subsets = (kept for size in reversed(range(len(several))) for kept in combinations(several, size))
    kept = [one for one in subsets if any(set(one) <= set(table) for table in asked.kept[1:])]
    if not kept:
        return None, math.inf
    errors, charges = _errors(asked, kept), _charges(shape, kept, changes)

    def cost(precisions: Floats) -> float:
        values = np.append(precisions[0], precisions[0] + precisions[1:])
        return float((charges @ precisions).max() * (errors / values).sum())

    exact = [cheap for charge in charges if (cheap := _closed_form(errors, charge)) is not None]
    if not exact:
        return None, math.inf
    best = min(exact, key=cost)
    rows = np.array([1.0, *(cells * asked.rows(one) for one in kept)])
    weights = np.sqrt(best / rows)
    tried = [np.maximum(np.rint(weights * (scale / weights.min())), 1) for scale in range(1, FINEST + 1)]
    tried = [one for one in tried if max(one[0], (one[1:] * rows[1:]).max() / cells) <= HEAVIEST]
    if not tried:
        return None, math.inf
    costs = [cost(one**2 * rows) for one in tried]
    most = max(min(costs), (1 + ROUNDING) * cost(best))
    whole, found = next(pair for pair in zip(tried, costs, strict=True) if pair[1] <= most)
    return Residuals(shape=shape, kept=(asked.kept[0], *kept), weights=tuple(whole.astype(int).tolist())), found


def _errors(asked: Asked, kept: Sequence[Kept]) -> Floats:
    """Return v of all residuals outside of these sets, together, and v of each set, float64 [1 + sets]."""
    found = np.zeros(1 + len(kept))
    for table, share in zip(asked.kept, asked.shares, strict=True):
        rows = asked.rows(table)
        sizes = [math.prod(asked.shape[a] - 1 for a in one) if set(one) <= set(table) else 0 for one in kept]
        found += share * math.prod(asked.shape) / rows**2 * np.array([rows - sum(sizes), *sizes])
    return found


def _charges(shape: Sequence[int], kept: Sequence[Kept], changes: int) -> Floats:
    """Return charges of w_0^2 and of l_B - w_0^2 of each set, for each pair of cells between which an entry may move.

    The first one is that of changes that all cost the norm of a column, as one change does.
    """
    cells = math.prod(shape)
    norm = np.array([1.0, *(np.array(products(shape, kept, [True] * len(shape))) / cells)])
    if changes == 1:
        return norm[None]
    common = [[0.0, *(n / cells for n in products(shape, kept, apart))] for apart in disagreements(shape)]
    moved: Floats = norm + (changes - 1) * 2 * (norm - np.array(common))
    return np.vstack([changes * norm, moved])


def _closed_form(errors: Floats, charge: Floats) -> Floats | None:
    """Return w_0^2 and l_B - w_0^2 with the least error for a charge; None if some would not be above 0."""
    alone = charge[0] - charge[1:].sum()
    if alone <= 0 or errors[0] <= 0:
        return None
    values: Floats = np.sqrt(errors / np.append(alone, charge[1:]))
    found = np.append(values[0], values[1:] - values[0])
    return found if (found > 0).all() else None
