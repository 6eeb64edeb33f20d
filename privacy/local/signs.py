"""Signs: how a person's changes are reported, one sign for each window, a few of them among fair coins.

A person's truth is a row of L numbers out of -1, 0 and 1, of which at most k are not 0. Before the first report k signs
b are drawn, 1 meaning "unchanged" and -1 "turned". The j-th number v that is not 0 is reported as v b_j, and each 0 as
a fair coin.

    neighbours   any two such rows, including all zeros
    guarantee    epsilon for the whole row of L reports

*Proof.* Let f(i) be the probability of one given b with i signs turned; it depends on i alone. A row with k numbers
that are not 0 gives a report y the probability 2^(k - L) f(i), with i the number of them at which y is turned. A row
with fewer gives the average of this over the completions of b. So all lie between 2^(k - L) min f and 2^(k - L) max f,
and max f / min f <= e^epsilon is enough. If 2 k <= L, two rows with their numbers at different places reach it.

Each b_j has the same mean, the *gain* c = sum_i binom(k, i) f(i) (k - 2 i) / k, so y / c is unbiased. For given
max f / min f the gain is a ratio of sums that are linear in f; its maximum takes two values, e^epsilon times the other
if (k - 2 i) / k > c and the other otherwise. So the best f is two-valued, with a threshold, found by trying all k.

Source: Ohrimenko, Wirth, Wu, Randomize the Future: Asymptotically Optimal Locally Private Frequency Estimation Protocol
for Longitudinal Data, PODS 2022, for signs drawn beforehand, whose error grows with the root of k. They draw b by k
coins of odds e^(epsilon / (5 sqrt k)), corrected outside of an annulus. The best f instead is our own result; it has
the form that Duchi, Jordan and Wainwright (2013) use for a vector at once. With k = 1 it is one sign with odds
e^epsilon; k independent signs with odds e^(epsilon / k) are a special case of f, so never better.
"""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privacy.checks import between
from privacy.local.basis import Basis, Floats
from privacy.local.bound import ReportTerms
from privacy.local.chance import WHOLE, Chance, Flags, Ints
from privacy.local.mutation_space import MutationSpace
from privacy.upward import exp_below

MOST_SIGNS = 1024
"""Largest k. A device keeps a bit for each; the information of signs falls with the root of k."""

