"""Rounding on the side of privacy: what is charged, proved or shown is never below what is true."""

import math
from decimal import ROUND_CEILING, Context, Decimal
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


def shown(number: float, digits: int = 6) -> str:
    """An epsilon or a delta for people to read: so many digits, never less than the number.

    One that is written with so few digits is shown as it is written, like a delta of a spec. Its float may lie above
    that by less than one part in 10^15, which is less than the margin that every epsilon is proved with.

    >>> shown(0.9999999999999966), shown(0.33333333), shown(1e-9), shown(0.12341, digits=4), shown(0.0)
    ('1', '0.333334', '1e-09', '0.1235', '0')
    """
    near = f"{number:.{digits}g}"
    if float(near) == number or Decimal(near) >= Decimal(number):
        return near
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(number))):.{digits}g}"
