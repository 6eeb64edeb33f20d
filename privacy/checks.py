"""Checks of parameters: every message names the parameter, its value and the rule."""

import math


def at_least(name: str, value: int, least: int) -> None:
    """Refuse an integer below `least`.

    Args:
        name: name of the parameter, for the message.
        value: its value.
        least: the least accepted value.

    Raises:
        ValueError: `value` is too small.

    >>> at_least("changes", 0, 1)
    Traceback (most recent call last):
    ValueError: changes=0 must be at least 1
    """
    if value < least:
        raise ValueError(f"{name}={value} must be at least {least}")


def between(name: str, value: int, least: int, most: int) -> None:
    """Refuse an integer below `least` or above `most`.

    Args:
        name: name of the parameter, for the message.
        value: its value.
        least: the least accepted value.
        most: the largest accepted value.

    Raises:
        ValueError: `value` is outside the range.

    >>> between("answers", 10**20, 1, 65_535)
    Traceback (most recent call last):
    ValueError: answers=100000000000000000000 must lie between 1 and 65,535
    """
    if not least <= value <= most:
        raise ValueError(f"{name}={value} must lie between {least:,} and {most:,}")


def positive(name: str, value: float) -> None:
    """Refuse zero, negative numbers, infinity and NaN.

    >>> positive("scale", float("nan"))
    Traceback (most recent call last):
    ValueError: scale=nan must be positive and finite
    """
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}={value} must be positive and finite")


def proportion(name: str, value: float) -> None:
    """Refuse numbers that are not strictly between 0 and 1.

    >>> proportion("confidence", 1.0)
    Traceback (most recent call last):
    ValueError: confidence=1.0 must lie strictly between 0 and 1
    """
    if not 0 < value < 1:
        raise ValueError(f"{name}={value} must lie strictly between 0 and 1")
