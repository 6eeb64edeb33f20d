"""Hashes of keys, by which rows are routed and gathered.

A hash never decides equality: units are distinguished by their real keys. The hash is part of the format of the carried
state, which is sharded by it. So it is defined here and held by a test, rather than taken from a library that may
change it between versions.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

Words = np.ndarray
_ROWS = 1 << 14
"""Rows that are processed at once, so that they fit into the processor's cache."""


def unit_hash(keys: pa.Array) -> Words:
    """Return a 64-bit hash of each key, uint64 [n].

    >>> unit_hash(pa.array(["a", "b", "a"])).tolist()[0] == unit_hash(pa.array(["a"])).tolist()[0]
    True
    """
    if pa.types.is_integer(keys.type):
        words = keys.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.uint64)
        for block in _blocks(len(words)):
            _mix(words[block])
        return words
    return _hash_text(keys.cast(pa.large_binary()))


def _hash_text(keys: pa.Array) -> Words:
    """Hash texts eight bytes at a time, many rows at once: the loop runs over words, not rows."""
    _, offsets_buffer, data = keys.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[keys.offset : keys.offset + len(keys) + 1]
    text = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    padded = np.concatenate([text[offsets[0] : offsets[-1]], np.zeros(8, np.uint8)])
    offsets = offsets - offsets[0]
    length = np.diff(offsets)
    result = length.astype(np.uint64)
    if len(length) and int(length.min()) == int(length.max()):
        _fold_one_length(padded, int(length[0]), result)
    else:
        _fold_any_length(padded, offsets[:-1], length, result)
    return result


def _fold_one_length(text: np.ndarray, length: int, result: Words) -> None:
    """Hash texts of one length, whose words are at equal distances."""
    for block in _blocks(len(result)):
        part = result[block]
        for place in range(0, max(length, 1), 8):
            begin = block.start * length + place
            words = np.ndarray(len(part), dtype="<u8", buffer=text.data, offset=begin, strides=(length,))
            part ^= words & _mask(min(length - place, 8))
            _mix(part)
        _mix(part)


def _fold_any_length(text: np.ndarray, begins: np.ndarray, length: np.ndarray, result: Words) -> None:
    words = np.ndarray(len(text) - 7, dtype="<u8", buffer=text.data, strides=(1,))  # a word begins at every byte
    for place in range(0, int(length.max(initial=1)), 8):  # an empty key is one word too, masked to zero
        rows = slice(None) if place == 0 else np.flatnonzero(length > place)
        word = words[np.minimum(begins[rows] + place, len(words) - 1)]
        folded = result[rows] ^ (word & _MASKS[np.minimum(length[rows] - place, 8)])
        _mix(folded)
        result[rows] = folded
    _mix(result)


def _mask(left: int) -> np.uint64:
    """Return a mask of the first `left` bytes of a word.

    >>> hex(_mask(2)), hex(_mask(0))
    ('0xffff', '0x0')
    """
    return np.uint64((1 << 8 * left) - 1)


_MASKS = np.array([_mask(left) for left in range(9)])


def _blocks(rows: int) -> Iterator[slice]:
    return (slice(begin, begin + _ROWS) for begin in range(0, rows, _ROWS))


def _mix(words: Words) -> None:
    """Apply the finaliser of splitmix64 (Steele, Lea and Flood 2014) in place: every bit affects every bit."""
    shifted = np.empty_like(words)
    words += np.uint64(0x9E3779B97F4A7C15)
    words ^= np.right_shift(words, np.uint64(30), out=shifted)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= np.right_shift(words, np.uint64(27), out=shifted)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= np.right_shift(words, np.uint64(31), out=shifted)
