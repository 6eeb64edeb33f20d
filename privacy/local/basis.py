"""Bases of questions: yes-no questions that a sign can answer about one of many answers.

A question is drawn uniformly, in public, independent of all answers. To question j an answer a has the sign S[j, a]; a
change of answer from a to b has (S[j, b] - S[j, a]) / 2, which is -1, 0 or 1.

    bins        "is it answer j?"; a change concerns two of |R| questions
    hadamard    rows of a Hadamard matrix, except the first, whose signs are all equal; a change concerns half of them,
                so the variance does not grow with |R|

With a gain c the estimate from n reports is, for each answer, a multiple of sum_j S[j, a] * (sum of the signs about j):
unbiased, as questions are uniform and rows are orthogonal. A report adds factor^2 / c^2 to the variance of a change, a
quarter of it to that of a level; different answers are not correlated. No matrix is built: a fast transform adds and
subtracts.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privacy.checks import between
from privacy.local.chance import Ints

MOST_ANSWERS = 65_535
"""Largest number of answers, so that the number of a question or of a change fits in 32 bits."""

Floats = NDArray[np.float64]
BasisKind = Literal["bins", "hadamard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Set of questions about answers 0 .. |R| - 1, and |R|, which means no answer."""

    kind: BasisKind
    answers: int

    def __post_init__(self) -> None:
        between("answers", self.answers, 1, MOST_ANSWERS)

    @property
    def order(self) -> int:
        """Order of the Hadamard matrix: the least power of two with a column for each answer and for no answer."""
        return 1 << self.answers.bit_length()

    @property
    def questions(self) -> int:
        return self.answers if self.kind == "bins" else self.order - 1

    @property
    def factor(self) -> float:
        """Absolute weight of a sign about a change in the estimate of an answer, times the gain."""
        return self.answers if self.kind == "bins" else 2 * (self.order - 1) / self.order

    @property
    def variance(self) -> float:
        """Contribution of a report to the variance of a change, times the gain squared.

        >>> [(Basis(kind="bins", answers=n).variance, round(Basis(kind="hadamard", answers=n).variance, 2))
        ...     for n in (2, 10, 1000)]
        [(2, 2.25), (10, 3.52), (1000, 3.99)]
        """
        return self.answers if self.kind == "bins" else self.factor**2

    @property
    def share(self) -> float:
        """Share of all people that a level contains for each answer before any report."""
        return 1 / 2 if self.kind == "bins" else 1 / self.order

    def signs(self, questions: Ints, answers: Ints) -> Ints:
        """Return S, -1 or 1, int64 of the shape of the arguments.

        Args:
            questions, answers: int64, of shapes that broadcast.
        """
        if self.kind == "bins":
            return np.where(questions == answers, 1, -1)
        shared = np.bitwise_count((questions + 1) & answers).astype(np.int64)
        signs: Ints = 1 - 2 * (shared & 1)
        return signs

    def decoded(self, sums: Ints) -> Floats:
        """Return changes of answers times gain, float64 [..., answers], from sums of signs [..., questions].

        >>> basis = Basis(kind="hadamard", answers=2)
        >>> questions = np.arange(3)
        >>> sums = (basis.signs(questions, np.array(0)) - basis.signs(questions, np.array(2))) // 2
        >>> basis.decoded(sums) / 3  # each question once: one person has come to answer 0
        array([1., 0.])
        """
        if self.kind == "bins":
            return sums.astype(np.float64) * self.answers
        padded = np.concatenate([np.zeros((*sums.shape[:-1], 1), dtype=np.int64), sums], axis=-1)
        return transformed(padded)[..., : self.answers].astype(np.float64) * self.factor


def transformed(numbers: Ints) -> Ints:
    """Return the product with Sylvester's Hadamard matrix along the last axis, in n log n additions; int64 [.., n].

    >>> transformed(np.array([1, 0, 0, 2]))
    array([ 3, -1, -1,  3])
    """
    shape, order = numbers.shape, numbers.shape[-1]
    half = 1
    while half < order:
        pairs = numbers.reshape(-1, order // (2 * half), 2, half)
        numbers = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        half *= 2
    return numbers.reshape(shape)


def best_basis(answers: int) -> Basis:
    """Return the basis with the least variance: bins for one or two answers, a Hadamard matrix from three on."""
    bases = [Basis(kind="bins", answers=answers), Basis(kind="hadamard", answers=answers)]
    return min(bases, key=lambda basis: basis.variance)
