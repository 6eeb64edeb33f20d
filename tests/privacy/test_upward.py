"""Rounding upward, compared with exact fractions and decimals."""

import math
from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from privacy.upward import above, below, root_above, shown

fractions = st.fractions(min_value=0, max_value=10**9, max_denominator=10**12)
losses = st.floats(min_value=1e-18, max_value=1e6)


@given(exact=fractions)
def test_the_next_float_up_or_down_is_taken_and_no_other(exact):
    assert Fraction(math.nextafter(above(exact), -1)) < exact <= Fraction(above(exact))
    assert Fraction(below(exact)) <= exact < Fraction(math.nextafter(below(exact), math.inf))


@given(exact=fractions)
def test_a_root_is_the_least_float_whose_square_reaches(exact):
    root = root_above(exact)

    assert Fraction(root) ** 2 >= exact
    assert root == 0 or Fraction(math.nextafter(root, 0)) ** 2 < exact


@given(loss=losses, digits=st.integers(2, 8))
def test_people_never_read_less_than_was_proved(loss, digits):
    text = shown(loss, digits)

    assert Decimal(text) >= Decimal(loss) or float(text) == loss
    assert Decimal(text) <= Decimal(loss) * (1 + 10 * Decimal(10) ** -digits)
    assert len(text.split("e")[0].replace(".", "").lstrip("0")) <= max(digits, 7)


@given(written=st.integers(1, 999_999), power=st.integers(-15, 2))
def test_a_number_of_few_digits_is_shown_as_it_was_written(written, power):
    number = float(f"{written}e{power}")

    assert float(shown(number)) == number
    assert Decimal(shown(number * (1 - 3e-15))) == Decimal(f"{written}e{power}")
