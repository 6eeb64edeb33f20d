"""Lower bounds of the probability that a sum of noise reaches a number, for audits of `privacy.noise.tails`.

They are computed in another way than the upper bounds of a plan, and are less than 1 % below the exact probability.

    Laplace    a sum of m samples is the difference of two sums of m geometric samples, so Pr[Z >= y] = E[S(y + G)] with
               G one of them and S the survival function of the other. S falls: each of `PIECES` equally likely
               pieces of G counts with the smallest value of S in it.
    Gaussian   the integral of the density from y on. The sum over whole numbers is larger, since the density falls.
"""

from functools import cache

import numpy as np

from privacy.noise.distributions import NoiseDistribution

PIECES = 2**13


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
    from scipy.special import ndtr  # slow to import
    from scipy.stats import nbinom

    if reach <= 0:
        return 0.5
    if noise.stable:
        return float(ndtr(-reach / (noise.scale * np.sqrt(variance))))
    chance, terms = -np.expm1(-1 / noise.scale), round(variance)
    if terms == 1:
        return float(np.exp(-reach / noise.scale) / (2 - chance))
    ends = nbinom.ppf(np.arange(1, PIECES) / PIECES, terms, chance)
    return float(nbinom.sf(reach - 1 + ends, terms, chance).sum() / PIECES)
