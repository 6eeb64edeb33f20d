"""Rounding on the side of privacy: charged, proved and shown numbers are never below the exact ones."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

_DIGITS = 60
"""Number of digits of exponentials and logarithms, which `decimal` rounds correctly in the last digit."""

_LAST = Fraction(1, 10**58)
"""Upper bound of their error, relative to the number; there are at most as many digits after the decimal point."""


def above(exact: Fraction | int) -> float:
    """Return the least float that is not below an exact number.

    >>> above(Fraction(1, 4)), Fraction(above(Fraction(1, 3))) > Fraction(1, 3)
    (0.25, True)
    """
    numerator, denominator = exact.as_integer_ratio()
    near = numerator / denominator
    n, d = near.as_integer_ratio()
    return near if n * denominator >= numerator * d else math.nextafter(near, math.inf)


def below(exact: Fraction | int) -> float:
    """Return the largest float that is not above an exact number."""
    return -above(-exact)


def root_above(exact: Fraction | int) -> float:
    """Return the least float whose square is not below an exact number.

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


def exp_below(exponent: Fraction | float) -> Fraction:
    """Return a fraction that is not above e^exponent, and by less than one part in 10^50 below it.

    >>> exp_below(0), 2.718281828 < exp_below(1) < math.e + 1e-15
    (Fraction(1, 1), True)
    """
    if exponent == 0:
        return Fraction(1)
    return Fraction(_decimal(Fraction(exponent), up=False).exp(_context())) * (1 - _LAST)


def exp_above(exponent: Fraction | float) -> Fraction:
    """Return a fraction that is not below e^exponent, and by less than one part in 10^50 above it."""
    return 1 / exp_below(-exponent)


def log_above(number: Fraction) -> Fraction:
    """Return a fraction that is not below the logarithm of a positive number, and by less than 10^-50 above it.

    >>> log_above(Fraction(1)), 0 < log_above(Fraction(2)) - Fraction(math.log(2)) < Fraction(1, 10**15)
    (Fraction(0, 1), True)
    """
    if number == 1:
        return Fraction(0)
    near = Fraction(_decimal(number, up=True).ln(_context()))
    return near + abs(near) * _LAST + 1000 * _LAST


def _context() -> Context:
    return Context(prec=_DIGITS)


def _decimal(number: Fraction, *, up: bool) -> Decimal:
    """Return a decimal not below a fraction, or not above it."""
    context = Context(prec=_DIGITS + 20, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def shown(number: float, digits: int = 6) -> str:
    """Return an epsilon or a delta as text with `digits` digits, never less than the number.

    A number that has at most this many digits in text is shown as that text, like a delta of a spec. Its float may be
    above that by less than one part in 10^15, which is less than the margin of every proved epsilon.

    >>> shown(0.9999999999999966), shown(0.33333333), shown(1e-9), shown(0.12341, digits=4), shown(0.0)
    ('1', '0.333334', '1e-09', '0.1235', '0')
    """
    near = f"{number:.{digits}g}"
    if float(near) == number or Decimal(near) >= Decimal(number):
        return near
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(number))):.{digits}g}"
