"""Exact vectorised samples of integers N with weights exp(-(linear |n| + square n^2)).

The integers are cut into blocks of 2^r. An attempt is

1. a block J >= 0, by inversion, with the weights of the blocks' first integers J m, m = 2^r;
2. a place B in the block, uniform on 0, ..., m - 1, and a sign, which are r + 1 random bits;
3. accepted with probability weight(J m + B) / weight(J m), and not if it is -0.

So an accepted attempt has exactly the weights of N. For few steps (r = 0) |N| comes from the table itself, and nothing
is rejected. Proof: docs/proofs/samplers.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import frexp

import numpy as np
from numpy.typing import NDArray

from privacy.noise.exact.acceptance import accept
from privacy.noise.exact.bounds import Law
from privacy.noise.exact.table import Table, make_table
from privacy.noise.exact.words import LENGTHS, Lengths, WordSource, system_words

Integers = NDArray[np.int64]

LARGEST = 2**63 - 1
"""Samples beyond this are given as this, with their sign."""

BLOCKS_BITS = 5
"""Scales below 2^BLOCKS_BITS need one table; larger ones are between half of it and it in blocks."""

AT_ONCE = 1 << 15
"""Samples that are made together: their arrays stay in the processor's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Sampler:
    """Sampler of one law.

    Attributes:
        table: of the blocks, or of |N| if there is one block for each integer.
        place_bits: r, bits of the place in a block.
        words: source of random words.
    """

    table: Table
    place_bits: int
    words: WordSource = system_words

    def sample(self, size: int) -> Integers:
        """Return `size` independent samples."""
        samples = np.empty(size, dtype=np.int64)
        done = 0
        while done < size:
            accepted = self.attempt(min(size - done, AT_ONCE))
            samples[done : done + len(accepted)] = accepted
            done += len(accepted)
        return samples

    def attempt(self, size: int) -> Integers:
        """Return the accepted ones of `size` independent attempts, in their order."""
        lengths, r = self.table.lengths, self.place_bits
        word = self.words(lengths.short + r + 1, size)
        kind = word.dtype.type
        block = self.table.sample(word >> kind(r + 1), self.words)
        negative = (word & kind(1)).astype(np.int64)
        if r == 0:
            return _signed(block, negative)
        place = (word >> kind(1)).astype(np.int64) & ((1 << r) - 1)
        magnitude = (block << r) | place
        if block.max(initial=0) > LARGEST >> r:  # has never happened
            magnitude[block > LARGEST >> r] = LARGEST
        kept = self._kept(block, place)
        kept &= (magnitude | (negative ^ 1)) != 0
        return _signed(magnitude, negative)[kept]

    def _kept(self, block: Integers, place: Integers) -> NDArray[np.bool_]:
        """Decide for each attempt, with probability weight(block m + place) / weight(block m) for yes."""
        table = self.table
        first = self.words(table.lengths.short, len(block))
        # The ratio of the weights of two blocks' first integers is less than any within the block.
        kept: NDArray[np.bool_] = first < table.ratios.take(block, mode="clip")
        open_ = np.flatnonzero(~kept)
        if not len(open_):
            return kept
        block, part = block[open_], np.ldexp(place[open_].astype(np.float64), -self.place_bits)
        law = table.law

        def exact(index: int) -> Fraction:
            b = Fraction(part[index])
            return b * (law.linear + law.square * (2 * int(block[index]) + b))

        exponent = part * (float(law.linear) + float(law.square) * (2 * block + part))
        kept[open_] = accept(first[open_], exponent, exact, lengths=table.lengths, words=self.words)
        return kept


def _signed(magnitude: Integers, negative: Integers) -> Integers:
    return (magnitude ^ -negative) + negative


def make_sampler(
    law: Callable[[float], Law], scale: float, *, lengths: Lengths = LENGTHS, words: WordSource = system_words
) -> Sampler:
    """Return the sampler of noise of one scale.

    Args:
        law: from a scale.
        scale: 0 < scale <= 2^55.
        lengths: of the words.
        words: source of random words; only tests have another.
    """
    r = max(0, frexp(scale)[1] - BLOCKS_BITS)
    return Sampler(_table(law, scale * 2.0**-r, r == 0, lengths), r, words)


@lru_cache(maxsize=1024)
def _table(law: Callable[[float], Law], scale: float, folded: bool, lengths: Lengths) -> Table:
    return make_table(law(scale), folded=folded, lengths=lengths)
