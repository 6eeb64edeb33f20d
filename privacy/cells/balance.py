"""Weights of blocks for published marginals (privacy.cells.marginals), without data.

The error is f = sum over tables t of share_t times the variance of a row of t, if the noise of a node has variance 1.
With x_A the squared weight of block A, l_K the eigenvalue of S^T S for the intersection K, and d_K the dimension of the
residual spaces that belong to K,

    l_K = sum over A that contain K of x_A N_A,    f(x) = sum of v_K / l_K,
    v_K = d_K times the sum over t that contain K of share_t N_t / (rows of t)

which is convex in x and homogeneous of degree -1.

*Gaussian noise.* The charge is linear in x: c x, with c_A = 1 + 2 (changes - 1) for blocks in which two cells may
differ, and 1 for those in which all cells are one node, as long as the diameter exceeds the radius. So the best x
minimises f under c x = 1. Multiplying each x_A by the root of -f_A / (c_A f), with f_A the derivative, reduces f in
each step. By convexity no x is better than f times (1 - gap), with gap = the largest -f_A / (c_A f), less 1: this is
the certificate at which the steps end.

*Laplace noise.* The charge is the square of c w in the weights themselves, which is not convex: often a few blocks with
large weights are best. Local searches begin at the best weights for Gaussian noise, at these without one of the blocks,
at the cells with one block, and, among few blocks, at arbitrary weights; nothing is claimed about better weights.

Weights are rounded to small integers; those of 0 drop their block.

Source of the steps: Silvey, Titterington, Torsney, "An algorithm for optimal designs on a design space", 1978; Yu,
"Monotonic convergence of a general algorithm for computing optimal designs", Annals of Statistics 38 (2010).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from privacy.cells.choice import CellChoice
from privacy.cells.intersections import Kept, intersections
from privacy.cells.marginals import Marginals
from privacy.cells.sums import Floats
from privacy.ties import cheapest

STEPS = 20_000
"""Most steps for Gaussian noise."""

GAP = 1e-4
"""Certified relative distance to the least error at which the steps end."""

LARGEST_WEIGHT = 63
"""Largest weight: rounding then costs far less than 1 %."""

TIES = {1: (0.0, 0.5), 2: (0.0, 0.25, 0.5, 0.75, 1.0)}
"""Shares of the two charges, of which the larger one counts (`charges`), that are tried for L1 and for L2."""

MOST_STARTS = 64
"""Most searches for Laplace noise with one charge."""

STEPS_FROM_EACH = 1000
"""Steps of each search."""

MOST_SEARCHED, ARBITRARY = 64, 8
"""Most blocks for which searches begin at arbitrary weights, and the number of these."""

MOST_AXES = 8
"""Most axes for which blocks that are not asked for are tried: there are two to this power."""

GAIN = 0.01
"""Least reduction of the error by such blocks, whose nodes get noise and are stored."""

SMALL = 1e-2
"""Weight at which a search begins for a block that is almost left out, compared with the largest one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Tables whose rows are to be accurate.

    Attributes:
        shape: number of cells of each axis.
        kept: axes that each table keeps; all axes first.
        shares: share of each table in the error.
    """

    shape: tuple[int, ...]
    kept: tuple[Kept, ...]
    shares: tuple[float, ...]

    def rows(self, kept: Kept) -> int:
        """Return the number of rows of a table that keeps these axes."""
        return math.prod(self.shape[axis] for axis in kept)


@dataclass(frozen=True, slots=True)
class Weighing:
    """The error as a function of squared weights x of the blocks, which are the asked tables.

    Attributes:
        sums: N_A for each intersection and block that contains it, 0 for others, float64 [intersections, blocks].
        errors: v of each intersection, float64 [intersections].
    """

    sums: Floats
    errors: Floats

    def error(self, squares: Floats) -> float:
        """Return f; infinite if nothing is measured of some intersection."""
        values = self.sums @ squares
        return float((self.errors / values).sum()) if (values > 0).all() else math.inf

    def slopes(self, squares: Floats) -> Floats:
        """Return the derivatives of f with the opposite sign, float64 [blocks]."""
        found: Floats = (self.errors / (self.sums @ squares) ** 2) @ self.sums
        return found


def weighing(asked: Asked) -> Weighing:
    """Return the error of the asked tables; intersections without a separate residual add nothing to it."""
    closed = intersections(asked.kept)
    sets = [set(one) for one in closed]
    added = [math.prod(asked.shape) / asked.rows(kept) for kept in asked.kept]
    sums = np.array(
        [[n if one <= set(kept) else 0.0 for kept, n in zip(asked.kept, added, strict=True)] for one in sets]
    )
    dimensions: dict[Kept, int] = {}
    for one in reversed(closed):  # smaller ones first
        dimensions[one] = asked.rows(one) - sum(d for other, d in dimensions.items() if set(other) < set(one))
    wanted = np.array(asked.shares) / [asked.rows(kept) for kept in asked.kept]
    errors = (sums @ wanted) * [dimensions[one] for one in closed]
    return Weighing(sums[errors > 0], errors[errors > 0])


def charges(asked: Asked, changes: int) -> tuple[Floats, Floats]:
    """Return the charges c of the diameter and of the radius: an entry costs r + (changes - 1) max(D, r).

    Args:
        asked: the tables.
        changes: approximate number of changes of an entry.
    """
    moved = np.array([any(asked.shape[axis] > 1 for axis in kept) for kept in asked.kept], dtype=np.float64)
    return 1.0 + 2.0 * (changes - 1) * moved, np.full(len(moved), float(changes))


def best_squares(of: Weighing, charge: Floats) -> tuple[Floats, float]:
    """Return squared weights with the least error for Gaussian noise, float64 [blocks], and their certified gap.

    Args:
        of: the error.
        charge: charge of each block.

    >>> of = weighing(Asked((60,), ((0,), ()), (0.5, 0.5)))
    >>> squares, gap = best_squares(of, np.ones(2))
    >>> (squares / squares.sum()).round(3).tolist(), gap < 1e-4
    ([0.504, 0.496], True)
    """
    squares, gap = 1.0 / charge, math.inf
    for _ in range(STEPS):
        squares /= charge @ squares
        rise = of.slopes(squares) / (charge * of.error(squares))
        gap = float(rise.max()) - 1
        if gap < GAP:
            break
        squares = squares * np.sqrt(rise)
    return squares, gap


def _best_weights(of: Weighing, charge: Floats, starts: Floats) -> Floats:
    """Return weights of little error for Laplace noise, from several starts at once, float64 [starts, blocks].

    By Cauchy and Schwarz, (c w)^2 is at most c u times the sum of c_A x_A / u_A, with equality at w = u: the charge of
    Gaussian noise with other prices. So a step for these prices reduces the error here, too.
    """
    weights = starts
    for _ in range(STEPS_FROM_EACH):
        weights = weights / (weights @ charge)[:, None]
        values = weights**2 @ of.sums.T
        errors = (of.errors / values).sum(axis=1, keepdims=True)
        weights = weights * ((of.errors / values**2) @ of.sums * weights / (charge * errors)) ** 0.25
    return weights


def _sought(of: Weighing, charge: Floats) -> list[Floats]:
    """Return weights of little error for Laplace noise, by descent from arbitrary weights; none for many blocks."""
    from scipy.optimize import minimize  # slow to import

    def cost(weights: Floats) -> tuple[float, Floats]:
        values, charged = of.sums @ weights**2, float(charge @ weights)
        error = float((of.errors / values).sum())
        slope: Floats = 2 * (charge / charged - weights * of.slopes(weights**2) / error)
        return math.log(error) + 2 * math.log(charged), slope

    if len(charge) > MOST_SEARCHED:
        return []
    begins = np.random.default_rng(0).random((ARBITRARY, len(charge)))
    bounds = [(SMALL**2, None), *[(0.0, None)] * (len(charge) - 1)]
    return [minimize(cost, begin, jac=True, method="L-BFGS-B", bounds=bounds).x for begin in begins]


def _starts(best: Floats) -> Floats:
    """Return weights at which searches begin, given the best ones for Gaussian noise, [starts, blocks]."""
    small = SMALL * float(best.max())
    others = [np.arange(len(best)) == block for block in range(1, len(best))]
    without = [np.where(other, small, best) for other in others]
    alone = [np.where(other, best.max(), small) + best[0] * (np.arange(len(best)) == 0) for other in others]
    return np.array([best, np.ones(len(best)), *without, *alone][:MOST_STARTS])


@lru_cache(maxsize=256)
def balanced(asked: Asked, power: int, changes: int) -> tuple[Marginals, float]:
    """Return the blocks and integer weights of the least error found, and their cost: the error for a charge of 1.

    Blocks that are not asked for are used too if they reduce the error by more than `GAIN`: a large block measures
    residuals with a smaller share of its precision in their intersection than many small ones. For Laplace noise this
    is tried for few blocks only.

    Args:
        asked: the tables; the first one has all axes.
        power: 1 if L1 norms are charged, 2 for L2.
        changes: approximate number of changes of an entry.
    """
    found, cost = _balanced(asked, power, changes)
    axes = range(len(asked.shape))
    if len(axes) <= MOST_AXES and (power == 2 or 2 ** len(axes) <= MOST_SEARCHED):
        every = (kept for size in axes for kept in combinations(axes, size))
        others = tuple(kept for kept in every if kept not in asked.kept)
        more = Asked(asked.shape, asked.kept + others, asked.shares + (0.0,) * len(others))
        other, less = _balanced(more, power, changes)
        found, cost = (other, less) if less < (1 - GAIN) * cost else (found, cost)
    return found, cost


def _balanced(asked: Asked, power: int, changes: int) -> tuple[Marginals, float]:
    """Return blocks with integer weights, and their cost: the error for a charge of 1."""
    of, (apart, alone) = weighing(asked), charges(asked, changes)

    def cost(weights: Sequence[int]) -> float:
        sizes = np.array(weights, dtype=np.float64)
        moved = max(float(one @ sizes**power) for one in (apart, alone))
        return moved ** (2 // power) * of.error(sizes**2)

    found: list[Floats] = []
    for tie in TIES[power] if changes > 1 else (0.0,):
        charge = (1 - tie) * apart + tie * alone
        best = np.sqrt(best_squares(of, charge)[0])
        found += [best] if power == 2 else [*_best_weights(of, charge, _starts(best)), *_sought(of, charge)]
    tried = {whole for weights in found for whole in rounded(weights)}
    weights = cheapest(sorted(tried), cost)
    used = [place for place, weight in enumerate(weights) if weight]
    table = Marginals(
        shape=asked.shape,
        kept=tuple(asked.kept[place] for place in used),
        weights=tuple(weights[place] for place in used),
    )
    return table, cost(weights)


def rounded(weights: Floats) -> set[tuple[int, ...]]:
    """Return small integers in about these proportions; the first one is never 0."""
    tried = set()
    for largest in range(1, LARGEST_WEIGHT + 1):
        whole = np.rint(weights * (largest / weights.max())).astype(int)
        whole[0] = max(whole[0], 1)
        tried.add(tuple((whole // math.gcd(*whole.tolist())).tolist()))
    return tried


def asked_tables(sizes: Sequence[int], choice: CellChoice) -> Asked | None:
    """Return the tables over the listed axes of a query that serve its marginals; None if they are the cells alone.

    Args:
        sizes: number of cells of each listed axis, which are the first axes of the query.
        choice: marginals of the query; what they keep of other axes does not matter here.
    """
    every = tuple(range(len(sizes)))
    cells, *others = choice.shares or (1.0, *(1.0 / len(choice.marginals) for _ in choice.marginals))
    shares = {every: cells}
    for kept, share in zip(choice.marginals, others, strict=True):
        block = tuple(axis for axis in kept if axis < len(sizes))
        shares[block] = shares.get(block, 0.0) + share
    return Asked(tuple(sizes), tuple(shares), tuple(shares.values())) if len(shares) > 1 else None
