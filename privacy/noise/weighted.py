"""Standard deviations and half widths of intervals of weighted sums of noise, for any weights.

A published number's noise is S = sum_i w_i Z_i with independent samples Z_i of one distribution and weights w_i > 0,
equal ones for sums of nodes, any real ones after least squares. For equal weights the half width is the
distribution's own, times the weight.

Unequal weights need more than the continuous distribution (docs/proofs/weighted_laplace_sums.md has a counterexample),
so S's own characteristic function psi is inverted by means of Selberg's minorant: on a circle of length
`period` there is a trigonometric polynomial of degree below `degree` that is nowhere above the indicator of [-h, h] and
whose mean is only 1 / degree smaller than the indicator's. With c_j its coefficients,

    Pr[|S| <= h]  >=  c_0 + 2 sum_{0 < j < degree} c_j psi(2 pi j / period)  -  Pr[|S| >= period - h].

This is a bound and not an approximation: it states every term that is left out. It makes h too large by about
period / (2 degree). Source: Vaaler, "Some extremal functions in Fourier analysis", Bull. AMS 12 (1985); the polynomial
as in Montgomery, "Ten lectures on the interface between analytic number theory and harmonic analysis", chapter 1.
Proofs of the rest: docs/proofs/weighted_laplace_sums.md.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privacy.bisection import last_holding
from privacy.checks import proportion
from privacy.noise.distributions import DiscreteLaplace, NoiseDistribution

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FINENESS = 600
"""Degree for each 2 pi of the period in deviations: Laplace half widths are too large by pi / 600 of one (0.3 %)."""

SMOOTH = 8.0
"""Scale from which discrete Gaussian noise has the normal characteristic function to 1e-11, up to pi."""

ROUNDING = 1e-10
"""Upper bound of floating-point errors in a bound on a probability."""

ALIAS, DROPPED = 1e-4, 1e-5
"""Shares of 1 - confidence: for mass beyond the period, and the size below which psi's values are left out."""


def spreads(
    distribution: NoiseDistribution,
    *,
    variances: Floats,
    weights: Callable[[], list[Floats]],
    confidence: float,
) -> tuple[Floats, Floats]:
    """Return standard deviations and half widths of published numbers, float64 [numbers] each, in steps of a leaf sum.

    Args:
        distribution: the noise of one node, in the same steps.
        variances: float64 [numbers], from privacy.strategies.base.Strategy.
        weights: returns the weights of each number; not called for Gaussian noise, whose half widths need none.
        confidence: confidence level of each number's interval.

    >>> deviations, widths = spreads(
    ...     DiscreteLaplace(10.0),
    ...     variances=np.array([1.0, 1.25]),
    ...     weights=lambda: [np.array([1.0]), np.array([1.0, 0.5])],
    ...     confidence=0.95,
    ... )
    >>> deviations.round(2).tolist(), widths.round(1).tolist()
    ([14.14, 15.8], [30.0, 32.6])
    """
    deviations: Floats = np.sqrt(variances * distribution.variance)
    if distribution.stable:
        return deviations, _of_gaussian(distribution.scale, confidence) * np.sqrt(variances)
    return deviations, np.array([half_width(distribution, sizes, confidence) for sizes in weights()])


def half_width(
    distribution: NoiseDistribution, weights: Floats, confidence: float, *, counts: Ints | None = None
) -> float:
    """Return h with Pr[|sum_i weights_i Z_i| <= h] >= confidence, in units of a weight times a step.

    Laplace noise: for equal weights h is that of `DiscreteLaplace.half_width`; otherwise it exceeds the smallest such h
    by some 0.5 % of the noise's standard deviation, and by the effect of the atoms of narrow noise. Gaussian noise: h
    is the normal quantile, plus 1e-4 of it, and about once the root of the sum of squared weights, which no single
    weight exceeds, for scales from `SMOOTH` on; below that it is the Chernoff bound, some 40 % wider. Both suit
    confidences up to 0.99; beyond 0.9999 they become wide but remain valid.

    Args:
        distribution: the noise of one sample.
        weights: positive, in any order, float64 [weights].
        confidence: between 0 and 1.
        counts: multiplicity of each weight, int64 [weights]; None: one.

    >>> half_width(DiscreteLaplace(1.0), np.array([0.5, 0.5, 0.5]), 0.95)
    2.5
    """
    proportion("confidence", confidence)
    weights = np.asarray(weights, dtype=np.float64)
    if counts is not None and distribution.stable:
        return _of_gaussian(distribution.scale, confidence) * math.sqrt(float(counts @ weights**2))
    if counts is not None:
        if len(weights) == 1:
            return float(weights[0]) * distribution.half_width(int(counts[0]), confidence)
        order = np.argsort(weights)
        return _of_laplace(distribution.scale, weights[order].tobytes(), counts[order].tobytes(), confidence)
    if distribution.stable:
        return _of_gaussian(distribution.scale, confidence) * math.sqrt(float(weights @ weights))
    # Equal weights may come as a view of one number, which need not be read entry by entry.
    if weights.strides == (0,) or weights.min() == weights.max():
        return float(weights[0]) * distribution.half_width(len(weights), confidence)
    sizes, counts = np.unique(weights, return_counts=True)
    return _of_laplace(distribution.scale, sizes.tobytes(), counts.tobytes(), confidence)


