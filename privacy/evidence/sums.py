"""Lower bounds of the probability that a sum of noise reaches a number, for audits of `privacy.noise.tails`.

They are computed in another way than the upper bounds of a plan, and are less than 1 % below the exact probability, or
a part of y / (2 sigma^2) for Gaussian noise.

    Laplace    a sum of m samples is the difference of two sums of m geometric samples, so Pr[Z >= y] = E[S(y + G)] with
               G one of them and S the survival function of the other. S falls: in each of `PIECES` ranges of G, its
               smallest value counts. Values of G above all ranges count nothing.
    Gaussian   the integral of the density from y on. The sum over whole numbers is larger, since the density falls.
"""

from functools import cache

import numpy as np

from privacy.noise.distributions import NoiseDistribution

PIECES = 2**13

LARGEST = 40
"""Values of G that count, in scales, above twice its mean."""


@cache
def reached(noise: NoiseDistribution, variance: float, reach: int) -> float:
    """Return a lower bound of the probability that noise is at least `reach`.

    Args:
        noise: noise of one sample.
        variance: variance of the sum, in units of that of one sample; for Laplace noise the number of samples.
        reach: whole number of grid steps, at least 1.

    >>> from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace
    >>> round(reached(DiscreteLaplace(1.0), 1, 3), 6), round(reached(DiscreteGaussian(10.0), 4, 60), 6)
    (0.036397, 0.00135)
    """
    from scipy.special import betainc, ndtr  # slow to import

    if reach <= 0:
        return 0.5
    if noise.stable:
        return float(ndtr(-reach / (noise.scale * np.sqrt(variance))))
    terms, fails = round(variance), np.exp(-1 / noise.scale)
    if terms == 1:
        return float(np.exp(-reach / noise.scale) / (1 + fails))
    ends = np.unique(np.rint(np.linspace(0, (LARGEST + 2 * terms) * noise.scale, PIECES)))
    above = np.append(1.0, betainc(ends + 1, terms, fails))  # Pr[G > end], with all of it before the first one
    return float((-np.diff(above) * betainc(reach + ends, terms, fails)).sum())