WORD = 64
"""Number of signs that are stored in one number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Distribution of k signs.

    Attributes:
        most: k.
        threshold: patterns with fewer signs turned than this are the likely ones.
        parts: joint probability of the likely patterns, times 2^62.
    """

    most: int
    threshold: int
    parts: int

    signed: ClassVar[bool] = True
    report: ClassVar[str] = "a sign"

    def __post_init__(self) -> None:
        between("most", self.most, 1, MOST_SIGNS)
        between("threshold", self.threshold, 1, self.most)
        between("parts", self.parts, 1, WHOLE - 1)
        if self.ratio < 1:
            raise ValueError("the patterns with fewer signs turned must be the likely ones")

    def probability(self, turned: int) -> Fraction:
        """Return f, the probability of one pattern with `turned` signs turned."""
        likely = _patterns(self.most, self.threshold)
        if turned < self.threshold:
            return Fraction(self.parts, WHOLE * likely)
        return Fraction(WHOLE - self.parts, WHOLE * ((1 << self.most) - likely))

    @property
    def ratio(self) -> Fraction:
        """Upper bound of the ratio of a report's probabilities for two people: at most e^epsilon."""
        return self.probability(0) / self.probability(self.most)

    @property
    def gain(self) -> Fraction:
        """Mean of each sign: of patterns with fewer than i turned, binom(k - 1, i - 1) more have one unchanged."""
        excess = comb(self.most - 1, self.threshold - 1)
        return excess * (self.probability(0) - self.probability(self.most))

    @property
    def together(self) -> Fraction:
        """Mean of the product of two of the signs; 0 if there is only one."""
        if self.most == 1:
            return Fraction(0)
        k, i = self.most, self.threshold
        excess = comb(k - 2, i - 1) - (comb(k - 2, i - 2) if i > 1 else 0)
        return excess * (self.probability(0) - self.probability(k))

    def fits(self, terms: ReportTerms) -> bool:
        """Return whether these signs cover the reports of a layer: their number and their epsilon."""
        return self.most == terms.changed and self.ratio <= exp_below(terms.epsilon)

    def patterns(self, chance: Chance, size: int) -> NDArray[np.uint64]:
        """Return what people draw beforehand, as `draw_patterns`."""
        return draw_patterns(self, chance, size)

    def reported(
        self, node: tuple[Ints, Ints, Ints], basis: Basis, space: MutationSpace, chance: Chance
    ) -> tuple[Ints, Ints, NDArray[np.uint16]]:
        """Return the reports on a node: `Reports.symbol`, `Reports.sign` and the number of used signs, [people] each.

        Neighbours, guarantee and proof: module docstring.

        Args:
            node: answers at its beginning and at its end, and the next sign that was drawn beforehand, -1 if turned.
            basis: the questions.
            space: the answers and their possible changes.
            chance: source of randomness.
        """
        before, after, drawn = node
        question = chance.below(basis.questions, len(after))
        change = (basis.signs(question, after) - basis.signs(question, before)) // 2
        fair = 1 - 2 * chance.below(2, len(after))
        return question, np.where(change == 0, fair, change * drawn), (change != 0).astype(np.uint16)

    def reported_once(self, answer: Ints, drawn: Ints, basis: Basis, chance: Chance) -> tuple[Ints, Ints]:
        """Return reports of an answer: `Reports.symbol` and `Reports.sign`.

        Args:
            answer: the answers.
            drawn: signs that were drawn beforehand, -1 if turned.
            basis: the questions.
            chance: source of randomness.
        """
        question = chance.below(basis.questions, len(answer))
        return question, basis.signs(question, answer) * drawn

    def values(self, basis: Basis) -> int:
        """Return the number of values of `Reports.symbol`: a sign is about one of the questions."""
        return basis.questions

    def sums(self, basis: Basis, *, once: bool) -> tuple[int, ...]:
        """Return the shape of the sums of reports."""
        return (basis.questions,)

    def summed(self, symbol: Ints, sign: Ints, basis: Basis, space: MutationSpace, *, once: bool) -> Ints:
        """Return the sums of reports on a node, of the shape `sums`."""
        ups, downs = (np.bincount(symbol[sign == one], minlength=basis.questions) for one in (1, -1))
        return ups - downs

    def variance_of_change(self, basis: Basis, space: MutationSpace) -> float:
        """Return the variance of a change, for one person who reports on its node without a change."""
        return basis.variance / float(self.gain) ** 2

    def variance_of_level(self, basis: Basis) -> float:
        """Return the variance of an answer that is reported once, for each person with that window, for any share."""
        return basis.variance / 4 / float(self.gain) ** 2

    def change(
        self, sums: Ints, reports: int, people: int, basis: Basis, space: MutationSpace
    ) -> tuple[Floats, Floats]:
        """Return the estimated changes of a node, and their variances, float64 [answers].

        Args:
            sums: sums of the signs about each question, int64 [questions].
            reports: number of reports on the node.
            people: number of people who are enrolled.
            basis: the questions.
            space: the answers and their possible changes.
        """
        scale, gain = people / reports, float(self.gain)
        variance = people * scale * basis.variance / gain**2
        return scale * basis.decoded(sums) / gain, np.full(basis.answers, variance)

    def level(self, sums: Ints, reports: int, people: int, basis: Basis) -> tuple[Floats, Floats]:
        """Return the estimated level from the people who report in one window, and its variances. Args: as `change`."""
        scale, gain = people / reports, float(self.gain)
        value = people * basis.share + scale * basis.decoded(sums) / 2 / gain
        return value, np.full(basis.answers, people * scale * basis.variance / 4 / gain**2)

    def once(self, basis: Basis) -> tuple[float, float, float]:
        """Return the largest and least variance of a report of a level, and its largest absolute value."""
        gain, share = float(self.gain), basis.share
        variance, size = basis.variance / 4 / gain**2, basis.factor / 2 / gain
        return variance, variance - (1 - share) ** 2, size + 1

    def moved(self, sums: Ints, reports: int, space: MutationSpace) -> Floats:
        """Return zeros, float64 [2, answers]: signs do not show how many people move."""
        return np.zeros((2, space.answers))

    def describe(self) -> dict[str, Any]:
        """Return the randomiser for reports."""
        return {"randomiser": "signs", "signs": self.most, "gain": float(self.gain)}


