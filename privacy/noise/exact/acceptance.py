"""Acceptance with probability exp(-x), exactly: a float decides if it is far enough from the uniform number.

The float's error is below 2^-44 (docs/proofs/samplers.md#acceptance): it uses only additions, multiplications and
divisions, which IEEE 754 rounds correctly, and no library's exponential.
"""

from collections.abc import Callable
from fractions import Fraction
from math import factorial

import numpy as np
from numpy.typing import NDArray

from privacy.noise.exact.bounds import exponential
from privacy.noise.exact.words import Lengths, Unsigned, WordSource

Floats = NDArray[np.float64]

DOUBT = 2.0**-40
"""A uniform number at least this far from the float is decided by it."""

SERIES = tuple((-1) ** n / factorial(n) for n in range(10, -1, -1))
"""Coefficients of the series of exp(-y), the last ones first; y <= 1/4."""


def accept(
    first: Unsigned, exponent: Floats, exact: Callable[[int], Fraction], *, lengths: Lengths, words: WordSource
) -> NDArray[np.bool_]:
    """Return whether each uniform number U is below exp(-x).

    Args:
        first: the first `short` bits of each U, unsigned [numbers].
        exponent: x, float64 [numbers], with an error of at most 2^-50 if it is at most 1.
        exact: returns x of one place, as a fraction.
        lengths: of the words.
        words: further bits.
    """
    rest = lengths.rest
    uniform = (first.astype(np.int64) << rest) | words(rest, len(first)).astype(np.int64)
    scaled = np.ldexp(probability(exponent), lengths.long)
    doubt = np.ldexp(DOUBT, lengths.long)
    accepted: NDArray[np.bool_] = uniform + 1 <= scaled - doubt
    open_ = ~accepted & (uniform < scaled + doubt) | (exponent > 1)
    for place in np.flatnonzero(open_).tolist():
        accepted[place] = _undecided(int(uniform[place]), exact(place), lengths.long, words)
    return accepted


def probability(x: Floats) -> Floats:
    """Return exp(-x), float64 [numbers], for 0 <= x <= 1, with an error below 2^-45; anything for larger x."""
    quarter = np.minimum(x, 1.0) * 0.25
    sums = np.full_like(quarter, SERIES[0])
    for coefficient in SERIES[1:]:
        sums *= quarter
        sums += coefficient
    sums *= sums
    sums *= sums
    return sums


def _undecided(uniform: int, x: Fraction, step: int, words: WordSource) -> bool:
    bits = step
    while True:
        lower, upper = exponential(x, bits + step)
        if uniform + 1 << step <= lower:
            return True
        if uniform << step >= upper:
            return False
        uniform, bits = uniform << step | int(words(step, 1)[0]), bits + step
