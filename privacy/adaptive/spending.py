"""Units of the budget of samples: what the next window may take, and what each window took. All values are public."""

from collections.abc import Sequence

import numpy as np

from privacy.adaptive.base import Rule
from privacy.adaptive.carry import AdaptiveCarry, Ints
from privacy.counted import counted


def unspent(rule: Rule, carry: AdaptiveCarry | None) -> int:
    """Return the units that remain in the windows that the budget is for, up to the next window."""
    if carry is None:
        return rule.units
    return rule.units - sum(units for at, units in carry.spent if at > carry.windows - rule.period.among)


def offered(rule: Rule, carry: AdaptiveCarry | None) -> int:
    """Return the units that a sample of the next window would take; 0 if it cannot be sampled.

    The result is a function of published numbers. It never exceeds what the windows that end with this one have left,
    for any rule; so no `period.among` windows ever spend more than all units.
    """
    left = unspent(rule, carry)
    return min(rule.wanted(carry, left), left)


def units_of(rule: Rule, sampled: Sequence[bool]) -> list[int]:
    """Return the units that the sample of each window took, from the first window on; 0 without a sample.

    Raises:
        ValueError: a window was sampled that could not be, or the first was not.

    >>> from privacy.adaptive.base import Period
    >>> from privacy.adaptive.bd import BdRule
    >>> units_of(BdRule(period=Period(span=7), decisions=0.5), [True, False, True])
    [524288, 0, 262144]
    """
    carry: AdaptiveCarry | None = None
    taken = []
    for window, one in enumerate(sampled):
        units = offered(rule, carry) if one else 0
        if one != bool(units) or not (carry or one):
            raise ValueError(f"window {window} was sampled, and nothing was left for it, or is the first and was not")
        carry = after(rule, carry, published=np.zeros(0, dtype=np.int64), units=units)
        taken.append(units)
    return taken


def after(
    rule: Rule,
    carry: AdaptiveCarry | None,
    *,
    published: Ints,
    units: int,
    rho: int | None = None,
    fresh: bool = True,
    memory: tuple[float, ...] = (),
) -> AdaptiveCarry:
    """Return the carry after one more window.

    Args:
        rule: decides which windows are sampled.
        carry: carry before the window; None before the first.
        published: values for the next step, int64 [numbers].
        units: units that the window took; 0: it was not sampled.
        rho: noise of the threshold.
        fresh: whether the threshold's noise is sampled again after a sample.
        memory: further values of the rule.
    """
    window = 0 if carry is None else carry.windows
    spent = () if carry is None else carry.spent
    if units:
        spent = (*spent, (window, units))
    still = tuple(each for each in spent[:-1] if each[0] > window + 1 - rule.period.among)
    return AdaptiveCarry(
        windows=window + 1,
        published=published,
        spent=(*still, spent[-1]),
        rho=None if units and fresh else rho,
        memory=memory,
    )


def check_windows(rule: Rule, carry: AdaptiveCarry | None) -> None:
    """Refuse a window after the end of the release.

    Raises:
        ValueError: the release has ended.
    """
    closed = 0 if carry is None else carry.windows
    if rule.period.windows is not None and closed >= rule.period.windows:
        raise ValueError(f"levels: {counted(closed + 1, 'window')}, but the release ends after {rule.period.windows}")
