"""The two noise distributions on the integers: their exact variances, samples and confidence intervals.

Values are on a public grid, and the unit here is one grid step. The cost of noise depends on the sensitivity of the
values that it is added to (privacy.accounting).
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least, positive, proportion
from privacy.noise.sampling import Integers, discrete_gaussian, discrete_laplace
from privacy.noise.tails import gaussian_tail, laplace_tail
from privacy.upward import above


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Two-sided geometric noise: Pr[N = n] = (1 - q) / (1 + q) * q^|n| with q = exp(-1 / scale).

    Guarantee: added to each coordinate of an integer vector that moves by at most D steps in L1
    between neighbours (changelogs that differ by one unit), it is (D / scale, 0)-DP; with scales
    b_j by coordinate, (sum_j D_j / b_j, 0)-DP.
    Source: Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms",
    SIAM J. Comput. 41 (2012), section 2.

    Attributes:
        stable: whether a weighted sum is distributed nearly as one sample of scale b times the L2 norm of the weights.
        scale: b, in steps.

    >>> round(DiscreteLaplace(2.0).variance, 4)
    7.8354
    """

    name: ClassVar[str] = "discrete_laplace"
    stable: ClassVar[bool] = False
    scale: float

    def __post_init__(self) -> None:
        positive("scale", self.scale)

    @property
    def variance(self) -> float:
        """Exact variance in steps^2: 2q / (1 - q)^2, just below 2 scale^2."""
        return 2 * math.exp(-1 / self.scale) / math.expm1(-1 / self.scale) ** 2

    def noise(self, size: int) -> Integers:
        """Return `size` fresh independent samples, in steps, int64 [size]."""
        return discrete_laplace(scale=self.scale, size=size)

    def half_width(self, terms: int, confidence: float = 0.95) -> float:
        """Return whole steps h with Pr[|sum of `terms` samples| <= h] >= confidence.

        h is the smallest one for one term. For more, it is the continuous distribution's quantile rounded up, which is
        a bound: a Laplace variable is a discrete one plus an independent symmetric remainder, and a remainder can only
        spread a symmetric unimodal sum (docs/proofs/discrete_laplace_sums.md).

        >>> DiscreteLaplace(1.0).half_width(1)
        3.0
        """
        at_least("terms", terms, 1)
        proportion("confidence", confidence)
        if terms == 1:
            # Pr[|N| > h] = 2 q^(h+1) / (1 + q).
            tail = (1 - confidence) * (1 + math.exp(-1 / self.scale)) / 2
            return float(max(0, math.ceil(-self.scale * math.log(tail) - 1)))
        return float(math.ceil(self.scale * _laplace_sum_quantile(terms, confidence)))

    def tail(self, squares: float, reach: NDArray[np.float64], *, summed: bool) -> NDArray[np.float64]:
        """Return upper bounds of Pr[sum of samples >= reach], float64 [n] (`laplace_tail`).

        Args:
            squares: number of samples.
            reach: whole numbers of steps, float64 [n].
            summed: whether all weights are 1; others have no bound.
        """
        return laplace_tail(self.scale, round(squares), reach) if summed else np.ones_like(reach)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Discrete Gaussian noise: Pr[N = n] proportional to exp(-n^2 / (2 scale^2)).

    Guarantee: added to each coordinate of an integer vector that moves by at most D steps in L2
    between neighbours (changelogs that differ by one unit), it is D^2 / (2 scale^2)-zCDP; for its
    (epsilon, delta) see privacy.accounting.
    Source: Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS
    2020, definition 1 and theorem 4.

    Attributes:
        stable: as for `DiscreteLaplace`.
        scale: sigma, in steps; the standard deviation is never larger.

    >>> round(DiscreteGaussian(1.0).variance, 6)
    1.0
    """

    name: ClassVar[str] = "discrete_gaussian"
    stable: ClassVar[bool] = True
    scale: float

    def __post_init__(self) -> None:
        positive("scale", self.scale)

    @property
    def variance(self) -> float:
        """Exact variance in steps^2, at most scale^2 and equal to it to 1e-7 from scale 1 on."""
        index = np.arange(1.0, 13.0)
        if self.scale < 1:
            weights = np.exp(-(index**2) / (2 * self.scale**2))
            return float(2 * (index**2 * weights).sum() / (1 + 2 * weights.sum()))
        # The same sum after Poisson summation, where a dozen terms are enough for wide noise.
        exponents = 2 * math.pi**2 * self.scale**2 * index**2
        weights = np.exp(-exponents)
        return float(self.scale**2 * (1 - 4 * (exponents * weights).sum() / (1 + 2 * weights.sum())))

    def noise(self, size: int) -> Integers:
        """Return `size` fresh independent samples, in steps, int64 [size]."""
        return discrete_gaussian(scale=self.scale, size=size)

    def half_width(self, terms: int, confidence: float = 0.95) -> float:
        """Return whole steps h with Pr[|sum of `terms` samples| <= h] >= confidence.

        At most two steps too wide for scales from 2 on: the normal quantile of sigma sqrt(terms),
        rounded up. A sum of discrete Gaussians is a wider one up to factors
        1 + O(exp(-pi^2 scale^2)), and its probability of whole steps up to h is more than that of the normal
        distribution within h. Tests compare it with exact convolutions from scale 0.3 on.

        >>> DiscreteGaussian(10.0).half_width(4)
        40.0
        """
        at_least("terms", terms, 1)
        proportion("confidence", confidence)
        from scipy.special import ndtri  # slow to import

        quantile = float(ndtri((1 + confidence) / 2))
        return float(math.ceil(self.scale * math.sqrt(terms) * quantile))

    def tail(self, squares: float, reach: NDArray[np.float64], *, summed: bool) -> NDArray[np.float64]:
        """Return upper bounds of Pr[weighted sum of samples >= reach], float64 [n] (`gaussian_tail`)."""
        return gaussian_tail(self.scale, squares, reach, summed=summed)


NoiseDistribution = DiscreteLaplace | DiscreteGaussian


def widened(distribution: NoiseDistribution, stretch: float) -> NoiseDistribution:
    """Return noise of the same kind, `stretch` times as wide; its scale is rounded upward.

    >>> widened(DiscreteLaplace(2.0), 1.5)
    DiscreteLaplace(scale=3.0)
    """
    return replace(distribution, scale=above(Fraction(distribution.scale) * Fraction(stretch)))


@lru_cache(maxsize=65_536)
def _laplace_sum_quantile(terms: int, confidence: float) -> float:
    """Return the smallest h with Pr[|S| <= h] >= confidence, S the sum of `terms` >= 2 Laplace(1) variables.

    S is normal with variance 2G for a Gamma(terms) variable G, since its characteristic function
    (1 + w^2)^-terms is that mixture's. So Pr[|S| > h] = E[erfc(h / (2 sqrt G))]: positive and
    smooth, whereas inverting the characteristic function would oscillate.
    """
    from scipy.optimize import brentq  # both are slow to import
    from scipy.special import erfc, gammaincinv, gammaln

    low, high = (math.sqrt(gammaincinv(terms, tail)) for tail in (1e-14, 1 - 1e-14))
    nodes, weights = _quadrature()
    root = (high - low) / 2 * nodes + (high + low) / 2
    mass = np.exp((2 * terms - 1) * np.log(root) - root**2 - gammaln(terms)) * weights * (high - low)

    def excess(h: float) -> float:
        return float(mass @ erfc(h / (2 * root))) - (1 - confidence)

    spread = math.sqrt(2 * terms)
    top = spread
    while excess(top) > 0:
        top *= 2
    # The margin covers quadrature and root finding, both below 1e-10.
    return float(brentq(excess, 0.0, top, rtol=1e-12)) * (1 + 1e-9)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Gauss-Legendre nodes and weights on [-1, 1]."""
    return np.polynomial.legendre.leggauss(160)
