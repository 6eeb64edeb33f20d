"""Half widths of weighted sums of discrete Laplace noise that depend only on the spread of the weights.

Numbers gathered from nodes over cells (privacy.cells) have different weights in each of a million cells, and
privacy.noise.weighted treats each separately. Let S = sum of a_i Z_i with the squares of a adding up to 1, none above
1 / m, m an integer.

If a weight has more than half of the squares, m may be a fraction between 1 and 2.

*Continuous.* Laplace noise of scale b is b sqrt(2 E) N with E exponential of mean 1 and N normal. So the sum is b
sqrt(2 V) N with V = sum of a_i^2 E_i. Weights (1/m, ..., 1/m) majorise the a_i^2, so V is below G, the mean of m
exponentials, in convex order (Marshall and Olkin), and for every convex g >= f

    Pr[|sum| >= t b sqrt 2] = E f(V) <= E g(V) <= E g(G),    f(v) = erfc(t / sqrt(2 v)).

For m between 1 and 2, (1/m, 1 - 1/m) majorises them, and G is the sum of two exponentials of these means.

f is convex up to v = t^2 / 3 and concave beyond, so g is f up to that point and its tangent from there on.

*Discrete.* An exponential variable is its floor, which is geometric, and a fraction that is independent of it. So
continuous noise X is Z + T with T independent of Z, symmetric, the difference of two fractions: by Hoeffding's
inequality Pr[sum of a_i T_i < -d] <= exp(-d^2), and

    Pr[|S| >= t + d] (1 - exp(-d^2)) <= Pr[|sum of a_i X_i| >= t].

For one node the half width is 2 % and d steps too large; for many nodes it is close to the normal distribution's.
Proofs: docs/proofs/weighted_laplace_sums.md#by-spread.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from privacy.bisection import last_holding
from privacy.checks import at_least, proportion
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.weighted import Floats, spreads

MOST = 4096
"""Larger numbers of nodes are treated as this number."""

STEPS = 4000
"""Number of pieces in which the convex part is added up, each at its larger end."""

MARGINS = (1.5, 1.75, 2.0, 2.25, 2.5, 3.0)
"""Values of d of the discrete step; the best is used."""


def spreads_of_gathered(
    distribution: NoiseDistribution,
    *,
    variances: Floats,
    weights: Callable[[], list[Floats]],
    confidence: float,
) -> tuple[Floats, Floats]:
    """Return standard deviations and half widths, float64 [numbers] each, of numbers gathered from nodes over cells.

    They are for a variance of 1 over cells: the variance of one cell, or of any linear query over cells, multiplies
    both by its root. No weight of such a number has a larger share of its squares than the largest weight in time.

    Args: as for privacy.noise.weighted.spreads.
    """
    if distribution.stable:
        return spreads(distribution, variances=variances, weights=weights, confidence=confidence)
    spread = [int(1 / (w.max() ** 2 / v) * (1 + 1e-9)) for w, v in zip(weights(), variances, strict=True)]
    half = np.array([half_width_by_spread(distribution, max(1, each), confidence) for each in spread])
    return np.sqrt(variances * distribution.variance), half * np.sqrt(variances)


def half_width_by_spread(distribution: NoiseDistribution, spread: float, confidence: float) -> float:
    """Return h with Pr[|S| <= h] >= confidence for all weights whose squares add up to 1, none above 1 / spread.

    Args:
        distribution: the noise of one node.
        spread: m, a positive integer, or between 1 and 2.
        confidence: between 0 and 1.

    >>> from privacy.noise.distributions import DiscreteLaplace
    >>> noise = DiscreteLaplace(1000.0)
    >>> [round(half_width_by_spread(noise, spread, 0.95) / 2**0.5) for spread in (1, 10, 100)]
    [2164, 1984, 1964]
    """
    at_least("spread", spread, 1)
    if spread > 2 and spread != int(spread):
        raise ValueError(f"spread={spread}: a whole number, or between 1 and 2")
    proportion("confidence", confidence)
    return _half_width(distribution.scale, min(spread, MOST), confidence)


@lru_cache(maxsize=1024)
def _half_width(scale: float, spread: float, confidence: float) -> float:
    lost = 1 - confidence
    return min(
        math.sqrt(2) * scale * _quantile(spread, lost * (1 - math.exp(-margin * margin))) + margin for margin in MARGINS
    )


@lru_cache(maxsize=1024)
def _quantile(spread: float, tail: float) -> float:
    """Return some t, nearly the least, with E g(G) <= tail."""
    high = 1.0
    while _bound(high, spread) > tail:
        high *= 2
    return last_holding(
        lambda t: _bound(t, spread) <= tail, high, 0.0, near=lambda high, low: high - low <= 1e-5 * high
    )


def _bound(t: float, spread: float) -> float:
    """Return E g(G), rounded up."""
    from scipy.special import erfc  # slow to import

    turn = t * t / 3
    ends = np.linspace(0.0, turn, STEPS + 1)
    mass = -np.diff(_beyond(ends, spread)[0])
    value = math.erfc(t / math.sqrt(2 * turn))
    slope = t / math.sqrt(2 * math.pi) * math.pow(turn, -1.5) * math.exp(-1.5)
    beyond, mean_beyond = (float(each[0]) for each in _beyond(ends[-1:], spread))
    convex: float = float(erfc(t / np.sqrt(2 * ends[1:])) @ mass)
    return convex + (value - slope * turn) * beyond + slope * mean_beyond


def _beyond(ends: Floats, spread: float) -> tuple[Floats, Floats]:
    """Return Pr[G > x] and the mean of G where G > x, times that, for each x of `ends`."""
    from scipy.special import gammaincc  # slow to import

    if not 1 < spread < 2:
        return gammaincc(spread, spread * ends), gammaincc(spread + 1, spread * ends)
    large, small = 1 / spread, 1 - 1 / spread
    parts = [mean * np.exp(-ends / mean) / (large - small) for mean in (large, small)]
    more: Floats = large * parts[0] - small * parts[1]
    return parts[0] - parts[1], ends * (parts[0] - parts[1]) + more
