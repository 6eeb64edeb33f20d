"""Sets of known elements, under the size of their symmetric difference: a coin for each element, there or not.

Two sets of at most k of m elements differ in at most c = min(m, 2k) of them. Each element's presence is turned over
with odds q = `turned` of `privacy.noise.odds.PARTS` (p is the rest), so that the privacy loss of two sets that differ
in c elements is the sum of c independent ones, and exactly

    delta(epsilon) = sum over j of binomial(c, j) max(0, p^(c - j) q^j - e^epsilon p^j q^(c - j)).

Without a delta that is zero if and only if (p / q)^c <= e^epsilon. With one, coins tell more of the truth than the c-th
part of epsilon allows: nothing is lost to a composition theorem. Sets that differ in fewer elements cost less.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from privacy.checks import at_least, positive
from privacy.noise.odds import PARTS, Integers, uniform
from privacy.upward import above, exp_below

_DIGITS = 80
_MARGIN = Fraction(1, 10**50)
"""Beyond the rounding of all terms of the sum: fewer than 10^4 of at most 1, each off by less than 10^-70."""

MOST_ELEMENTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetResponse:
    """Each of `elements` turned over with odds `turned`.

    Neighbours: one record with any two sets of at most `at_most` elements. Guarantee: (epsilon, `delta_at(epsilon)`)-
    differential privacy. That sets are no larger is enforced, not assumed: elements beyond the bound are left out.

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
        """The least odds of turning over that (epsilon, delta) allows, to one part in 10^12.

        >>> pure = SubsetResponse.optimal(20, at_most=3, epsilon=3.0)
        >>> pure.changed, float(pure.delta_at(3.0)), round(math.log((PARTS - pure.turned) / pure.turned), 6)
        (6, 0.0, 0.5)
        """
        positive("epsilon", epsilon)
        bound = elements if at_most is None else min(at_most, elements)
        changed = min(elements, 2 * bound)
        good = math.ceil(PARTS / (1 + exp_below(Fraction(epsilon) / changed)))
        if good >= PARTS // 2:
            raise ValueError(f"epsilon={epsilon} is too small for {elements} elements: all sets would be alike")
        bad = good
        if delta > 0:
            bad = 0
            while good - bad > 1 + good // 10**12:
                middle = (good + bad) // 2
                if delta_of(middle, changed, epsilon=epsilon) <= Fraction(delta):
                    good = middle
                else:
                    bad = middle
        return SubsetResponse(elements=elements, at_most=bound, turned=good)

    @property
    def changed(self) -> int:
        """In how many elements two sets can differ."""
        return min(self.elements, 2 * self.at_most)

    def delta_at(self, epsilon: float) -> Fraction:
        """Never below what is true, and above it by less than 10^-49."""
        return delta_of(self.turned, self.changed, epsilon=epsilon)

    @property
    def error(self) -> float:
        """The expected size of the symmetric difference, the same for all sets."""
        return above(Fraction(self.elements * self.turned, PARTS))

    def bound(self, sets: Integers) -> Integers:
        """The sets without what goes beyond the bound: the first elements stay; [records, elements] of 0 and 1."""
        return np.where(np.cumsum(sets, axis=1) <= self.at_most, sets, 0)

    def sample(self, sets: Integers) -> Integers:
        """Bounded sets with some elements turned over. A second call samples anew."""
        turned = uniform(sets.size).reshape(sets.shape) < self.turned
        return np.where(turned, 1 - self.bound(sets), self.bound(sets))


def delta_of(turned: int, changed: int, *, epsilon: float) -> Fraction:
    """Of so many coins that turn over with these odds; zero where each pair of outcomes is within e^epsilon."""
    keep = PARTS - turned
    if turned and Fraction(keep, turned) ** changed <= exp_below(epsilon):
        return Fraction(0)
    context = Context(prec=_DIGITS)
    factor = exp_below(epsilon)
    e = context.divide(Decimal(factor.numerator), Decimal(factor.denominator))
    p, q = (context.divide(Decimal(odds), Decimal(PARTS)) for odds in (keep, turned))
    total = Decimal(0)
    for j in range(changed // 2 + 1):  # the first is likelier only where fewer than half are turned over
        first = context.multiply(_power(p, changed - j, context), _power(q, j, context))
        second = context.multiply(_power(p, j, context), _power(q, changed - j, context))
        gain = context.subtract(first, context.multiply(e, second))
        if gain > 0:
            total = context.add(total, context.multiply(Decimal(math.comb(changed, j)), gain))
    return Fraction(total) + _MARGIN


def _power(base: Decimal, exponent: int, context: Context) -> Decimal:
    return Decimal(1) if exponent == 0 else context.power(base, exponent)
