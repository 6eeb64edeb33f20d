"""Response for sets of known elements, by their symmetric difference: a coin decides whether each element is reported.

Two sets of at most k of m elements differ in at most c = min(m, 2k) of them. The presence of each element is inverted
with odds q = `turned` of `privacy.noise.odds.PARTS` (p is the rest), so the privacy loss of two sets that differ in c
elements is the sum of c independent ones, and exactly

    delta(epsilon) = sum over j of binomial(c, j) max(0, p^(c - j) q^j - e^epsilon p^j q^(c - j)).

Without a delta this is zero if and only if (p / q)^c <= e^epsilon. With a delta, coins may report the truth more often
than the c-th part of epsilon allows, since no composition theorem is used. Sets that differ in fewer elements cost
less.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from privacy.bisection import last_holding
from privacy.checks import at_least, positive
from privacy.noise.odds import PARTS, Integers, uniform
from privacy.upward import above, exp_below

_DIGITS = 80
_MARGIN = Fraction(1, 10**50)
"""Upper bound of the rounding errors of all terms of the sum: fewer than 10^4 terms of at most 1, each below 10^-70."""

MOST_ELEMENTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetResponse:
    """Response that inverts the presence of each of `elements` elements with odds `turned`.

    Neighbours: one record with any two sets of at most `at_most` elements. Guarantee: (epsilon, `delta_at(epsilon)`)-
    differential privacy. The bound on sets is enforced, not assumed: elements beyond the bound are left out.

    Raises:
        ValueError: numbers outside their ranges.
    """

    elements: int
    at_most: int
    turned: int

    def __post_init__(self) -> None:
        at_least("elements", self.elements, 1)
        at_least("at_most", self.at_most, 1)
        if self.elements > MOST_ELEMENTS:
            raise ValueError(f"{self.elements} elements are more than {MOST_ELEMENTS}; take fewer")
        if not 0 <= self.turned < PARTS // 2:
            raise ValueError(f"turned={self.turned} must be below half of {PARTS}: a fair coin hides everything")

    @staticmethod
    def optimal(elements: int, *, at_most: int | None = None, epsilon: float, delta: float = 0.0) -> "SubsetResponse":
        """Return the response with the least odds of inversion that (epsilon, delta) allows, to one part in 10^12.

        Args:
            elements: number of elements.
            at_most: largest number of elements of a set; None: all.
            epsilon, delta: privacy parameters.

        >>> pure = SubsetResponse.optimal(20, at_most=3, epsilon=3.0)
        >>> pure.changed, float(pure.delta_at(3.0)), round(math.log((PARTS - pure.turned) / pure.turned), 6)
        (6, 0.0, 0.5)
        """
        positive("epsilon", epsilon)
        bound = elements if at_most is None else min(at_most, elements)
        changed = min(elements, 2 * bound)
        good = math.ceil(PARTS / (1 + exp_below(Fraction(epsilon) / changed)))
        if good >= PARTS // 2:
            raise ValueError(f"epsilon={epsilon} is too small for {elements} elements: sets would be equally likely")
        if delta > 0:
            good = last_holding(
                lambda turned: delta_of(turned, changed, epsilon=epsilon) <= Fraction(delta),
                good,
                0,
                near=lambda good, bad: good - bad <= 1 + good // 10**12,
                whole=True,
            )
        return SubsetResponse(elements=elements, at_most=bound, turned=good)

    @property
    def changed(self) -> int:
        """Largest number of elements in which two sets differ."""
        return min(self.elements, 2 * self.at_most)

    def delta_at(self, epsilon: float) -> Fraction:
        """Return the delta at an epsilon: never below the exact value, and above it by less than 10^-49."""
        return delta_of(self.turned, self.changed, epsilon=epsilon)

    @property
    def error(self) -> float:
        """Expected size of the symmetric difference, equal for all sets."""
        return above(Fraction(self.elements * self.turned, PARTS))

    def bound(self, sets: Integers) -> Integers:
        """Return bounded sets, int64 [records, elements] of 0 and 1: the first `at_most` elements of each remain."""
        return np.where(np.cumsum(sets, axis=1) <= self.at_most, sets, 0)

    def sample(self, sets: Integers) -> Integers:
        """Return bounded sets with some elements inverted, int64 [records, elements]. A second call samples again."""
        turned = uniform(sets.size).reshape(sets.shape) < self.turned
        return np.where(turned, 1 - self.bound(sets), self.bound(sets))


def delta_of(turned: int, changed: int, *, epsilon: float) -> Fraction:
    """Return the delta of `changed` coins with these odds; zero if all pairs of outcomes are within e^epsilon.

    Neighbours: two sets that differ in `changed` elements.

    Args:
        turned: odds of inversion, in parts of `privacy.noise.odds.PARTS`.
        changed: number of elements in which the sets differ.
        epsilon: at least 0.
    """
    keep = PARTS - turned
    if turned and Fraction(keep, turned) ** changed <= exp_below(epsilon):
        return Fraction(0)
    context = Context(prec=_DIGITS)
    factor = exp_below(epsilon)
    e = context.divide(Decimal(factor.numerator), Decimal(factor.denominator))
    p, q = (context.divide(Decimal(odds), Decimal(PARTS)) for odds in (keep, turned))
    total = Decimal(0)
    for j in range(changed // 2 + 1):  # the first is likelier only if fewer than half are inverted
        first = context.multiply(_power(p, changed - j, context), _power(q, j, context))
        second = context.multiply(_power(p, j, context), _power(q, changed - j, context))
        gain = context.subtract(first, context.multiply(e, second))
        if gain > 0:
            total = context.add(total, context.multiply(Decimal(math.comb(changed, j)), gain))
    return Fraction(total) + _MARGIN


def _power(base: Decimal, exponent: int, context: Context) -> Decimal:
    return Decimal(1) if exponent == 0 else context.power(base, exponent)
