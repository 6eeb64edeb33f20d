"""JSON lines in which every scalar is a text: numbers, true and false get quotes, digit for digit.

A parser with one type for a column need not choose one then, and its reading of a line depends on that line alone. Only
the bytes outside strings are examined, as columns.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_VALUE = r"^(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|NaN|-?Inf(?:inity)?)$"
_LINE, _QUOTE, _ZERO, _COLON, _SLASH = b'\n"0:\\'
_BLANK = np.isin(np.arange(256), list(b" \t\r\n"))
_WORD = ~(_BLANK | np.isin(np.arange(256), list(b"{}[]:,")))


def quoted(block: bytes, marks: np.ndarray) -> pa.Buffer:
    r"""Return the lines with all numbers and truth values in quotes; null does not change.

    Args:
        block: Complete lines in UTF-8, each of which begins with a brace.
        marks: From `strings`.

    Raises:
        pa.ArrowInvalid: A word is not a value. Other faults of a line remain: texts are allowed wherever numbers are,
            except as names, which are checked.

    >>> block = b'{"a": 1.50, "b": [true, null, "-2"]}\n'
    >>> quoted(block, strings(block)).to_pybytes()
    b'{"a": "1.50", "b": ["true", null, "-2"]}\n'
    """
    data = np.frombuffer(block, dtype=np.uint8)
    begins, ends = np.append(0, marks[1::2] + 1), np.append(marks[::2], len(data))
    long = ends - begins > 2  # a value between two strings has a punctuation mark before and after it
    long[0] = long[-1] = True
    begins, ends = begins[long], ends[long]
    pieces = _cut(pa.py_buffer(block), begins, ends)
    place, outside = np.frombuffer(pieces.buffers()[1], dtype=np.int32), pieces.buffers()[2]
    text = np.frombuffer(outside, dtype=np.uint8)
    is_word = np.take(_WORD, text)
    if is_word[place[1:-1]].any() or is_word[place[1:-1] - 1].any():
        raise pa.ArrowInvalid("a word and a string with nothing between them")
    edges = np.flatnonzero(is_word[1:] != is_word[:-1]) + 1  # the first byte is a brace, and the last one ends a line
    first, after = edges[::2], edges[1::2]
    words = _cut(outside, first, after)
    null = pc.equal(words, b"null").to_numpy(zero_copy_only=False)
    plain = pc.ascii_is_decimal(words.view(pa.string())).to_numpy(zero_copy_only=False)
    plain &= (text[first] != _ZERO) | (after - first == 1)
    odd = words.filter(pa.array(~plain & ~null))
    if not pc.all(pc.match_substring_regex(odd, _VALUE), min_count=0).as_py() or _is_name(text, after).any():
        raise pa.ArrowInvalid("a word that is not a value")
    first, after = first[~null], after[~null]
    shift = (begins - place[:-1])[np.searchsorted(place, first, side="right") - 1]
    return _insert(block, np.stack([first + shift, after + shift], axis=1).ravel())


def lines_of(lines: pa.Buffer) -> pa.Array:
    """Return the lines as an array."""
    ends = np.flatnonzero(np.frombuffer(lines, dtype=np.uint8) == _LINE) + 1
    places = pa.py_buffer(np.append(0, ends).astype(np.int32))
    return pa.Array.from_buffers(pa.string(), len(ends), [None, places, lines])


def strings(block: bytes) -> np.ndarray:
    """Return the places of the quotes that begin or end a string, int64 [n].

    Raises:
        pa.ArrowInvalid: A string does not end in its line.
    """
    data = np.frombuffer(block, dtype=np.uint8)
    quotes = np.flatnonzero((data == _QUOTE) | (data == _LINE))
    lines = np.flatnonzero(data[quotes] == _LINE)
    quotes = np.delete(quotes, lines)
    before = lines - np.arange(len(lines))  # number of quotes before the end of each line
    if b"\\" in block:
        escaped = _escaped(data, quotes)
        before -= np.searchsorted(escaped, before)
        quotes = np.delete(quotes, escaped)
    if (before % 2).any():
        raise pa.ArrowInvalid("a string that does not end in its line")
    return quotes


def names(block: bytes, marks: np.ndarray) -> list[str]:
    """Return the names of all members at any depth, given the places of quotes (int64 [n], from `strings`).

    Raises:
        pa.ArrowInvalid: A name is not a text.
    """
    data = np.frombuffer(block, dtype=np.uint8)
    named = _is_name(data, marks[1::2] + 1)
    found = pc.unique(_cut(pa.py_buffer(block), marks[::2][named], marks[1::2][named] + 1)).to_pylist()
    try:
        return sorted({pa.scalar(json.loads(name)).as_py() for name in found})
    except ValueError:
        raise pa.ArrowInvalid("a name that is not a text") from None


def _escaped(data: np.ndarray, quotes: np.ndarray) -> np.ndarray:
    """Return which of the quotes have an odd number of backslashes directly before them, by their numbers."""
    near = np.flatnonzero(data[quotes - 1] == _SLASH)
    slashes = np.flatnonzero(data == _SLASH)
    parted = np.diff(slashes) > 1
    first, last = slashes[np.append(True, parted)], slashes[np.append(parted, True)]  # of each run of backslashes
    run = np.searchsorted(last, quotes[near] - 1)
    return near[(last - first)[run] % 2 == 0]


def _is_name(text: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return whether a colon follows each of these places, after optional blanks."""
    next_ = text[after]
    blank = np.take(_BLANK, next_)
    if blank.any():
        signs = np.flatnonzero(~np.take(_BLANK, text))
        found = np.searchsorted(signs, after[blank])
        next_[blank] = np.where(found < len(signs), text[signs[np.minimum(found, len(signs) - 1)]], _LINE)
    return next_ == _COLON


def _cut(data: pa.Buffer, begins: np.ndarray, ends: np.ndarray) -> pa.Array:
    """Return these pieces of the bytes as an array."""
    places = np.stack([begins, ends], axis=1).ravel().astype(np.int32)
    pieces = pa.Array.from_buffers(pa.binary(), max(0, len(places) - 1), [None, pa.py_buffer(places), data])
    return pieces.take(pa.array(np.arange(0, len(pieces), 2)))


def _insert(block: bytes, places: np.ndarray) -> pa.Buffer:
    """Return the bytes with a quote inserted at each of the places."""
    offsets = np.concatenate([[0], places, [len(block)]]).astype(np.int32)
    pieces = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(block)])
    return pc.binary_join(pa.ListArray.from_arrays([0, len(pieces)], pieces), b'"')[0].as_buffer()
