"""Powers of e on the side of privacy."""

import math
from fractions import Fraction

_ONE = 1 << 96


def exponential_below(exponent: Fraction) -> Fraction:
    """At most e^exponent, by less than one part in 10^20; exponent >= 0.

    The series, each of whose terms is positive and rounded downward.

    >>> float(exponential_below(Fraction(1))) == math.e, exponential_below(Fraction(0))
    (True, Fraction(1, 1))
    """
    total = term = _ONE
    count = 1
    while term:
        term = int(term * exponent / count)
        total += term
        count += 1
    return Fraction(total, _ONE)


def logarithm(ratio: Fraction) -> float:
    """The natural logarithm, for people to read."""
    return math.log(ratio.numerator) - math.log(ratio.denominator)
