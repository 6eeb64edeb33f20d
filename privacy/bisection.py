"""Bisection: the last number at which a condition holds, to a tolerance, and never beyond it."""

from collections.abc import Callable
from typing import Any, TypeVar

Number = TypeVar("Number", int, float)


def last_holding(
    holds: Callable[[Number], bool],
    good: Number,
    bad: Number,
    *,
    near: Callable[[Number, Number], bool],
    steps: int = 4096,
    whole: bool = False,
) -> Number:
    """Return the last number at which a condition holds, by bisection from a number at which it does not.

    Args:
        holds: the condition.
        good: a number at which it holds; above or below `bad`.
        bad: a number at which it does not.
        near: whether the two are near enough to stop.
        steps: largest number of halvings.
        whole: whether all numbers are integers.

    Returns:
        `good`, or a number nearer to `bad` at which the condition was checked to hold.

    >>> last_holding(lambda x: x * x <= 2, 1.0, 2.0, near=lambda good, bad: bad - good < 1e-3)
    1.4140625
    """
    for _ in range(steps):
        if near(good, bad):
            break
        middle: Any = (good + bad) // 2 if whole else (good + bad) / 2
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good
