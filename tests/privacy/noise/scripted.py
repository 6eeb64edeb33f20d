"""Sources of words that are not random: each word is given, so that all of them can be enumerated."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from privacy.noise.exact.words import Unsigned, WordSource


class EndOfScriptError(Exception):
    """The script is at its end; `bits` is the length of the next requested word."""

    def __init__(self, bits: int) -> None:
        super().__init__(bits)
        self.bits = bits


def scripted(words: Sequence[tuple[int, int]]) -> WordSource:
    """Return a source of these (bits, word), in this order; it checks the number of bits that the sampler asks for."""
    left = iter(words)

    def word_of(bits: int) -> int:
        try:
            expected, word = next(left)
        except StopIteration:
            raise EndOfScriptError(bits) from None
        assert bits == expected
        return word

    def source(bits: int, size: int) -> Unsigned:
        return np.array([word_of(bits) for _ in range(size)], dtype=np.uint64)

    return source


def outcomes(run: Callable[[WordSource], object], least: Fraction) -> Iterator[tuple[object, Fraction]]:
    """Yield each outcome of `run`, with the probability of the words that lead to it.

    All words of all requested lengths are enumerated, depth first. Words that are less likely than `least` are not
    followed: None is the outcome of the words before them.
    """
    stack: list[tuple[tuple[tuple[int, int], ...], Fraction]] = [((), Fraction(1))]
    while stack:
        words, mass = stack.pop()
        try:
            outcome = run(scripted(words))
        except EndOfScriptError as more:
            each = mass / 2**more.bits
            if each < least:
                yield None, mass
            else:
                stack += [((*words, (more.bits, word)), each) for word in range(2**more.bits)]
        else:
            yield outcome, mass
