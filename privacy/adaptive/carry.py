"""What one step of adaptive publication leaves for the next: private, since the threshold's noise is in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privacy.adaptive.policy import Adaptive
from privacy.codec import APART

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveCarry:
    """Its size does not grow with the windows, but for samples that a long span may still hold.

    Attributes:
        windows: how many have closed.
        published: [cells], what was published last; or its sketch (privacy.adaptive.sketch), or what is kept
            of groups (privacy.adaptive.grouping).
        spent: windows that were sampled and their units, by window: those that the budget of the next window still
            has to reckon with, and the last one.
        rho: noise of the threshold, None if it is yet to be sampled.
        ahead: samples ahead of schedule, for `dsat`.
        ahead_so_far: the sum of what was steered against so far, for `dsat`.
    """

    windows: int
    published: Ints = field(metadata=APART)
    spent: tuple[tuple[int, int], ...]
    rho: int | None
    ahead: float
    ahead_so_far: float

    def __post_init__(self) -> None:
        at = [window for window, _ in self.spent]
        if any(before >= after for before, after in pairwise((-1, *at, self.windows))) or any(
            units < 1 for _, units in self.spent
        ):
            raise ValueError("spent: expected windows that have closed, in order, each with its units")


def offered(adaptive: Adaptive, carry: AdaptiveCarry | None) -> int:
    """How many units a sample of the next window would take; 0: it cannot be sampled.

    A function of what was published. Whatever the policy wants, it is no more than what the `among` windows that end
    with this one have left; so no `among` windows ever spend more than all units.
    """
    if carry is None and adaptive.spread is not None:
        return adaptive.spread.units[0]
    if carry is None:
        return adaptive.units // 2 if adaptive.policy == "bd" else 1
    left = unspent(adaptive, carry)
    return min(_wanted(adaptive, carry, left), left)


def unspent(adaptive: Adaptive, carry: AdaptiveCarry) -> int:
    """How many units the `among` windows that end with the next one have left."""
    return adaptive.units - sum(units for at, units in carry.spent if at > carry.windows - adaptive.among)


def _wanted(adaptive: Adaptive, carry: AdaptiveCarry, left: int) -> int:
    if adaptive.interval is not None:
        sample, rest = divmod(carry.windows, adaptive.interval)
        if adaptive.spread is None or rest:
            return int(rest == 0)
        return adaptive.spread.units[sample % len(adaptive.spread.units)]
    if adaptive.policy == "bd":
        return left // 2
    if adaptive.policy == "ba":
        # A sample that took the units of m windows makes the m - 1 windows after it give theirs back.
        last, units = carry.spent[-1]
        return min(max(carry.windows - (last + units - 1), 0), adaptive.among)
    return 1


def units_of(adaptive: Adaptive, sampled: Sequence[bool]) -> list[int]:
    """How many units the sample of each window took, from the first window on; 0 where there was none.

    Raises:
        ValueError: a window was sampled that could not be, or the first was not.

    >>> units_of(Adaptive(policy="bd", span=7, decisions=0.5), [True, False, True])
    [524288, 0, 262144]
    """
    carry: AdaptiveCarry | None = None
    taken = []
    for window, one in enumerate(sampled):
        units = offered(adaptive, carry) if one else 0
        if one != bool(units) or not (carry or one):
            raise ValueError(f"window {window} was sampled, and nothing was left for it, or is the first and was not")
        carry = after(adaptive, carry, published=np.zeros(0, dtype=np.int64), units=units, rho=None, anew=True)
        taken.append(units)
    return taken


def undecided(adaptive: Adaptive, carry: AdaptiveCarry) -> bool:
    """Whether the data are asked about the next window, if a sample of it is offered: a function of what was published.

    The last windows of a release with an end are sampled in any case, as many as samples are left: those would be of no
    use to anything else. So is the first, before there is a carry.
    """
    if adaptive.samples is None or adaptive.windows is None:
        return True
    return adaptive.samples - len(carry.spent) < adaptive.windows - carry.windows


def after(
    adaptive: Adaptive, carry: AdaptiveCarry | None, *, published: Ints, units: int, rho: int | None, anew: bool
) -> AdaptiveCarry:
    """The carry after one more window, which took so many units; 0: it was not sampled.

    Args:
        anew: whether the threshold's noise is sampled anew after a sample.
    """
    window = 0 if carry is None else carry.windows
    spent = () if carry is None else carry.spent
    if units:
        spent = (*spent, (window, units))
    still = tuple(each for each in spent[:-1] if each[0] > window + 1 - adaptive.among)
    ahead = so_far = 0.0
    if adaptive.gains is not None:
        last, past = (0.0, 0.0) if carry is None else (carry.ahead, carry.ahead_so_far)
        most = float(adaptive.units)
        ahead = min(max(last + bool(units) - adaptive.units / adaptive.among, -most), most)
        so_far = past + beyond(ahead, adaptive.gains.dead_band)
        bound = LONGEST * adaptive.among / adaptive.units
        so_far = min(max(so_far, -bound), bound)
    return AdaptiveCarry(
        windows=window + 1,
        published=published,
        spent=(*still, spent[-1]),
        rho=None if units and anew else rho,
        ahead=ahead,
        ahead_so_far=so_far,
    )


LONGEST = 1000.0
"""What steering remembers at most, in samples times the time that one is to last."""


def beyond(number: float, band: float) -> float:
    """How far a number is beyond a dead band around 0, with its sign.

    >>> beyond(2.5, 1.0), beyond(-0.5, 1.0), beyond(-3.0, 1.0)
    (1.5, 0.0, -2.0)
    """
    return max(number - band, 0.0) + min(number + band, 0.0)