@cache
def _patterns(most: int, threshold: int) -> int:
    """Return the number of patterns with fewer signs turned."""
    return sum(comb(most, i) for i in range(threshold))


@cache
def best_signs(most: int, epsilon: Fraction) -> Signs:
    """Return the distribution with the largest gain for epsilon.

    Neighbours: any two rows of a person's changes. Guarantee: epsilon for the whole row (module docstring).

    >>> float(best_signs(1, Fraction(1)).gain)  # (e - 1) / (e + 1)
    0.46211715726000974
    >>> [round(float(best_signs(k, Fraction(1)).gain), 3) for k in (2, 4, 16)]
    [0.3, 0.21, 0.1]
    """
    if epsilon <= 0:
        raise ValueError(f"epsilon={epsilon} must be positive")
    odds = exp_below(epsilon)
    best, most_gain = None, Fraction(0)
    for threshold, likely in enumerate(accumulate(comb(most, i) for i in range(most)), start=1):
        unlikely = (1 << most) - likely
        parts = WHOLE * likely * odds.numerator // (likely * odds.numerator + unlikely * odds.denominator)
        # The gain of `Signs`, without the common factor of all thresholds.
        excess = parts * unlikely - (WHOLE - parts) * likely
        if parts < WHOLE and excess > 0:
            gain = Fraction(comb(most - 1, threshold - 1) * excess, likely * unlikely)
            if gain > most_gain:
                best, most_gain = (threshold, parts), gain
    if best is None:
        raise ValueError("epsilon is too small for odds that are parts of 2^62")
    return Signs(most=most, threshold=best[0], parts=best[1])


def words(most: int) -> int:
    """Return the number of integers that hold `most` signs."""
    return -(-most // WORD)


def draw_patterns(signs: Signs, chance: Chance, size: int) -> NDArray[np.uint64]:
    """Return k signs for each person as bits, uint64 [size, words]: bit j % 64 of word j // 64 set if sign j is turned.

    The number of turned signs comes from exact odds, their places from uniform integers.

    Args:
        signs: distribution of the signs.
        chance: source of randomness.
        size: number of people.
    """
    weights = np.where(
        chance.likely(signs.parts, size),
        _drawn_weight(signs.most, range(signs.threshold), chance, size),
        _drawn_weight(signs.most, range(signs.threshold, signs.most + 1), chance, size),
    )
    patterns = np.zeros((size, words(signs.most)), dtype=np.uint64)
    for place in range(signs.most):
        flags: Flags = chance.below(signs.most - place, size) < weights
        patterns[:, place // WORD] |= flags.astype(np.uint64) << np.uint64(place % WORD)
        weights = weights - flags
    return patterns


def _drawn_weight(most: int, weights: range, chance: Chance, size: int) -> Ints:
    """Return the number of turned signs of patterns that are uniform among those with a number in `weights`."""
    ends = list(accumulate(comb(most, i) for i in weights))
    if ends[-1] <= WHOLE:
        return weights.start + np.searchsorted(np.array(ends), chance.below(ends[-1], size), side="right")
    found = [bisect_right(ends, drawn) for drawn in chance.far_below(ends[-1], size)]
    return weights.start + np.array(found, dtype=np.int64)


def turned(patterns: NDArray[np.uint64], places: Ints) -> Ints:
    """Return for each person the sign at a place, int64 [people]: 1 if it is turned. All words are read for any place.

    >>> turned(np.array([[0, 2], [1, 0]], dtype=np.uint64), np.array([65, 65])).tolist()
    [1, 0]
    """
    found = np.zeros(len(places), dtype=np.int64)
    bits = (places % WORD).astype(np.uint64)
    for word in range(patterns.shape[1]):
        there = ((patterns[:, word] >> bits) & np.uint64(1)).astype(np.int64)
        found |= there * (places // WORD == word)
    return found
