"""Optimal randomised response over a finite set: the truth with some probability, otherwise any symbol.

    neighbours   any two symbols
    guarantee    (epsilon, delta) for one report; exactly the paper's p = (1 - delta) / (m + e^epsilon) for each of the
                 m other symbols, except for rounding on the side of privacy: with probability delta the truth is sent

*Proof.* Let t be the probability of telling the truth, p = (1 - t) / (m + 1), q = t + p. The worst set is the true
symbol, where q - e^epsilon p = delta for t = delta + (1 - delta) (e^epsilon - 1) / (m + e^epsilon); it falls with t.

Two people may differ in d reports of a row. The row costs at most (d epsilon, 1 - (1 - delta)^d) in all, less than (d
epsilon, d delta), by composition; and exactly d epsilon without a delta, if at each of d windows one of them has
changed and the other has not.

Source: Kairouz, Oh, Viswanath (2014) for the optimum; M. Pan's theorem 5.1 for rows of mutations, with d = 2 k.
Delta must be far below 1 / n: with n people about n delta of the reports are the truth without noise.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privacy.checks import at_least, between
from privacy.local.chance import WHOLE, Chance, Ints
from privacy.upward import exp_below


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbols:
    """Randomised response.

    Attributes:
        count: number of symbols, m + 1.
        parts: the probability t of reporting the truth, times 2^62.
    """

    count: int
    parts: int

    def __post_init__(self) -> None:
        at_least("count", self.count, 2)
        between("parts", self.parts, 1, WHOLE - 1)

    @property
    def other(self) -> Fraction:
        """The probability p of each symbol that is not the truth."""
        return (1 - Fraction(self.parts, WHOLE)) / self.count

    @property
    def spread(self) -> Fraction:
        """q - p: how much more likely the truth is than another symbol."""
        return Fraction(self.parts, WHOLE)

    def draw(self, truth: Ints, chance: Chance) -> Ints:
        """Return one report for each symbol, int64 [people], from the true symbols, int64 [people].

        Neighbours: any two symbols of one person. Guarantee and proof: module docstring.
        """
        told = chance.likely(self.parts, len(truth))
        return np.where(told, truth, chance.below(self.count, len(truth)))


def best_symbols(count: int, epsilon: Fraction, delta: Fraction = Fraction(0)) -> Symbols:
    """Return the randomised response with the most truth for epsilon and delta.

    Args:
        count: number of symbols.
        epsilon, delta: parameters of one report.

    >>> best = best_symbols(3, Fraction(1))
    >>> float((best.other + best.spread) / best.other)
    2.718281828459045
    >>> float(best_symbols(3, Fraction(1), Fraction(1, 10)).other)  # (1 - delta) / (2 + e)
    0.1907474018553769
    """
    if epsilon <= 0 or not 0 <= delta < 1:
        raise ValueError("epsilon must be positive and delta at least 0 and below 1")
    odds = exp_below(epsilon)
    truth = delta + (1 - delta) * (odds - 1) / (count - 1 + odds)
    if WHOLE * truth < 1:
        raise ValueError("epsilon is too small for odds that are parts of 2^62")
    return Symbols(count=count, parts=int(WHOLE * truth))
