"""The optimal randomised response over a finite set: the truth with some probability, else any symbol.

    neighbours   any two symbols
    guarantee    (epsilon, delta) for one report; exactly the paper's p = (1 - delta) / (m + e^epsilon) for each of the
                 m other symbols, but for rounding on the side of privacy: with delta the truth is told as it is

*Proof.* Let t be the probability of telling the truth, p = (1 - t) / (m + 1), q = t + p. The worst set is the true
symbol, where q - e^epsilon p = delta for t = delta + (1 - delta) (e^epsilon - 1) / (m + e^epsilon); it falls with t.

Of a row of reports d may differ between two people. The row costs at most (d epsilon, 1 - (1 - delta)^d) in all, less
than (d epsilon, d delta), by composition; and exactly d epsilon without a delta, where at each of d windows one of them
has changed and the other has not.

Source: Kairouz, Oh, Viswanath (2014) for the optimum; M. Pan's theorem 5.1 for rows of mutations, where d is 2 k.
Delta must be far below 1 / n: with n people about n delta of the reports are the truth, in the open.
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
        count: of symbols, m + 1.
        parts: the probability t of telling the truth, times 2^62.
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
        """One report for each symbol."""
        told = chance.likely(self.parts, len(truth))
        return np.where(told, truth, chance.below(self.count, len(truth)))


def best_symbols(count: int, epsilon: Fraction, delta: Fraction = Fraction(0)) -> Symbols:
    """The most truth for epsilon and delta.

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
