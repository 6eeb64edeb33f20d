"""Exact cost of any mechanism with finitely many inputs and outputs: all pairs of inputs, with the worst set for each.

A mechanism is a table of probabilities, a row for each input. Inputs are the possible values of one record (or of one
attribute of it), and any two of them are neighbours. Pr[i in S] - e^epsilon Pr[j in S] is largest if S contains exactly
the outputs that increase it, so that

    delta(i, j) = sum over outputs o of max(0, P[i, o] - e^epsilon P[j, o])

and the mechanism is (epsilon, delta)-differentially private if and only if delta(i, j) <= delta for all i and j.
Sets are not enumerated. Sums are over integers and fractions; only e^epsilon is rounded, downward, in the 50th digit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privacy.checks import between
from privacy.upward import above, exp_below, log_above

Exact = int | str | Fraction
"""A probability or a distance in exact form: '0.3' is three tenths, unlike the float 0.3."""

LARGEST_EPSILON = 1_000_000
"""Largest epsilon; beyond it e^epsilon would exceed the range of decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Cost of a mechanism at one epsilon, and the inputs and outputs that reach it.

    Attributes:
        delta: never below the exact value, and above it by less than one part in 10^40.
        pair: two inputs that reach it.
        outputs: the worst set: outputs whose probability under the first input is more than e^epsilon times that under
            the second.
    """

    delta: Fraction
    pair: tuple[int, int]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class FiniteMechanism:
    """Finite mechanism, given by probabilities of outputs by input: [inputs][outputs].

    Raises:
        ValueError: rows of unequal length, a negative probability, or a row that does not add up to exactly 1.

    >>> coin = FiniteMechanism.of([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> coin.least_delta(0.0).delta, round(coin.least_epsilon(), 6) == round(math.log(3), 6)
    (Fraction(1, 2), True)
    """

    rows: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        if not self.rows or not self.rows[0]:
            raise ValueError("a mechanism has at least one input and one output")
        for place, row in enumerate(self.rows):
            if len(row) != len(self.rows[0]):
                raise ValueError(f"row {place} has {len(row)} outputs, and row 0 has {len(self.rows[0])}")
            if min(row) < 0:
                raise ValueError(f"row {place} has a negative probability")
            if sum(row) != 1:
                raise ValueError(
                    f"row {place} adds up to {float(sum(row))!r}, not to exactly 1; write fractions or decimals as "
                    "text, since floats are not what they look like"
                )

    @staticmethod
    def of(rows: Sequence[Sequence[Exact]]) -> "FiniteMechanism":
        """Return the mechanism from fractions, integers, or texts such as '1/3' and '0.25'."""
        try:
            return FiniteMechanism(tuple(tuple(Fraction(cell) for cell in row) for row in rows))
        except ZeroDivisionError:
            raise ValueError("a probability is divided by zero") from None

    def least_delta(self, epsilon: float) -> Loss:
        """Return the least delta with which the mechanism is (epsilon, delta)-private, for epsilon >= 0."""
        between("epsilon", epsilon, 0, LARGEST_EPSILON)
        return self._worst(exp_below(epsilon))

    def least_epsilon(self, delta: Exact | float = 0) -> float:
        """Return the least epsilon with which the mechanism is (epsilon, delta)-private, rounded up, or infinity.

        As a function of t = e^epsilon, delta(i, j) is linear between the ratios P[i, o] / P[j, o], so the t at which it
        equals delta is a fraction. Starting from t = 1, the t of the worst pair is taken until no pair exceeds delta:
        no pair occurs twice, and few occur at all.
        """
        allowed, factor = Fraction(delta), Fraction(1)
        while (loss := self._worst(factor)).delta > allowed:
            one, other = loss.pair
            enough = _least_factor(self.rows[one], self.rows[other], allowed)
            if enough is None:
                return math.inf
            factor = enough
        return above(log_above(factor))

    def _worst(self, factor: Fraction) -> Loss:
        """Return the loss at e^epsilon = `factor`."""
        parts, counts = factor.denominator, factor.numerator
        scaled = self._numerators * parts
        worst, pair = -1, (0, 0)
        for j, other in enumerate(self._numerators * counts):
            gains = scaled - other
            sums = np.where(gains > 0, gains, 0).sum(axis=1)
            i = int(np.argmax(sums))
            if sums[i] > worst:
                worst, pair = int(sums[i]), (i, j)
        gain = scaled[pair[0]] - self._numerators[pair[1]] * counts
        return Loss(
            delta=Fraction(worst, self._denominator * parts),
            pair=pair,
            outputs=tuple(int(place) for place in np.flatnonzero(gain > 0)),
        )

    @cached_property
    def _denominator(self) -> int:
        return math.lcm(*(cell.denominator for row in self.rows for cell in row))

    @cached_property
    def _numerators(self) -> NDArray[np.object_]:
        whole = self._denominator
        return np.array([[int(cell * whole) for cell in row] for row in self.rows], dtype=object)


def _least_factor(p: Sequence[Fraction], q: Sequence[Fraction], delta: Fraction) -> Fraction | None:
    """Return the least t >= 1 with sum of max(0, p - t q) <= delta; None without one."""
    lost = sum((a for a, b in zip(p, q, strict=True) if b == 0), Fraction(0))
    if lost > delta:
        return None
    ratios = sorted(((a / b, a, b) for a, b in zip(p, q, strict=True) if b > 0), reverse=True)
    of_p, of_q = lost, Fraction(0)
    for place, (ratio, a, b) in enumerate(ratios):
        if ratio <= 1:
            break
        of_p, of_q = of_p + a, of_q + b
        following = ratios[place + 1][0] if place + 1 < len(ratios) else Fraction(0)
        # Between the two ratios the sum is of_p - t of_q.
        if of_p - max(following, Fraction(1)) * of_q > delta:
            return (of_p - delta) / of_q
    return Fraction(1)
