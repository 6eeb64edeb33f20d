"""Optimal randomised response over a finite set: the truth with some probability, otherwise any symbol.

    neighbours   any two symbols
    guarantee    (epsilon, delta) for one report; exactly the paper's p = (1 - delta) / (m + e^epsilon) for each of the
                 m other symbols, except for rounding on the side of privacy: with probability delta the truth is sent

*Proof.* Let t be the probability of telling the truth, p = (1 - t) / (m + 1), q = t + p. The worst set is the true
symbol, where q - e^epsilon p = delta for t = delta + (1 - delta) (e^epsilon - 1) / (m + e^epsilon); delta increases
with t, so a smaller t is on the side of privacy.

Two people may differ in d reports of a row. The row costs at most (d epsilon, 1 - (1 - delta)^d) in all, less than (d
epsilon, d delta), by composition; and exactly d epsilon without a delta, if at each of d windows one of them has
changed and the other has not.

Source: Kairouz, Oh, Viswanath (2014) for the optimum; M. Pan's theorem 5.1 for rows of mutations, with d = 2 k.
Delta must be far below 1 / n: with n people about n delta of the reports are the truth without noise.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least, between
from privacy.local.basis import Basis, Floats
from privacy.local.bound import ReportTerms
from privacy.local.chance import WHOLE, Chance, Ints
from privacy.local.mutation_space import MutationSpace
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

    signed: ClassVar[bool] = False
    report: ClassVar[str] = "a symbol"
    most: ClassVar[int] = 0

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

    def fits(self, terms: ReportTerms) -> bool:
        """Return whether the response covers the reports of a layer: their symbols, and the parameters of each."""
        return self.count == terms.symbols and self.parts <= best_symbols(self.count, *terms.of_each).parts

    def draw(self, truth: Ints, chance: Chance) -> Ints:
        """Return one report for each symbol, int64 [people], from the true symbols, int64 [people].

        Neighbours: any two symbols of one person. Guarantee and proof: module docstring.
        """
        told = chance.likely(self.parts, len(truth))
        return np.where(told, truth, chance.below(self.count, len(truth)))

    def patterns(self, chance: Chance, size: int) -> NDArray[np.uint64]:
        """Return what people draw beforehand, uint64 [people, 0]: nothing."""
        return np.zeros((size, 0), dtype=np.uint64)

    def reported(
        self, node: tuple[Ints, Ints, Ints], basis: Basis, space: MutationSpace, chance: Chance
    ) -> tuple[Ints, Ints, NDArray[np.uint16]]:
        """Return the reports on a node (`Signs.reported`): the drawn symbols, with the sign 1; no sign is used."""
        before, after, _ = node
        symbol = self.draw(space.symbols(before, after), chance)
        return symbol, np.ones(len(after), dtype=np.int64), np.zeros(len(after), dtype=np.uint16)

    def reported_once(self, answer: Ints, drawn: Ints, basis: Basis, chance: Chance) -> tuple[Ints, Ints]:
        """Return reports of an answer (`Signs.reported_once`): the drawn symbols, with the sign 1."""
        return self.draw(answer, chance), np.ones(len(answer), dtype=np.int64)

    def values(self, basis: Basis) -> int:
        """Return the number of values of `Reports.symbol`."""
        return self.count

    def sums(self, basis: Basis, *, once: bool) -> tuple[int, ...]:
        """Return the shape of the sums of reports."""
        return (1 if once else 2, basis.answers)

    def summed(self, symbol: Ints, sign: Ints, basis: Basis, space: MutationSpace, *, once: bool) -> Ints:
        """Return the sums of reports on a node, of the shape `sums`."""
        ends = (symbol,) if once else space.ends(symbol[symbol > 0])
        return np.stack([np.bincount(each, minlength=space.answers + 1)[: space.answers] for each in ends])

    def variance_of_change(self, basis: Basis, space: MutationSpace) -> float:
        """Return the variance of a change, for one person who reports without a change; the largest answer's."""
        away, to = space.degrees()
        p, spread = float(self.other), float(self.spread)
        return float((p * (away + to) - (p * (to - away)) ** 2).max()) / spread**2

    def variance_of_level(self, basis: Basis) -> float:
        """Return the variance of an answer that is reported once, for each person with that window, for any share."""
        p, spread = float(self.other), float(self.spread)
        chance = min(max(0.5, p), p + spread)  # of the symbol: from p, if nobody gives the answer, to q
        return chance * (1 - chance) / spread**2

    def change(
        self, sums: Ints, reports: int, people: int, basis: Basis, space: MutationSpace
    ) -> tuple[Floats, Floats]:
        """Return the estimated changes of a node, and their variances (`Signs.change`).

        `sums` are numbers of symbols that lead away from each answer and to it, int64 [2, answers].
        """
        n, scale = reports, people / reports
        p, spread = float(self.other), float(self.spread)
        (away, to), degrees = sums, space.degrees()
        degree = degrees[1] - degrees[0]
        value = (to - away - p * n * degree) / spread
        variances = (to + away - 2 * p * degree * (to - away) + p**2 * n * degree**2) / spread**2
        if n == people:
            variances = np.maximum(variances - (to + away - p * n * (degrees[0] + degrees[1])) / spread, 0)
        else:  # few reports may show no noise, although there is some
            variances = np.maximum(variances, n * (p * (degrees[0] + degrees[1]) - (p * degree) ** 2) / spread**2)
        return scale * value, scale**2 * variances

    def level(self, sums: Ints, reports: int, people: int, basis: Basis) -> tuple[Floats, Floats]:
        """Return the estimated level and its variances (`Signs.level`), from reports of each answer [1, answers]."""
        n, scale = reports, people / reports
        p, spread = float(self.other), float(self.spread)
        (given,) = sums
        least = n * min(p * (1 - p), (p + spread) * (1 - p - spread))
        spun = np.maximum(given * (1 - given / n) * n / (n - 1), least)
        return scale * (given - p * n) / spread, scale**2 * spun / spread**2

    def once(self, basis: Basis) -> tuple[float, float, float]:
        """Return the largest and least variance of a report of a level, and its largest absolute value."""
        p, spread = float(self.other), float(self.spread)
        kinds = [chance * (1 - chance) / spread**2 for chance in (p, p + spread)]
        return max(kinds) + 1 / 4, min(kinds), 1 / spread

    def moved(self, sums: Ints, reports: int, space: MutationSpace) -> Floats:
        """Return unbiased numbers of those who report and have arrived at an answer, or left it, [2, answers]."""
        degrees = np.stack(space.degrees())
        left_first = (sums - float(self.other) * reports * degrees) / float(self.spread)
        found: Floats = left_first[::-1]
        return found

    def describe(self) -> dict[str, Any]:
        """Return the randomiser for reports."""
        p = float(self.other)
        return {"randomiser": "symbols", "symbols": self.count, "truth": p + float(self.spread), "other": p}


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
