"""Discrete Laplace noise on a bounded number on a grid: the least scale for (epsilon, delta).

A record's number is one of 0, ..., D, in steps of a public grid, and any two of them are neighbours. Noise N with
Pr[N = n] = (1 - q) / (1 + q) q^|n|, q = exp(-1 / b), is added. The worst pair is 0 and D, and the worst set contains
all outputs below a point:

    delta(b) = 0                                              if D <= b epsilon
               1 - (q^(k + 1) + e^epsilon q^(D - k)) / (1 + q)    otherwise, with k = ceil((D - b epsilon) / 2) - 1.

Source: Holohan, Leith, Mason, "Differential Privacy in Metric Spaces" (Information Sciences 305, 2015), example 5, for
continuous noise. That bound is not tight; exactly, continuous noise has 1 - exp((epsilon - D / b) / 2), so
b = D / (epsilon - 2 ln(1 - delta)) is sufficient and necessary. On the grid b is slightly larger. Proofs:
docs/proofs/sanitised.md.
"""

import math
from fractions import Fraction
from functools import lru_cache

from privacy.bisection import last_holding
from privacy.checks import at_least, positive
from privacy.upward import above, exp_above, exp_below


def delta_of(scale: float, steps: int, *, epsilon: float) -> Fraction:
    """Return the exact delta of such noise: never below it, and above it by less than one part in 10^40.

    Neighbours: any two numbers of one record. Sensitivity: `steps` in L1.

    Args:
        scale: b, in grid steps.
        steps: D, the number of steps between the least and the greatest number.
        epsilon: at least 0.

    >>> float(delta_of(10.0, 10, epsilon=1.0)), round(float(delta_of(9.0, 10, epsilon=1.0)), 4)
    (0.0, 0.0555)
    """
    positive("scale", scale)
    at_least("steps", steps, 1)
    room = steps - Fraction(scale) * Fraction(epsilon)
    if room <= 0:
        return Fraction(0)
    k = math.ceil(room / 2) - 1
    left = Fraction(1) / Fraction(scale)
    # The numerator is rounded downward, the denominator upward: the amount subtracted from 1 is never too large.
    lost = exp_below(-(k + 1) * left) + exp_below(Fraction(epsilon) - (steps - k) * left)
    return 1 - lost / (1 + exp_above(-left))


@lru_cache(maxsize=256)
def least_scale(steps: int, *, epsilon: float, delta: float = 0.0) -> float:
    """Return the least scale, in grid steps, at which the noise is (epsilon, delta)-private, to one part in 10^12.

    More noise never costs more: wide discrete Laplace noise is narrow noise plus other noise.

    Args:
        steps: D, the number of steps between the least and the greatest number.
        epsilon, delta: privacy parameters.

    >>> least_scale(10, epsilon=1.0), round(least_scale(1000, epsilon=1.0, delta=0.1), 2)
    (10.0, 825.95)
    """
    at_least("steps", steps, 1)
    positive("epsilon", epsilon)
    allowed = Fraction(delta)
    good = above(steps / Fraction(epsilon))
    if delta == 0:
        return good
    bad = good
    while delta_of(bad, steps, epsilon=epsilon) <= allowed and bad > 2.0**-40:
        good, bad = bad, bad / 2
    return last_holding(
        lambda scale: delta_of(scale, steps, epsilon=epsilon) <= allowed,
        good,
        bad,
        near=lambda good, bad: good - bad <= 1e-12 * good,
    )
