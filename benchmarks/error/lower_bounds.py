"""Lower bounds on the error of Gaussian noise, for any covariance and any way to compute it.

Let the published vector be A x plus normal noise of covariance Sigma, and let a unit be able to move x by any z of a
set Z. A budget that allows mu = 1 / sigma (Gaussian differential privacy) requires |Sigma^(-1/2) A z| <= mu on Z.

Theorem. For every distribution on Z the mean variance of m numbers is at least sigma^2 (tr K^(1/2))^2 / m, K = A E[z
z'] A'.

Proof. Averaging z' A' Sigma^-1 A z <= mu^2 gives tr(Sigma^-1 K) <= mu^2, and by Cauchy and Schwarz
(tr K^(1/2))^2 <= tr(Sigma) tr(Sigma^-1 K). QED.

The distribution here is that of an entry that comes and goes: k of the windows hold +1, -1, +1, ... in turn, and all
sets of k windows are equally likely; fewer changes are also allowed. If a time span bounds the changes, they lie in
that number of consecutive windows, at a random place. docs/proofs/strategies.md#lower-bounds has a closed form (from
one change in each of k equal blocks), which this distribution improves. The bound does not apply to Laplace noise, or
to methods that depend on the data.
"""

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.error.setting import Setting, sigma

Floats = NDArray[np.float64]

COUNTS = (1, 3, 5, 9, 17, 33)
"""Numbers of changes that are tried within a time span; odd, so that the entry is present after the last one."""


def rmse(setting: Setting) -> float:
    """Return the least root mean square error of any Gaussian noise at this setting.

    The initial level is left out: publishing it as well cannot reduce the error.
    """
    windows = setting.windows
    if setting.changes is not None:
        # With more changes than half of the windows, changes are more predictable, and the bound is lower.
        moments = [second_moment(windows, min(setting.changes, -(-windows // 2)), windows)]
    else:
        assert setting.span is not None
        stretch = min(setting.span + 1, windows)
        moments = [second_moment(windows, k, stretch) for k in COUNTS if 2 * k <= stretch + 1]
    least = max(mean_variance(moment, setting.width) for moment in moments)
    return sigma(setting.epsilon, setting.delta) * math.sqrt(least)


def mean_variance(moment: Floats, width: int | None) -> float:
    """Return (tr K^(1/2))^2 / m for levels, or for sliding sums of `width` windows.

    Args:
        moment: E[z z'], [windows, windows].
        width: of sliding windows; None for levels.
    """
    from scipy.linalg import eigvalsh

    product = np.cumsum(np.cumsum(moment, axis=0), axis=1)
    if width is not None:
        # Numbers end at windows width, width + 1, ...; each is a level less the level `width` windows before.
        product = np.pad(product, ((1, 0), (1, 0)))
        product = product[width:] - product[:-width]
        product = product[:, width:] - product[:, :-width]
    values = eigvalsh(product, overwrite_a=True, check_finite=False)
    return float(np.sqrt(np.maximum(values, 0.0)).sum() ** 2 / len(product))


def second_moment(windows: int, changes: int, stretch: int) -> Floats:
    """Return E[z z'] [windows, windows] of alternating signs at a random set of windows.

    Args:
        windows: number of windows.
        changes: size of the set.
        stretch: number of consecutive windows, at a random place, that hold the set.

    >>> second_moment(3, 2, 3).round(3).tolist()
    [[0.667, -0.333, -0.333], [-0.333, 0.667, -0.333], [-0.333, -0.333, 0.667]]
    """
    index = np.arange(windows)
    early, late = np.minimum.outer(index, index), np.maximum.outer(index, index)
    # Number of places of the stretch that hold both windows.
    places = np.minimum(early, windows - stretch) - np.maximum(late - stretch + 1, 0) + 1
    by_distance = np.zeros(windows)
    by_distance[:stretch] = _by_distance(stretch, changes)
    moment: Floats = by_distance[late - early] * np.maximum(places, 0) / (windows - stretch + 1)
    return moment


def _by_distance(windows: int, changes: int) -> Floats:
    """Return E[z_i z_(i+d)] for d = 0, 1, ..., [windows], if the changes may lie anywhere.

    Of all C(n, k) sets, C(d - 1, m) C(n - d - 1, k - 2 - m) hold both windows and m of the d - 1 between them. Then the
    signs differ by (-1)^(m + 1).
    """
    from scipy.special import comb

    value = np.zeros(windows)
    value[0] = changes / windows
    if changes > 1:
        distance = np.arange(1, windows)
        between = np.arange(changes - 1)[:, np.newaxis]
        sets = comb(distance - 1, between) * comb(windows - distance - 1, changes - 2 - between)
        value[1:] = ((-1.0) ** (between + 1) * sets).sum(axis=0) / comb(windows, changes)
    return value


def closed_form(windows: int, changes: int) -> float:
    """Return a lower bound on the mean variance of levels at sigma = 1, for windows = k d.

    It is (k / d^2) (sum_{0 < j < d} 1 / (2 sin(pi j / 2d)))^2.

    Raises:
        ValueError: `windows` is no multiple of `changes`.
    """
    length, rest = divmod(windows, changes)
    if rest:
        raise ValueError(f"windows={windows} must be a multiple of changes={changes}")
    angles = math.pi * np.arange(1, length) / (2 * length)
    return float(changes / length**2 * (1 / (2 * np.sin(angles))).sum() ** 2)
