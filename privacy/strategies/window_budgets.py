"""How a budget is divided over windows of different importance, from public weights to a share for each window.

Let noise in window t be 1 / s_t times as wide as the noise of a window that gets the whole budget. With weights a_t the
weighted squared error is proportional to the sum of a_t^2 / s_t^2, and any w consecutive windows cost, in shares of the
budget,

    Laplace     the sum of s_t          epsilon: a level that moves by r under noise of scale b / s_t costs r s_t / b
    Gaussian    the sum of s_t^2        rho

With x_t = s_t or s_t^2, the sum of a_t^2 / x_t^2 or a_t^2 / x_t is minimised under the constraint that no w consecutive
windows sum to more than 1: a convex problem over second-order cones, which Clarabel solves. The result is rounded down
to whole multiples of 2^-32, and `most` checks in exact integers that no w windows exceed 1: privacy depends on this
check alone. The quality bound does not depend on the solver either. For any lambda_j >= 0, one for each run j of w
windows, and L_t = the sum of lambda over the runs that contain t, no shares have a smaller sum than

    sum over t of min over x of (a_t^2 / x^p + L_t x)  -  sum of lambda        p = 2 or 1

(weak duality), and the best multiple of lambda gives 4/27 G^3 / M^2 with G = 3 / 4^(1/3) sum (a_t L_t)^(2/3), or
1/4 G^2 / M with G = 2 sum a_t L_t^(1/2); M = sum of lambda. lambda is the solver's dual (`least`).

Source: event-level budgets of Kellaris et al., VLDB 2014, and Fang, Chang 2014; the division by a convex programme
is an own result.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from privacy.strategies.base import Floats
from privacy.strategies.choice import check_weights

WHOLE = 1 << 32
"""Number of parts of the full width: a share of `WHOLE` parts is the whole budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares of windows, in parts of `WHOLE`.

    Attributes:
        parts: share of each window of the list.
        least: proved lower bound of the sum of squared errors of any shares, in squares of weights.
    """

    parts: tuple[int, ...]
    least: float


@lru_cache(maxsize=16)
def best_shares(weights: tuple[float, ...], among: int, *, repeated: bool, power: int) -> Shares:
    """Return the shares with the least weighted squared error if `among` consecutive windows may cost one budget.

    Args:
        weights: weight a of each window.
        among: number of consecutive windows that share one budget.
        repeated: whether the list repeats without end, or covers all windows.
        power: power of a share of the width that it costs: 1 for epsilon, 2 for rho.

    Raises:
        ValueError: too many weights, a weight that is not positive, or one too small compared with the largest.

    >>> parts = best_shares((1.0, 8.0), 2, repeated=True, power=1).parts
    >>> round(parts[1] / parts[0], 3), sum(parts) <= WHOLE  # 8^(2/3)
    (4.0, True)
    """
    check_weights(weights)
    a = np.array(weights) / max(weights)
    x, dual = _solved(a, min(among, len(a)) if not repeated else among, repeated=repeated, power=power)
    room = 1.0 - 2.0**-40
    while True:
        s = np.sqrt(x) if power == 2 else x
        parts = tuple(math.floor(share) for share in (np.minimum(s * room, 1.0) * WHOLE).tolist())
        spent = most(parts, among, None if repeated else len(parts), squared=power == 2)
        if spent <= WHOLE**power:
            break
        room *= 1.0 - 1e-7
    if min(parts) < 1:
        raise ValueError(f"weights: {among} windows are too many to share one budget; protect a shorter span")
    return Shares(parts=parts, least=max(weights) ** 2 * _lower_bound(a, dual, among, repeated, power))


def most(parts: Sequence[int], among: int, windows: int | None, *, squared: bool = False) -> int:
    """Return the largest sum, exactly, of the parts of `among` consecutive windows; of their squares with `squared`.

    Args:
        parts: shares of the windows 1, 2, ..., in parts of `WHOLE`; the list repeats.
        among: number of consecutive windows.
        windows: number of windows of the release; None if it has no end.
        squared: whether squares of the parts are summed.

    >>> most([1, 5, 2], 2, None), most([1, 5, 2], 4, None), most([1, 5, 2], 4, 3), most([2, 1, 9], 2, 2, squared=True)
    (7, 13, 8, 5)
    """
    sizes = [part * part for part in parts] if squared else list(parts)
    period = len(sizes)
    length = among if windows is None else min(among, windows)
    starts = period if windows is None else min(period, windows - length + 1)
    rounds, rest = divmod(length, period)
    before = [0]
    for place in range(starts + rest):
        before.append(before[-1] + sizes[place % period])
    return rounds * sum(sizes) + max(before[start + rest] - before[start] for start in range(starts))


def squared_error(weights: Sequence[float], parts: Sequence[int]) -> float:
    """Return the sum of squares of weights over shares; `Shares.least` is its lower bound."""
    return math.fsum((a * WHOLE / part) ** 2 for a, part in zip(weights, parts, strict=True))


def _solved(a: Floats, among: int, *, repeated: bool, power: int) -> tuple[Floats, Floats]:
    """Return x and the dual values of its runs, as accurately as a floating-point solver computes them.

    The unknowns are c_t = x_1 + ... + x_t, so that each run has few terms, and u_t >= 1 / x_t: |(u - x, 2)| <= u + x.
    The objective is the sum of a_t^2 u_t, or of a_t^2 u_t^2. A run sums to `among`, so that x and u are about 1.
    """
    import clarabel  # slow to import, and rarely needed
    from scipy import sparse

    n = len(a)
    rounds, rest = divmod(among, n)
    starts = (n if rest else 1) if repeated else n - among + 1
    entries: list[tuple[int, int, float]] = []

    def add(row: int, total: int, sign: float) -> None:
        """Add sign times c_total to a row; c_0 = 0, and beyond n the sums are c_(n+k) = c_n + c_k."""
        entries.extend((row, which - 1, sign * times) for which, times in ((total % n, 1), (n, total // n)) if which)

    for start in range(starts):
        add(start, start + rest + rounds * n, 1.0)
        add(start, start, -1.0)
    for t in range(n):
        row = starts + 3 * t
        entries += [(row, n + t, -1.0), (row + 1, n + t, -1.0)]
        for at, sign in ((row, 1.0), (row + 1, -1.0)):
            add(at, t + 1, -sign)
            add(at, t, sign)
    rows, columns, values = zip(*entries, strict=True)
    matrix = sparse.csc_matrix((values, (rows, columns)), shape=(starts + 3 * n, 2 * n))
    right = np.concatenate([np.full(starts, float(among)), np.tile([0.0, 0.0, 2.0], n)])
    nothing, squares = np.zeros(n), a * a / np.mean(a * a)
    costs = np.concatenate([nothing, squares if power == 2 else nothing])
    curves = sparse.diags(np.concatenate([nothing, nothing if power == 2 else 2 * squares]), format="csc")
    cones: list[Any] = [clarabel.NonnegativeConeT(starts), *[clarabel.SecondOrderConeT(3)] * n]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(curves, costs, matrix, right, cones, settings).solve()
    x = np.diff(np.array(found.x)[:n], prepend=0.0) / among
    if not (np.isfinite(x).all() and (x > 0).all()):
        raise ValueError(f"weights: no shares were found ({found.status}); use weights that are closer to each other")
    return x, np.maximum(np.array(found.z)[:starts], 0.0)


def _lower_bound(a: Floats, dual: Floats, among: int, repeated: bool, power: int) -> float:
    """Return `Shares.least` for weights a, from dual values of the runs."""
    n = len(a)
    rounds, rest = divmod(among if repeated else min(among, n), n)
    on = np.zeros(n)
    for start, price in enumerate(dual.tolist()):
        on += rounds * price
        stop = start + rest
        on[start:stop] += price
        on[: max(0, stop - n)] += price
    spent = float(dual.sum())
    if power == 2:
        bound = (2 * float((a * np.sqrt(on)).sum())) ** 2 / (4 * spent)
    else:
        gain = 3 / 4 ** (1 / 3) * float(((a * on) ** (2 / 3)).sum())
        bound = 4 / 27 * gain**3 / spent**2
    return bound * (1 - 1e-12)
