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
    text, offsets = _text_of(keys)
    result = np.diff(offsets).astype(np.uint64)
    length = _one_length(offsets)
    if length is None:
        padded = np.concatenate([text, np.zeros(8, np.uint8)])
        _fold_any_length(padded, offsets[:-1].astype(np.int64), result.view(np.int64).copy(), result)
    else:
        _fold_one_length(text, length, result)
    return result


def words_of_one_length(keys: pa.Array) -> list[Words] | None:
    """Return texts as words of eight bytes, uint64 [n] each: two texts are equal if and only if all their words are.

    Words that all texts share, such as a prefix, are omitted. None if the texts have several lengths.
    """
    text, offsets = _text_of(keys)
    length = _one_length(offsets)
    if length is None:
        return None
    found = (_words(text, range(len(keys)), length, place) for place in range(0, length, 8))
    return [words.copy() for words in found if (words != words[0]).any()]


def _text_of(keys: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of all texts, and where each begins, and the last one ends, [n + 1]."""
    if not (pa.types.is_string(keys.type) or pa.types.is_binary(keys.type)):
        keys = keys.cast(pa.large_binary())
    _, ends, data = keys.buffers()
    offsets = np.frombuffer(ends, dtype=np.int64 if pa.types.is_large_binary(keys.type) else np.int32)
    offsets = offsets[keys.offset : keys.offset + len(keys) + 1]
    text = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    return text[offsets[0] : offsets[-1]], offsets - offsets[0]


def _one_length(offsets: np.ndarray) -> int | None:
    """Return the length of all texts; None if there are no texts, or texts of several lengths."""
    length = int(offsets[1]) if len(offsets) > 1 else None
    return length if length is not None and (np.diff(offsets) == length).all() else None


def _fold_one_length(text: np.ndarray, length: int, result: Words) -> None:
    """Hash texts of one length, whose words are at equal distances."""
    for block in _blocks(len(result)):
        part = result[block]
        for place in range(0, max(length, 1), 8):
            part ^= _words(text, range(block.start, block.start + len(part)), length, place)
            _mix(part)
        _mix(part)


def _words(text: np.ndarray, rows: range, length: int, place: int) -> Words:
    """Return the words at a place of some texts, all of one length; the bytes after a text are zero.

    Args:
        text: Bytes of all texts.
        rows: Numbers of the texts.
        length: Length of each text.
        place: Place of the first byte of the words in the texts.
    """
    if length < 8:
        padded = np.zeros((len(rows), 8), np.uint8)
        padded[:, :length] = text[rows.start * length : rows.stop * length].reshape(len(rows), length)
        return padded.view("<u8")[:, 0]
    back = max(0, place + 8 - length)  # the last word begins early, so that no text is read beyond its end
    begin = rows.start * length + place - back
    words = np.ndarray(len(rows), dtype="<u8", buffer=text.data, offset=begin, strides=(length,))
    return words >> np.uint64(8 * back) if back else words


def _fold_any_length(text: np.ndarray, begins: np.ndarray, length: np.ndarray, result: Words) -> None:
    words = np.ndarray(len(text) - 7, dtype="<u8", buffer=text.data, strides=(1,))  # a word begins at every byte
    for place in range(0, int(length.max(initial=1)), 8):  # an empty key is one word too, masked to zero
        rows = slice(None) if place == 0 else np.flatnonzero(length > place)
        word = words[np.minimum(begins[rows] + place, len(words) - 1)]
        folded = result[rows] ^ (word & _MASKS[np.minimum(length[rows] - place, 8)])
        _mix(folded)
        result[rows] = folded
    _mix(result)


_MASKS = np.array([(1 << 8 * left) - 1 for left in range(9)], dtype=np.uint64)
"""Masks of the first bytes of a word."""


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
