"""Files of JSON lines, streamed in blocks that end with a line.

A block is parsed as columns of texts. If that fails, halves of it are, until the lines that are to blame stand alone:
these become dead letters, and the others still are columns. What a line is (a row, or an event with states in it) is
the format's own.

A number, true and false are read as the text that stands there, and become what the spec says of their column, as CSV's
cells do. A line is a dead letter if it does not begin with a brace, holds other than one object, or has a needed member
twice, or an object or a list where there must be a value. What one line says is read as if it stood alone. NaN and
Infinity, which JSON has not, are numbers; an empty key is a key.
"""

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transforms.common.batches import dead_file, dead_letters
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, Skipped
from transforms.sources.files.opening import UNREADABLE, open_stream, why
from transforms.sources.formats.envelopes import Unwrapped, emit
from transforms.sources.formats.format import Parts, Split
from transforms.sources.formats.json_samples import is_object

Unwrap = Callable[[bytes, int, Layout], Unwrapped]
"""Of a block of so many lines the raw table (see `normalise`), and which of them are no changes.

Raises:
    pa.ArrowException, UnicodeDecodeError: it cannot be read as a whole.
"""

_BLOCK = 1 << 22  # bytes
_DEEPEST = 500  # brackets in brackets
_BLANKS = b" \t\r"

NOT_JSON = "the line is not a JSON object in UTF-8, or is nested too deeply"
NOT_OF_FORM = "the line has an object or a list in the place of a value, a value in the place of one, or a member twice"


def read_json_lines(
    layout: Layout, split: Split, batch_rows: int, *, unwrap: Unwrap, tombstone: str | None = None
) -> Parts:
    """Batches and dead letters of a file; a fault of the file is one dead letter. Blank lines are not rows.

    Args:
        unwrap: what becomes of the lines.
        tombstone: what lines are that hold null, if they are no fault.
    """
    lines = _Lines(layout, split.place, batch_rows, unwrap, tombstone)
    try:
        with open_stream(split.place.file, layout.source.kafka) as stream:
            for block, first in _blocks(stream):
                yield from _read_block(block, first, lines)
    except UNREADABLE as error:
        yield dead_file(split.place.file, why(error, "the file cannot be read to its end ({})"))


@dataclass(frozen=True, slots=True)
class _Lines:
    """What does not change from block to block; attributes as the arguments of `read_json_lines`."""

    layout: Layout
    place: Place
    batch_rows: int
    unwrap: Unwrap
    tombstone: str | None


def _blocks(stream: pa.NativeFile) -> Iterator[tuple[bytes, int]]:
    """Whole lines, and the number of the first of them."""
    rest, first = b"", 1
    while data := stream.read(_BLOCK):
        data = rest + data
        cut = data.rfind(b"\n") + 1
        block, rest = data[:cut], data[cut:]
        if block:
            yield block, first
            first += block.count(b"\n")
    if rest:
        yield rest + b"\n", first


def _read_block(block: bytes, first: int, read: _Lines) -> Parts:
    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    # Arrow's parser crashes on lines that begin otherwise, e.g. `null`, and on very deep ones. Lines that end with a
    # brace hold whole objects, so that each holds one if there are as many as lines.
    usable = (data[starts] == ord("{")) & (data[_last(block, data, starts, ends)] == ord("}"))
    if (ends - starts > _DEEPEST).any():
        usable &= _shallow(data, starts)
    rows = first + np.arange(len(starts))
    if not usable.all():
        lines = [block[start:end] for start, end in zip(starts[~usable], ends[~usable], strict=True)]
        lines = [line.removeprefix(codecs.BOM_UTF8).strip(_BLANKS) for line in lines]
        wrong = np.array([bool(line) for line in lines])
        if read.tombstone is not None:
            nulls = np.array([line == b"null" for line in lines])
            wrong &= ~nulls
            if nulls.any():
                yield Skipped(read.tombstone, int(nulls.sum()))
        yield dead_letters(read.place.file, rows[~usable][wrong], NOT_JSON)
        block = b"".join(block[s : e + 1] for s, e in zip(starts[usable], ends[usable], strict=True))
        rows, ends = rows[usable], np.cumsum((ends - starts + 1)[usable]) - 1
    if len(rows):
        yield from _read_lines(block, rows, ends, read)


def _last(block: bytes, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Where the last byte stands of each line that is not blank, blanks at its end left out."""
    last = np.maximum(ends - 1, 0)
    last -= (data[last] == ord("\r")) & (last > 0)
    blank = (data[last] == ord(" ")) | (data[last] == ord("\t")) | (data[last] == ord("\r"))
    for line in np.flatnonzero(blank).tolist():
        last[line] = starts[line] + max(0, len(block[starts[line] : ends[line]].rstrip(_BLANKS)) - 1)
    return last


def _shallow(data: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Lines whose brackets, those in strings counted too, are not nested too deeply; [lines]."""
    opening = (data == ord("{")) | (data == ord("["))
    found = np.searchsorted(np.flatnonzero(opening), np.append(starts, len(data)))
    if (np.diff(found) <= _DEEPEST).all():
        return np.ones(len(starts), dtype=bool)
    closing = (data == ord("}")) | (data == ord("]"))
    depth = np.cumsum(opening.astype(np.int8) - closing.astype(np.int8), dtype=np.int32)
    before = np.concatenate([[0], depth[starts[1:] - 1]])
    return np.maximum.reduceat(depth, starts) - before <= _DEEPEST


def _read_lines(block: bytes, rows: np.ndarray, ends: np.ndarray, read: _Lines) -> Parts:
    """Lines that begin with a brace; `ends` are the places of their newlines in the block."""
    try:
        block.decode()  # Arrow does not check UTF-8 here
        unwrapped = read.unwrap(block, len(rows), read.layout)
    except (pa.ArrowException, UnicodeDecodeError):
        unwrapped = None
    if unwrapped is not None:
        yield from emit(unwrapped, rows, read.layout, read.place, read.batch_rows)
    elif len(rows) == 1:
        yield dead_letters(read.place.file, rows, NOT_OF_FORM if is_object(block) else NOT_JSON)
    else:
        middle = len(rows) // 2
        cut = int(ends[middle - 1]) + 1
        yield from _read_lines(block[:cut], rows[:middle], ends[:middle], read)
        yield from _read_lines(block[cut:], rows[middle:], ends[middle:] - cut, read)
