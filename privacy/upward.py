"""Rounding on the side of privacy: what is charged, proved or shown is never below what is true."""

import math
from fractions import Fraction


def above(exact: Fraction | int) -> float:
    """The least float that is not below.

    >>> above(Fraction(1, 4)), Fraction(above(Fraction(1, 3))) > Fraction(1, 3)
    (0.25, True)
    """
    numerator, denominator = exact.as_integer_ratio()
    near = numerator / denominator
    n, d = near.as_integer_ratio()
    return near if n * denominator >= numerator * d else math.nextafter(near, math.inf)


def below(exact: Fraction | int) -> float:
    """The largest float that is not above."""
    return -above(-exact)


def root_above(exact: Fraction | int) -> float:
    """The least float whose square is not below.

    >>> root_above(9), Fraction(root_above(2)) ** 2 > 2
    (3.0, True)
    """
    numerator, denominator = exact.as_integer_ratio()

    def reaches(root: float) -> bool:
        n, d = root.as_integer_ratio()
        return n * n * denominator >= numerator * d * d

    near = math.sqrt(numerator / denominator)
    while near > 0 and reaches(math.nextafter(near, 0.0)):
        near = math.nextafter(near, 0.0)
    while not reaches(near):
        near = math.nextafter(near, math.inf)
    return near
