"""Columns of keys: numbering and reordering.

Equal keys get one code, and equality is decided by the keys themselves. Integers are sorted. Texts are sorted by a
hash, and each is compared with its neighbour. If two texts share the bits that are sorted by (a hundred in a billion
keys), Arrow numbers the column instead.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.hashing import unit_hash, words_of_one_length

Ints = np.ndarray
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Keys:
    """Distinct keys by their codes 0, 1, ...; `first` has a row of the column for each, int64 [keys]."""

    column: pa.Array
    first: Ints

    def __len__(self) -> int:
        return len(self.first)

    def take(self, codes: Ints) -> pa.Array:
        """Return the keys of some codes (int64 [n])."""
        return take(self.column, self.first[codes])

    def all(self) -> pa.Array:
        """Return all keys by code."""
        return take(self.column, self.first)


def number(column: pa.Array) -> tuple[Ints, Keys]:
    """Return the code of each row's key, int64 [rows], and the keys; the column has no nulls.

    >>> codes, keys = number(pa.array(["b", "a", "b"]))
    >>> bool(codes[0] == codes[2] != codes[1]), keys.take(codes).to_pylist()
    (True, ['b', 'a', 'b'])
    """
    if pa.types.is_integer(column.type):
        codes, first = number_words(column.cast(pa.int64()).to_numpy())
        return codes, Keys(column, first)
    words = words_of_one_length(column)
    mixed = unit_hash(column) if words is None else _mixed(words, len(column))
    order, starts = _by_value(mixed >> np.uint64(len(column).bit_length()))
    differ = _texts_differ(take(column, order)) if words is None else _words_differ(words, order)
    if (differ != starts[1:]).any():
        encoded = pc.dictionary_encode(column)
        codes = encoded.indices.to_numpy().astype(np.int64)
        first = np.empty(len(encoded.dictionary), dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        return codes, Keys(column, first)
    return _codes(order, starts), Keys(column, order[starts])


def number_words(words: Ints) -> tuple[Ints, Ints]:
    """Return codes of integers in their order, int64 [n], and a row for each code, int64 [codes].

    >>> [part.tolist() for part in number_words(np.array([7, -1, 7]))]
    [[1, 0, 1], [1, 0]]
    """
    order, starts = _by_value((words - words.min()).view(np.uint64) if len(words) else words.view(np.uint64))
    return _codes(order, starts), order[starts]


def sort(words: Ints) -> Ints:
    """Return a stable argsort, int64 [n], of integers >= 0 (uint64 [n]).

    A word and its place are sorted as one number of 64 bits. If they have more, the word's lowest bits are omitted, and
    words that differ in these alone are sorted afterwards.
    """
    bits = len(words).bit_length()
    omitted = max(0, int(words.max(initial=0)).bit_length() + bits - 64)
    kept = words >> np.uint64(omitted) if omitted else words
    packed = (kept << np.uint64(bits)) | np.arange(len(words), dtype=np.uint64)
    packed.sort()
    packed &= np.uint64((1 << bits) - 1)
    order = packed.view(np.int64)
    if omitted:
        ordered = kept.take(order)
        same = ordered[1:] == ordered[:-1]
        tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
        rows = order[tied]
        order[tied] = rows[np.argsort(words[rows], kind="stable")]
    return order


def take(column: pa.Array, rows: Ints) -> pa.Array:
    """Return some rows (int64 [n]) of a column; faster for texts of one length, as keys often are.

    >>> take(pa.array(["ab", "cd", "ef"])[1:], np.array([1, 0])).to_pylist()
    ['ef', 'cd']
    """
    if not pa.types.is_string(column.type) or column.null_count or len(rows) == 0:
        return pc.take(column, pa.array(rows), boundscheck=False)
    _, offsets_buffer, data = column.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    length = int(offsets[1] - offsets[0])
    if length == 0 or len(rows) * length >= 2**31 or (np.diff(offsets) != length).any():
        return pc.take(column, pa.array(rows), boundscheck=False)
    texts = pa.Array.from_buffers(pa.binary(length), len(column), [None, data.slice(int(offsets[0]))])
    ends = np.arange(0, (len(rows) + 1) * length, length, dtype=np.int32)
    taken = pc.take(texts, pa.array(rows), boundscheck=False)
    return pa.Array.from_buffers(column.type, len(rows), [None, pa.py_buffer(ends), taken.buffers()[1]])


def _by_value(words: Ints) -> tuple[Ints, Ints]:
    """Return rows in the order of their words, and whether each word differs from the one before it."""
    order = sort(words)
    ordered = words.take(order)
    starts = np.ones(len(words), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return order, starts


def _codes(order: Ints, starts: Ints) -> Ints:
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.cumsum(starts) - 1
    return codes


def _mixed(words: list[Ints], rows: int) -> Ints:
    """Return a hash of each row's words, uint64 [rows], whose upper bits depend on all of them.

    It takes a third of the time of `unit_hash`, which is part of the format of the carried state.
    """
    mixed = np.zeros(rows, dtype=np.uint64)
    for word in words:
        mixed += word
        mixed *= _MULTIPLIER
    return mixed


def _words_differ(words: list[Ints], order: Ints) -> Ints:
    """Return whether each row but the first differs from the one before it, bool [n - 1]."""
    differ = np.zeros(max(0, len(order) - 1), dtype=bool)
    for word in words:
        ordered = word.take(order)
        differ |= ordered[1:] != ordered[:-1]
    return differ


def _texts_differ(ordered: pa.Array) -> Ints:
    return pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
