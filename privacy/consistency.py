"""Consistent histograms: no negative numbers, and the cells add up to the noisy total.

For one window, raw estimates y of all cells of a count, or of a sum of numbers that are never negative, become the
nearest p with p >= 0 and sum p = max(sum y, 0): the Euclidean projection on a scaled simplex, p = max(y - shift, 0)
with the one shift that makes the total right. Only for levels, `entered` and `left`; changes may be negative. It is
post-processing: a function of published numbers, so it costs no privacy.
Source of the projection: Held, Wolfe, Crowder, "Validation of subgradient optimization", Mathematical Programming 6
(1974); of the idea: Hay et al., "Boosting the accuracy of differentially private histograms through consistency",
VLDB 2010.

Effect on errors, with x >= 0 the truth and T = sum y >= 0:

- The total is as accurate as before; it is the raw one unless that is negative.
- No non-negative histogram z of total T is farther from p than from y: a projection on a convex set moves nearer to
  all of the set. With z = x T / sum x, which differs from x by at most |T - sum x|, the error |p - x| in all cells
  together exceeds |y - x| by at most 2 |T - sum x|. It is usually smaller, but not always.
- This does not hold for each cell. Cells below zero are raised at the cost of the others, so p_i <= max(y_i, 0): the
  value is biased, and in one cell it can be worse than the raw one. With eight cells 0, 0, 0, 0, 2, 5, 9, 40 and noise
  of deviation 8.5, the empty cells get an RMSE of 4.9, and the largest one of 12.2 and a bias of -5.4. So `stddev`
  remains that of the raw estimate, the noise that was added to the cell. It is neither the standard deviation nor a
  bound on the error of the value, which both depend on the data.

A strategy over cells uses another projection: privacy.cells.nonnegative.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privacy.estimates import Estimates

Floats = NDArray[np.float64]


def consistent(raw: Estimates, nearest: Callable[[Floats], Floats] | None = None) -> Estimates:
    """Return the estimates of one count or sum, [windows, all cells], projected window by window.

    The intervals contain the truth whenever the raw ones do, so they keep the raw coverage: the truth x >= 0 lies in
    [max(ci_low, 0), ci_high], and this interval is only widened, to contain the value too. If no part of the raw
    interval is above zero, it did not contain x, and [0, value] is published.

    Args:
        raw: raw estimates.
        nearest: a projection of the same numbers; None: `project`.

    >>> column = np.array([[1.0]])
    >>> raw = Estimates(value=6 * column - 8, stddev=column, ci_low=column - 5, ci_high=column)
    >>> consistent(raw).value.item(), consistent(raw).ci_low.item(), consistent(raw).ci_high.item()
    (0.0, 0.0, 1.0)
    """
    value = (nearest or project)(raw.value)
    return Estimates(
        value=value,
        stddev=raw.stddev,
        ci_low=np.minimum(np.maximum(raw.ci_low, 0.0), value),
        ci_high=np.maximum(raw.ci_high, value),
    )


def project(raw: Floats) -> Floats:
    """Return the nearest non-negative numbers [rows, cells], row by row, with the row's sum, or zero if it is negative.

    >>> project(np.array([[5.0, 2.0, -1.0], [1.0, -3.0, -4.0]])).tolist()
    [[4.5, 1.5, 0.0], [0.0, 0.0, 0.0]]
    """
    total = np.maximum(raw.sum(axis=1, keepdims=True), 0.0)
    descending = -np.sort(-raw, axis=1)
    # The shift that gives the first 1, 2, ... of the largest cells the whole total. It grows until a cell would fall
    # below zero, so the largest one is right.
    shifts = (np.cumsum(descending, axis=1) - total) / np.arange(1, raw.shape[1] + 1)
    nearest: Floats = np.maximum(raw - shifts.max(axis=1, keepdims=True), 0.0)
    return nearest