@lru_cache(maxsize=2048)
def _of_laplace(scale: float, sizes: bytes, counts: bytes, confidence: float) -> float:
    """Return the half width for `counts` weights of each of the `sizes`, increasing; as bytes, which are hashable."""
    size, count = np.frombuffer(sizes)[::-1], np.frombuffer(counts, dtype=np.int64)[::-1]
    # Lengths below are in deviations of the continuous distribution, which those of the discrete one do not exceed.
    deviation = scale * math.sqrt(2 * float(count @ size**2))
    size = size / deviation

    def reach(tail: float) -> float:
        """Return a number with Pr[|S| >= number] <= tail, by Chernoff's bound."""
        exponent = math.log(2 / tail)
        return max(2 * math.sqrt(exponent), math.sqrt(8) * scale * float(size[0]) * exponent)

    lost = 1 - confidence
    top = reach(lost)
    period = top + reach(ALIAS * lost)
    degree = math.ceil(FINENESS * period / (2 * math.pi))
    index = np.arange(1, degree)
    # psi is the product of 1 / (1 + variance (1 - cos(w u))); the largest weights come first, so that the others are
    # not needed where it is negligible.
    twice = 2 * DiscreteLaplace(scale).variance
    logs = np.zeros(degree - 1)
    first = 0
    while first < len(size):
        block = slice(first, first := 2 * first + 16)
        angles = np.outer(size[block], (math.pi / period) * index)
        logs -= count[block] @ np.log1p(twice * np.sin(angles) ** 2)
        kept = logs > math.log(DROPPED * lost)
        index, logs = index[kept], logs[kept]
    wanted = confidence + (ALIAS + DROPPED * _most(degree)) * lost + ROUNDING
    return deviation * _smallest(top, wanted, period, degree, index, np.exp(logs))


@lru_cache(maxsize=1024)
def _of_gaussian(scale: float, confidence: float) -> float:
    """Return the half width for any weights whose squares add up to 1."""

    def reach(tail: float) -> float:
        """Return a number with Pr[|S| >= number * scale] <= tail: discrete Gaussian noise is subgaussian."""
        return math.sqrt(2 * math.log(2 / tail))

    lost = 1 - confidence
    top = reach(lost)
    if scale < SMOOTH:
        return scale * top
    period = top + reach(ALIAS * lost)
    # psi is evaluated up to u = pi, where all weights times u are within pi.
    degree = math.floor(scale * period / 2)
    index = np.arange(1, min(degree, math.ceil(reach(DROPPED * lost) * period / (2 * math.pi)) + 1))
    psi = np.exp(-((2 * math.pi / period * index) ** 2) / 2)
    wanted = confidence + (ALIAS + DROPPED * _most(degree)) * lost + ROUNDING + 1e-11 * _most(degree)
    return scale * _smallest(top, wanted, period, degree, index, psi)


def _most(degree: int) -> float:
    """Return more than 2 sum |c_j| over 0 < j < degree, since |c_j| <= 1 / (pi j) + 1 / degree."""
    return 2 + 2 / math.pi * (1 + math.log(degree))


def _smallest(top: float, wanted: float, period: float, degree: int, index: NDArray[np.int64], psi: Floats) -> float:
    """Return nearly the least h up to `top` at which the minorant's mean is `wanted`; `top` holds by another bound."""

    def holds(h: float) -> bool:
        constant, cosines = minorant(h, period=period, degree=degree, index=index)
        return bool(constant + cosines @ psi >= wanted)

    return last_holding(holds, top, 0.0, near=lambda high, low: high - low <= 1e-5 * top)


def minorant(h: float, *, period: float, degree: int, index: NDArray[np.int64]) -> tuple[float, Floats]:
    """Return Selberg's minorant of the indicator of [-h, h] on a circle: its c_0, and 2 c_j for the j of `index`.

    Args:
        h: half width of the interval.
        period: length of the circle, in the unit of h.
        degree: degree of the polynomial plus one.
        index: j, int64 [coefficients].

    >>> j = np.arange(1, 64)
    >>> constant, cosines = minorant(1.0, period=8.0, degree=64, index=j)
    >>> [round(float(constant + cosines @ np.cos(2 * np.pi / 8.0 * j * x)), 3) for x in (0.0, 0.9, 1.0, 1.1, 4.0)]
    [1.0, 0.963, 0.0, -0.018, 0.0]
    """
    share = index / degree
    angles = (2 * math.pi * h / period) * index
    odd = (1 - share) / np.tan(math.pi * share) + 1 / math.pi
    return 2 * h / period - 1 / degree, (odd * np.sin(angles) - (1 - share) * np.cos(angles)) * (2 / degree)
