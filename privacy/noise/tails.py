"""Upper bounds of the probability that a sum of noise reaches a number, rounded up.

    Laplace, one sample        Pr[N >= x] = q^x / (1 + q) for x >= 1, q = exp(-1 / b): exact
    Laplace, sum of m samples  exp(-s x) E[exp(s N)]^m for any s < 1 / b (Chernoff)
    Gaussian, one sample       (f(x) + integral of f from x) / (sigma sqrt(2 pi)), f(u) = exp(-u^2 / (2 sigma^2)), since
                               f falls and its sum over all integers is at least sigma sqrt(2 pi) (Poisson summation)
    Gaussian, any weights      exp(-x^2 / (2 m sigma^2)) with m the sum of squared weights: discrete Gaussian noise is
                               subgaussian

Proofs: docs/proofs/discovery.md#tails.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROUNDING = 1 + 1e-9
"""Factor larger than all floating-point errors of a bound."""


def laplace_tail(scale: float, terms: int, reach: Floats) -> Floats:
    """Return upper bounds of Pr[N_1 + ... + N_terms >= reach] for discrete Laplace noise, float64 [n].

    Args:
        scale: b, in steps.
        terms: number of independent samples.
        reach: whole numbers of steps, float64 [n].

    >>> laplace_tail(1.0, 1, np.array([3.0])).round(6).tolist(), laplace_tail(1.0, 2, np.array([0.0])).tolist()
    ([0.036397], [1.0])
    """
    inside = np.maximum(reach, 1.0)
    if terms == 1:
        found = np.exp(-inside / scale) / (1 + math.exp(-1 / scale))
    else:
        far = inside / scale
        share = far / (terms + np.sqrt(terms**2 + far**2))  # s b: the best one for Laplace variables, valid for all
        moment = 2 * np.log(-np.expm1(-1 / scale))
        moment = moment - np.log(-np.expm1((share - 1) / scale)) - np.log(-np.expm1(-(1 + share) / scale))
        found = np.exp(terms * moment - share * far)
    return _at_most_one(found, reach)


def gaussian_tail(scale: float, squares: float, reach: Floats, *, summed: bool) -> Floats:
    """Return upper bounds of Pr[w_1 N_1 + w_2 N_2 + ... >= reach] for discrete Gaussian noise, float64 [n].

    Args:
        scale: sigma, in steps.
        squares: sum of the squared weights.
        reach: whole numbers of steps, float64 [n].
        summed: whether all weights are 1, so that `squares` is the number of samples.

    >>> gaussian_tail(10.0, 1, np.array([30.0]), summed=True).round(6).tolist()
    [0.001793]
    >>> gaussian_tail(10.0, 4, np.array([60.0]), summed=False).round(6).tolist()
    [0.011109]
    """
    inside = np.maximum(reach, 1.0)
    found = np.exp(-(inside**2) / (2 * squares * scale**2))
    if summed and squares == 1:
        beyond = np.array([math.erfc(each / (scale * math.sqrt(2))) / 2 for each in inside.tolist()])
        found = np.minimum(found, found / (scale * math.sqrt(2 * math.pi)) + beyond)
    return _at_most_one(found, reach)


def _at_most_one(found: Floats, reach: Floats) -> Floats:
    return np.where(reach >= 1, np.minimum(found * ROUNDING, 1.0), 1.0)
