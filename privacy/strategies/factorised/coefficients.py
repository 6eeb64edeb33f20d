"""Coefficients of the filters C of Toeplitz factorisations, and of their inverses.

A filter is a power series c(x) = c_0 + c_1 x + ...; it turns a stream x_0, x_1, ... into y_t = sum_j c_j x_(t-j). All
those here have c_0 = 1 and are completely monotone (a mixture of t^j with 0 <= t <= 1 and positive weights), so that
c_j is positive, non-increasing and convex in j, as the theorems on sensitivity require
(docs/proofs/strategies.md).

    square_root    (1 - x)^(-1/2)                     Fichtenberger, Henzinger, Upadhyay, ICML 2023
    leaky          (1 - lam x)^(1/2) / (1 - x)        the exact level plus noise that forgets at the rate leak = 1 - lam
    window         (1 - lam x)^(-1/2)                 square-summable: for releases without end
    exponentials   sum_i u_i / (1 - t_i x)            one state for each term; Dvijotham et al., 2024, call
                                                      the shape a buffered linear Toeplitz matrix

Proofs of complete monotonicity. c_j = binom(2j, j) / 4^j of the square root is the j-th moment of the arcsine
distribution on [0, 1], and lam^j times it that distribution's scaled by lam. The leaky filter is, with s = 1 - lam x,
its own limit sqrt(1 - lam) plus the tail sums of (1 - lam x)^(1/2), whose coefficients from the first on are minus the
moments of a positive measure on [0, lam]; tail sums of moments are moments.

Everything is float64 and within about 1e-13 of the true series; exact sums need integers, to which kernels round them.
"""

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least, between

Floats = NDArray[np.float64]


def window(count: int, leak: float) -> Floats:
    """Return the coefficients of (1 - lam x)^(-1/2), lam = 1 - leak, float64 [count]; without a leak, a square root.

    Raises:
        ValueError: `count` is below 1, or `leak` outside [0, 1].

    >>> window(3, 0.5).tolist()
    [1.0, 0.25, 0.09375]
    """
    at_least("count", count, 1)
    between("leak", leak, 0, 1)
    ratios = np.ones(count)
    ratios[1:] = (1 - leak) * (1 - 0.5 / np.arange(1.0, count))
    return np.asarray(np.cumprod(ratios), dtype=np.float64)


def leaky(count: int, leak: float) -> Floats:
    """Return the coefficients of (1 - lam x)^(1/2) / (1 - x), lam = 1 - leak, float64 [count]; they fall to sqrt(leak).

    >>> leaky(3, 1.0).tolist(), leaky(4, 0.0).tolist()
    ([1.0, 1.0, 1.0], [1.0, 0.5, 0.375, 0.3125])
    """
    steps = window(count, leak)
    steps[1:] /= 1 - 2 * np.arange(1.0, count)
    return np.cumsum(steps)


def exponentials(count: int, weights: Floats, gaps: Floats) -> Floats:
    """Return the coefficients of sum_i u_i / (1 - t_i x), t_i = 1 - gap_i, float64 [count].

    Gaps are given instead of poles, since the distance of a pole from 1 needs all its digits.

    Args:
        count: number of coefficients, at least 1.
        weights: u_i, float64 [terms].
        gaps: 1 - t_i, float64 [terms].

    >>> exponentials(3, np.array([0.25, 0.75]), np.array([0.0, 0.5])).tolist()
    [1.0, 0.625, 0.4375]
    """
    at_least("count", count, 1)
    powers = np.arange(float(count))
    total = np.zeros(count)
    for weight, gap in zip(weights, gaps, strict=True):
        total += weight * (powers == 0 if gap == 1 else np.exp(powers * np.log1p(-gap)))
    return total


def decays(weights: Floats, gaps: Floats) -> tuple[Floats, Floats]:
    """Return 1 / ((1 - x) c(x)) of exponentials as exponentials: weights v_k > 0 and gaps 1 - p_k, each [terms - 1].

    c(1/p) = sum_i u_i p / (p - t_i) falls from infinity to minus infinity between two neighbouring t_i, so there is
    one zero between each two; in e = 1 - p and g_i = 1 - t_i it solves sum_i u_i / (g_i - e) = 0. The residue there is
    v = 1 / (e sum_i u_i t_i / (g_i - e)^2). With a term t = 0 there is no other remainder.

    Args:
        weights: positive, float64 [terms].
        gaps: float64 [terms], rising from 0 to 1, both included.

    >>> weights, gaps = decays(np.array([0.5, 0.5]), np.array([0.0, 1.0]))
    >>> weights.round(9).tolist(), gaps.round(9).tolist()
    ([1.0], [0.5])
    """
    # Bisection on a geometric scale, so that small gaps get as many digits as large ones.
    low, high = gaps[:-1].copy(), gaps[1:].copy()
    low[0] = high[0] * 2.0**-60
    for _ in range(100):
        middle = np.sqrt(low * high)
        below = (weights / (gaps - middle[:, None])).sum(axis=1) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found: Floats = np.sqrt(low * high)
    slopes = (weights * (1 - gaps) / (gaps - found[:, None]) ** 2).sum(axis=1)
    return 1 / (found * slopes), found


def inverse(series: Floats) -> Floats:
    """Return the coefficients of 1 / c(x), as many as given, by Newton's iteration, which doubles the correct ones.

    Raises:
        ValueError: c_0 = 0, so there is no inverse.

    >>> inverse(np.array([1.0, 0.5, 0.375])).tolist()
    [1.0, -0.5, -0.125]
    """
    if series[0] == 0:
        raise ValueError("a series that begins with 0 has no inverse")
    found = np.array([1 / series[0]])
    while len(found) < len(series):
        right = len(found)
        longer = np.pad(found, (0, min(right, len(series) - right)))
        excess = convolve(series[: len(longer)], longer)[right:]
        longer[right:] = -convolve(found, excess)
        found = longer
    return found


def response(series: Floats) -> Floats:
    """Return as many coefficients of 1 / ((1 - x) c(x)): a level in terms of the filtered stream, newest first.

    >>> response(window(4, 0.0)).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    return np.cumsum(inverse(series))


SHORT = 64
"""Products of series up to this length are summed directly: faster, and equal bit by bit."""


def convolve(series: Floats, stream: Floats) -> Floats:
    """Return sum_j c_j x_(t-j) for every t of the stream, along axis 0; values before its start count as 0.

    Args:
        series: c, float64 [coefficients].
        stream: x, float64 [rows] or [rows, ...].

    >>> convolve(np.array([1.0, 2.0]), np.array([[1.0], [0.0], [5.0]])).ravel().tolist()
    [1.0, 2.0, 5.0]
    """
    rows = len(stream)
    if stream.ndim == 1 and rows <= SHORT:
        return np.convolve(series, stream)[:rows]
    size = 1 << (rows + min(len(series), rows) - 2).bit_length()
    shape = (-1,) + (1,) * (stream.ndim - 1)
    spectrum = np.fft.rfft(series[:rows], size).reshape(shape)
    product = np.fft.irfft(spectrum * np.fft.rfft(stream, size, axis=0), size, axis=0)
    return np.asarray(product[:rows], dtype=np.float64)
