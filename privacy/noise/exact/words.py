"""Uniform random words from the operating system: the only source of randomness of the exact samplers.

Nothing is kept between calls, so there is nothing to seed, and a forked worker has no words of its parent's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_bytes
from typing import Any

import numpy as np
from numpy.typing import NDArray

Unsigned = NDArray[np.unsignedinteger[Any]]

WordSource = Callable[[int, int], Unsigned]
"""Given a number of bits (1 to 64) and a size, returns an array of `size` independent uniform words of that length."""

_KINDS = tuple(np.dtype(kind) for kind in (np.uint8, np.uint16, np.uint32, np.uint64))


def system_words(bits: int, size: int) -> Unsigned:
    """Return independent words, each uniform on 0, ..., 2^bits - 1.

    >>> words = system_words(12, 1000)
    >>> words.dtype.name, len(words), bool(words.max() < 4096)
    ('uint16', 1000, True)
    """
    kind = next(kind for kind in _KINDS if 8 * kind.itemsize >= bits)
    words: Unsigned = np.frombuffer(token_bytes(size * kind.itemsize), dtype=kind)
    return np.right_shift(words, kind.type(8 * kind.itemsize - bits))


@dataclass(frozen=True, slots=True)
class Lengths:
    """Numbers of bits of a uniform number that a sampler looks at before it samples further bits.

    A uniform number U = 0.b1 b2 b3 ... is sampled lazily: the first `short` bits decide most comparisons, `long` bits
    nearly all others, and each further step adds `long` bits. The distribution of a sampler does not depend on the
    lengths; tests enumerate all words of small ones.

    Attributes:
        short: bits of the first look, at least 1.
        long: bits of the second look, above `short`, at most 32.
    """

    short: int = 12
    long: int = 32

    @property
    def rest(self) -> int:
        """Bits that the second look adds."""
        return self.long - self.short


LENGTHS = Lengths()
"""The lengths in use: 12 bits decide nearly always, and a table of 2^12 entries stays in the cache."""
