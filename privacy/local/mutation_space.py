"""The changes that a person can report as symbols: no change, or one of the transitions.

The paper's space (R + null)^2 has a copy of "no change" for each answer; merged, |R| (|R| + 1) + 1 symbols remain,
which costs no privacy and has less variance. If fewer transitions are declared, there are fewer symbols; a change that
is not declared does not count, and the answer stays as it was until a declared change.

Answers are 0 .. |R| - 1, and |R| is the absence of an answer: the person is not present (yet, or any more).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from privacy.checks import between
from privacy.local.basis import MOST_ANSWERS
from privacy.local.chance import Flags, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationSpace:
    """Possible changes of an answer.

    Attributes:
        answers: number of answers, |R|.
        transitions: pairs (before, after) in ascending order, each as before * (|R| + 1) + after; None: all.
    """

    answers: int
    transitions: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        between("answers", self.answers, 1, MOST_ANSWERS)
        pairs, states = self.transitions, self.answers + 1
        if pairs is not None and not (
            pairs
            and all(0 <= pair < states**2 and pair // states != pair % states for pair in pairs)
            and all(a < b for a, b in pairwise(pairs))
        ):
            raise ValueError(
                "transitions: expected ascending pairs of different answers, each as before * (answers + 1) + after"
            )

    @property
    def count(self) -> int:
        """Number of symbols; symbol 0 is no change."""
        n = self.answers
        return 1 + (n * (n + 1) if self.transitions is None else len(self.transitions))

    def allowed(self, before: Ints, after: Ints) -> Flags:
        """Return whether a change counts, bool [changes]; True without a change. Arguments: int64 [changes]."""
        if self.transitions is None:
            return np.ones(len(before), dtype=np.bool_)
        known: Flags = np.isin(before * (self.answers + 1) + after, np.array(self.transitions))
        known |= before == after
        return known

    def symbols(self, before: Ints, after: Ints) -> Ints:
        """Return the symbols of allowed changes, int64 [changes], from answers before and after, int64 [changes]."""
        n = self.answers
        if self.transitions is None:
            symbols = 1 + before * n + after - (after > before)
        else:
            symbols = 1 + np.searchsorted(np.array(self.transitions), before * (n + 1) + after)
        return np.where(before == after, 0, symbols).astype(np.int64)

    def ends(self, symbols: Ints) -> tuple[Ints, Ints]:
        """Return the answers before and after, int64 [symbols] each, for symbols [symbols] that are not 0."""
        n = self.answers
        if self.transitions is None:
            before, after = np.divmod(symbols - 1, n)
            return before, after + (after >= before)
        before, after = np.divmod(np.array(self.transitions)[symbols - 1], n + 1)
        return before, after

    def degrees(self) -> tuple[Ints, Ints]:
        """Return for each answer the number of symbols that lead away from it, and to it, int64 [answers] each."""
        if self.transitions is None:
            each = np.full(self.answers, self.answers)
            return each, each
        before, after = self.ends(np.arange(1, self.count))
        least = self.answers + 1
        return np.bincount(before, minlength=least)[:-1], np.bincount(after, minlength=least)[:-1]


def declared(answers: int, pairs: Sequence[tuple[int, int]]) -> MutationSpace:
    """Return the space of these transitions alone.

    >>> space = declared(2, [(2, 0), (0, 1), (1, 0)])
    >>> space.count, space.symbols(np.array([2, 0, 0]), np.array([0, 0, 1])).tolist()
    (4, [3, 0, 1])
    """
    return MutationSpace(answers=answers, transitions=tuple(sorted({a * (answers + 1) + b for a, b in pairs})))
