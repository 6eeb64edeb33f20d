"""Sources of a device's randomness: secure bits of the operating system, a key made of them, and integer odds.

No odds are floats. A float is rounded, and the time of code that compares floats may depend on their digits: either
would make another mechanism than the proved one. Here each draw is uniform on integers, exactly, given fair bits; all
odds are integers over 2^62, which the caller rounds to the side of privacy. There is no seed to set.

A device's draws for a report follow from a key in its state. If the device stops before it has stored or sent the
result and repeats the step, it gets the same report and not a second sample. Each report replaces the key by a one-way
function: the stored key does not reveal earlier draws.

A discarded draw (`below`) makes the time depend on chance, never on a person's answers.
"""

import secrets
from collections.abc import Callable
from hashlib import shake_256
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

WHOLE = 1 << 62
"""Denominator of all odds."""

KEY = 32
"""Number of bytes of a key."""


class Chance(Protocol):
    """Interface of independent draws, one for each of `size` people."""

    def below(self, limit: int, size: int) -> Ints:
        """Return uniform integers on 0 .. limit - 1, int64 [size]."""

    def far_below(self, limit: int, size: int) -> list[int]:
        """Return uniform integers on 0 .. limit - 1 for a limit of any size."""

    def likely(self, parts: int, size: int) -> Flags:
        """Return True with probability parts / 2^62, 0 <= parts <= 2^62; bool [size]."""


class Device:
    """Draws from a source of fair bits: by default, the operating system's generator.

    >>> Device().below(3, 1000).max() <= 2
    np.True_
    >>> Device().likely(WHOLE, 3).tolist(), Device().likely(0, 3).tolist()
    ([True, True, True], [False, False, False])
    """

    def __init__(self, source: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._source = source

    def below(self, limit: int, size: int) -> Ints:
        if not 1 <= limit <= WHOLE:
            raise ValueError(f"limit={limit} must lie between 1 and 2^62")
        if limit == 2:
            bits = np.frombuffer(self._source((size + 7) // 8), dtype=np.uint8)
            return np.unpackbits(bits, count=size).astype(np.int64)
        # Enough bits that hardly any draw is discarded.
        width = next(width for width in (2, 4, 8) if limit <= 1 << (8 * width - 2))
        drawn = self._words(width, size)
        largest = (1 << (8 * width)) // limit * limit - 1
        while len(over := np.flatnonzero(drawn > largest)):
            drawn[over] = self._words(width, len(over))
        remainders: Ints = (drawn % drawn.dtype.type(limit)).astype(np.int64)
        return remainders

    def far_below(self, limit: int, size: int) -> list[int]:
        bits = limit.bit_length()
        width = (bits + 7) // 8
        drawn: list[int] = []
        while len(drawn) < size:  # at least half of the draws are kept
            source = self._source(width * (size - len(drawn)))
            words = (source[start : start + width] for start in range(0, len(source), width))
            numbers = (int.from_bytes(word, "big") >> (8 * width - bits) for word in words)
            drawn += [number for number in numbers if number < limit]
        return drawn

    def likely(self, parts: int, size: int) -> Flags:
        if not 0 <= parts <= WHOLE:
            raise ValueError(f"parts={parts} must lie between 0 and 2^62")
        below: Flags = (self._words(8, size) >> np.uint64(2)) < np.uint64(parts)
        return below

    def _words(self, width: int, size: int) -> NDArray[np.unsignedinteger]:
        return np.frombuffer(bytearray(self._source(width * size)), dtype=f"<u{width}")


class Keyed:
    """Bytes that follow from a key, and are indistinguishable from fair ones without the key.

    >>> key = new_key()
    >>> first, again = Keyed(key), Keyed(key)
    >>> first(8) == again(8), first(8) == first(8), Keyed(next_key(key))(8) == Keyed(key)(8)
    (True, False, False)
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._asked = 0

    def __call__(self, size: int) -> bytes:
        self._asked += 1
        return shake_256(self._key + self._asked.to_bytes(8, "big")).digest(size)


def new_key() -> bytes:
    """Return a key from the operating system's generator."""
    return secrets.token_bytes(KEY)


def next_key(key: bytes) -> bytes:
    """Return the key after this one, which does not reveal it."""
    return shake_256(key + bytes(8)).digest(KEY)
