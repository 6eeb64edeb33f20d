"""A few signs among fair coins: how a person's changes are reported, one sign for each window.

A person's truth is a row of L numbers out of -1, 0 and 1, of which at most k are not 0. Before the first report k signs
b are drawn, 1 being "as it is" and -1 "turned". The j-th number v that is not 0 is reported as v b_j, and each 0 as a
fair coin.

    neighbours   any two such rows, all zeros among them
    guarantee    epsilon for the whole row of L reports

*Proof.* Let f(i) be the probability of one given b with i signs turned; it depends on i alone. A row with k numbers
that are not 0 gives a report y the probability 2^(k - L) f(i), i being at how many of them y is turned. One with fewer
gives the average of that over the completions of b. So all lie between 2^(k - L) min f and 2^(k - L) max f, and
max f / min f <= e^epsilon is enough. Where 2 k <= L two rows with their numbers at different places reach it.

Each b_j has the same mean, the *gain* c = sum_i binom(k, i) f(i) (k - 2 i) / k, so y / c is unbiased. For given
max f / min f the gain is a ratio of sums that are linear in f; its maximum takes two values, e^epsilon times the other
where (k - 2 i) / k > c and the other elsewhere. So the best f is two-valued, with a threshold, found by trying all k.

Source: Ohrimenko, Wirth, Wu, Randomize the Future: Asymptotically Optimal Locally Private Frequency Estimation Protocol
for Longitudinal Data, PODS 2022, for signs drawn beforehand, whose error grows with the root of k. They draw b by k
coins of odds e^(epsilon / (5 sqrt k)), corrected outside of an annulus. The best f in their place is ours; it has
the form that Duchi, Jordan and Wainwright (2013) use for a vector at once. With k = 1 it is one sign with odds
e^epsilon; k independent signs with odds e^(epsilon / k) are one f among many, so never better.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least
from privacy.local.chance import WHOLE, Chance, Flags, Ints
from privacy.upward import exp_below

MOST_SIGNS = 60
"""Largest k: binomial coefficients stay below 2^62, so that patterns are drawn exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """The distribution of k signs.

    Attributes:
        most: k.
        threshold: patterns with fewer signs turned than this are the likely ones.
        parts: their joint probability, times 2^62.
    """

    most: int
    threshold: int
    parts: int

    def __post_init__(self) -> None:
        at_least("most", self.most, 1)
        if not (self.most <= MOST_SIGNS and 1 <= self.threshold <= self.most and 0 < self.parts < WHOLE):
            raise ValueError(f"no distribution of signs: {self}")
        if self.ratio < 1:
            raise ValueError("the patterns with fewer signs turned must be the likely ones")

    def probability(self, turned: int) -> Fraction:
        """Of one pattern with so many signs turned: f."""
        likely = turned < self.threshold
        weights = range(self.threshold) if likely else range(self.threshold, self.most + 1)
        parts = self.parts if likely else WHOLE - self.parts
        return Fraction(parts, WHOLE) / sum(comb(self.most, i) for i in weights)

    @property
    def ratio(self) -> Fraction:
        """What no report's probability exceeds for one person, divided by that for another: at most e^epsilon."""
        return self.probability(0) / self.probability(self.most)

    @property
    def gain(self) -> Fraction:
        """The mean of each sign."""
        k = self.most
        return sum((comb(k, i) * self.probability(i) * Fraction(k - 2 * i, k) for i in range(k + 1)), Fraction(0))


@cache
def best_signs(most: int, epsilon: Fraction) -> Signs:
    """The largest gain for epsilon.

    >>> float(best_signs(1, Fraction(1)).gain)  # (e - 1) / (e + 1)
    0.46211715726000974
    >>> [round(float(best_signs(k, Fraction(1)).gain), 3) for k in (2, 4, 16)]
    [0.3, 0.21, 0.1]
    """
    if epsilon <= 0:
        raise ValueError(f"epsilon={epsilon} must be positive")
    odds = exp_below(epsilon)
    candidates = []
    for threshold in range(1, most + 1):
        likely = sum(comb(most, i) for i in range(threshold))
        unlikely = (1 << most) - likely
        parts = int(WHOLE * likely * odds / (likely * odds + unlikely))
        if parts < WHOLE and parts * unlikely > (WHOLE - parts) * likely:
            candidates.append(Signs(most=most, threshold=threshold, parts=parts))
    if not candidates:
        raise ValueError("epsilon is too small for odds that are parts of 2^62")
    return max(candidates, key=lambda signs: signs.gain)


def draw_patterns(signs: Signs, chance: Chance, size: int) -> NDArray[np.uint64]:
    """For each person k signs, as bits: bit j set if the (j + 1)-th is turned.

    How many are turned comes from exact odds, which ones from uniform integers.
    """
    weights = np.where(
        chance.likely(signs.parts, size),
        _drawn_weight(signs.most, range(signs.threshold), chance, size),
        _drawn_weight(signs.most, range(signs.threshold, signs.most + 1), chance, size),
    )
    patterns = np.zeros(size, dtype=np.uint64)
    for place in range(signs.most):
        turned: Flags = chance.below(signs.most - place, size) < weights
        patterns |= turned.astype(np.uint64) << np.uint64(place)
        weights = weights - turned
    return patterns


def _drawn_weight(most: int, weights: range, chance: Chance, size: int) -> Ints:
    """How many signs are turned in a pattern that is uniform among those with so many turned."""
    ends = np.cumsum([comb(most, i) for i in weights])
    return weights.start + np.searchsorted(ends, chance.below(int(ends[-1]), size), side="right")
