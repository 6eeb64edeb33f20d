"""Hashes of keys by which rows are routed.

A hash only routes: units are told apart by their real keys. It is part of the format of carried state, which is sharded
by it, so it is written out here and pinned by a test, rather than taken from a library that may change it between
versions.
"""

import numpy as np
import pyarrow as pa


def unit_hash(keys: pa.Array) -> np.ndarray:
    """A 64-bit hash of each key, for routing only (uint64).

    >>> unit_hash(pa.array(["a", "b", "a"])).tolist()[0] == unit_hash(pa.array(["a"])).tolist()[0]
    True
    """
    if pa.types.is_integer(keys.type):
        return _mix(keys.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.uint64))
    return _hash_text(keys.cast(pa.large_binary()))


def _hash_text(keys: pa.Array) -> np.ndarray:
    """Fold each key eight bytes at a time, all rows at once: the loop runs over words, not rows."""
    _, offsets_buffer, data = keys.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[keys.offset : keys.offset + len(keys) + 1]
    length = np.diff(offsets)
    text = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    padded = np.concatenate([text[: offsets[-1]], np.zeros(8, np.uint8)])
    words = np.ndarray(len(padded) - 7, dtype="<u8", buffer=padded.data, strides=(1,))  # one at every byte
    result = length.astype(np.uint64)
    for place in range(0, int(length.max(initial=1)), 8):  # an empty key is one word too, whatever stands beside it
        rows = slice(None) if place == 0 else np.flatnonzero(length > place)
        word = words[np.minimum(offsets[:-1][rows] + place, len(words) - 1)]
        left = np.minimum(length[rows] - place, 8)
        word = np.where(left > 0, word & (_ONES >> ((8 - np.maximum(left, 1)) * 8).astype(np.uint64)), 0)
        result[rows] = _mix(result[rows] ^ word.astype(np.uint64))
    return _mix(result)


_ONES = np.uint64(2**64 - 1)


def _mix(words: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014): every bit reaches every bit."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))
