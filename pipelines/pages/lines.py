"""Lines of charts: numbers and the ends of their intervals, with few digits."""

import math

import numpy as np

from pipelines.pages.numbers import Floats, Numbers, decimals
from pipelines.pages.pictures.grid import rounded_sums

FINE = 6
"""Digits of ends of intervals that would be zero with fewer."""


def line_of(value: Floats, low: Floats, high: Floats) -> dict[str, list[float | None]]:
    """Return one line of a chart, rounded as in texts (`numbers.rounded`); intervals are rounded outward.

    Args:
        value, low, high: Numbers with the ends of their intervals, [windows], float64; not a number if unknown.
    """
    width = high - low
    digits = decimals(float(np.nanmedian(width)) / 2 if np.isfinite(width).any() else 0.0)
    return _line(np.round(value * 10.0**digits) / 10.0**digits, low, high, digits)


def lines_of_boxes(numbers: Numbers, last: slice, shape: tuple[int, ...]) -> list[dict[str, list[float | None]]]:
    """Return the lines of all cells with as many digits each, rounded so that sums of boxes are right."""
    value, low, high = (column[last] for column in (numbers.value, numbers.low, numbers.high))
    digits = digits_of(high - low)
    if np.isfinite(value).all():
        value = rounded_sums(value, shape, digits)
    return [_line(value[:, cell], low[:, cell], high[:, cell], digits) for cell in range(value.shape[1])]


def digits_of(width: Floats) -> int:
    """Return the number of decimal digits that numbers have on the page: three digits of the noise."""
    noise = np.nanmedian(width) if np.isfinite(width).any() else 0.0
    return 2 - math.floor(math.log10(noise)) if noise > 0 else 6


def _line(value: Floats, low: Floats, high: Floats, digits: int) -> dict[str, list[float | None]]:
    lo, hi = -_ceiled(-low, digits), _ceiled(high, digits)
    return {"v": _plain(value, digits), "lo": _plain(lo, max(digits, FINE)), "hi": _plain(hi, max(digits, FINE))}


def _ceiled(ends: Floats, digits: int) -> Floats:
    """Return upper ends rounded up; one below zero does not become zero."""
    found = np.round(np.ceil(ends * 10.0**digits - 1e-9) / 10.0**digits, digits)
    return np.where((ends < 0) & (found >= 0), np.ceil(ends * 10.0**FINE) / 10.0**FINE, found)


def _plain(column: Floats, digits: int) -> list[float | None]:
    """Return numbers for JSON: whole numbers without a decimal point, and null for unknown ones."""
    rounded = np.round(column, digits) + 0.0  # no negative zero
    return [
        None if math.isnan(one) else int(one) if one.is_integer() and abs(one) < 2**53 else one
        for one in rounded.tolist()
    ]
