"""Tables for the inversion of a distribution function, with thresholds that are right to the last bit.

A uniform number U gives the k with F(k - 1) <= U < F(k), where F is the distribution function of |N|. With
T(k) = floor(2^long F(k)) and u the first `long` bits of U: if u < T(k) then U < F(k); if u > T(k) then U >= F(k). Only
u = T(k) leaves it open, and then further bits of U and of F(k) decide. Proof: docs/proofs/samplers.md#inversion.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.noise.exact.bounds import Law, cumulative
from privacy.noise.exact.words import Lengths, Unsigned, WordSource

MARGIN = 40
"""Extra bits of the first bounds of a threshold."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Inversion table of the distribution of |N|, or of N >= 0, for one law.

    Attributes:
        law: the law that is sampled.
        folded: whether it is |N| of a symmetric N, so that 0 has half the weight; else N >= 0.
        lengths: of the words.
        thresholds: [k] T(k) for k = 0, 1, ... up to the first that is 2^long - 1, int64.
        direct: [2^short] by the first bits of U, the k that they decide; -1 if they decide none. int32.
        ratios: [k] floor(2^short r) for a lower bound r of weight(k + 1) / weight(k), and 0 after the last k. int64.
    """

    law: Law
    folded: bool
    lengths: Lengths
    thresholds: NDArray[np.int64]
    direct: NDArray[np.int32]
    ratios: NDArray[np.int64]

    def sample(self, first: Unsigned, words: WordSource) -> NDArray[np.int64]:
        """Return independent samples of |N|; their uniform numbers begin with these words of `short` bits."""
        sampled = self.direct[first].astype(np.int64)
        if (sampled < 0).any():
            open_ = np.flatnonzero(sampled < 0)
            rest = self.lengths.rest
            uniform = (first[open_].astype(np.int64) << rest) | words(rest, len(open_)).astype(np.int64)
            found = np.searchsorted(self.thresholds, uniform)
            for tied in np.flatnonzero(self.thresholds[found] == uniform).tolist():
                found[tied] = self._undecided(int(uniform[tied]), words)
            sampled[open_] = found
        return sampled

    def _undecided(self, uniform: int, words: WordSource) -> int:
        """Return the sample if the first `long` bits of U are equal to a threshold."""
        bits = step = self.lengths.long
        while True:
            uniform, bits = uniform << step | int(words(step, 1)[0]), bits + step
            exact = cumulative(self.law, folded=self.folded, bits=bits, margin=MARGIN)
            # U is at least uniform / 2^bits and less than (uniform + 1) / 2^bits.
            k = bisect_left(exact.lower, uniform + 1 << MARGIN)
            if k < len(exact.lower) and (k == 0 or exact.upper[k - 1] <= uniform << MARGIN):
                return k


def make_table(law: Law, *, folded: bool, lengths: Lengths) -> Table:
    """Return the table of a law. This takes one or two milliseconds.

    Args:
        law: distribution of the noise.
        folded: whether it is |N| of a symmetric N, so that 0 has half the weight; else N >= 0.
        lengths: numbers of bits of the uniform numbers.

    >>> from privacy.noise.exact.bounds import laplace
    >>> make_table(laplace(1.0), folded=True, lengths=Lengths(4, 8)).thresholds.tolist()
    [118, 205, 237, 249, 253, 255]
    """
    thresholds, ratios = _thresholds(law, folded, lengths)
    starts = np.arange(1 << lengths.short, dtype=np.int64) << lengths.rest
    direct = np.searchsorted(thresholds, starts)
    within = thresholds[direct] < starts + (1 << lengths.rest)  # a threshold among the words that begin so
    table = Table(law, folded, lengths, thresholds, np.where(within, -1, direct).astype(np.int32), ratios)
    for array in (table.thresholds, table.direct, table.ratios):
        array.setflags(write=False)  # tables are kept
    return table


def _thresholds(law: Law, folded: bool, lengths: Lengths) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    last = (1 << lengths.long) - 1
    margin = MARGIN
    while True:
        found = cumulative(law, folded=folded, bits=lengths.long, margin=margin)
        lower = [each >> margin for each in found.lower]
        # F(k) < 1, so that no threshold is above the largest word.
        upper = [min(each >> margin, last) for each in found.upper]
        size = bisect_left(lower, last) + 1
        if size <= len(lower) and lower[:size] == upper[:size]:
            ratios = [each >> lengths.rest + margin for each in found.ratios[:size]]
            return np.array(lower[:size]), np.array([*ratios, 0])
        margin *= 2
