"""Files of JSON lines, streamed in blocks that end with a line.

A block is parsed as columns of texts. If that fails, its halves are parsed, down to single faulty lines: these become
dead letters, and the others remain columns. The format decides what a line is (a row, or an event with states in it).

Numbers, true and false are read as texts and converted to the kind of their column, like CSV's cells. A line is a dead
letter if it does not begin with a brace, holds anything but one object, has a needed member twice, or has an object or
a list in place of a value. The meaning of a line depends on that line alone. NaN and Infinity, which JSON does not
have, are numbers; an empty key is valid.
"""

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transforms.common.batches import dead_file, dead_letters
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Place, Skipped
from transforms.sources.files.opening import UNREADABLE, OversizeError, open_stream, why
from transforms.sources.formats.envelopes import Unwrapped, emit
from transforms.sources.formats.format import Parts, Split
from transforms.sources.formats.json_samples import is_object

Unwrap = Callable[[bytes, int, Layout], Unwrapped]
"""Function from a block and its number of lines to the raw table (see `normalise`) and the lines that are no changes.

Raises:
    pa.ArrowException, UnicodeDecodeError: The block cannot be read as a whole.
"""

_BLOCK = 1 << 22  # bytes
_LONGEST = 1 << 26  # bytes of a line
_DEEPEST = 500  # nested brackets
_BLANKS = b" \t\r"

NOT_JSON = "the line is not a JSON object in UTF-8, or is nested too deeply"
NOT_OF_FORM = "the line has an object or a list in the place of a value, a value in the place of one, or a member twice"


def read_json_lines(
    layout: Layout, split: Split, batch_rows: int, *, unwrap: Unwrap, tombstone: str | None = None
) -> Parts:
    """Yield batches and dead letters of a file; a fault of the file is one dead letter. Blank lines are not rows.

    Args:
        layout: How the files are read.
        split: The file.
        batch_rows: Most rows of a batch.
        unwrap: Function that reads the lines of a block.
        tombstone: Name of lines that hold null, if they are no fault.
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
    """Arguments of `read_json_lines`, which are the same for all blocks."""

    layout: Layout
    place: Place
    batch_rows: int
    unwrap: Unwrap
    tombstone: str | None


def _blocks(stream: pa.NativeFile) -> Iterator[tuple[bytes, int]]:
    """Yield complete lines, and the number of the first of them.

    Raises:
        OversizeError: A line is too long.
    """
    rest, first = b"", 1
    while data := stream.read(_BLOCK):
        data = rest + data
        cut = data.rfind(b"\n") + 1
        block, rest = data[:cut], data[cut:]
        if len(rest) > _LONGEST:
            raise OversizeError(f"a line is longer than {_LONGEST >> 20} MiB; write each change as a line")
        if block:
            yield block, first
            first += block.count(b"\n")
    if rest:
        yield rest + b"\n", first


def _read_block(block: bytes, first: int, read: _Lines) -> Parts:
    if not block.strip():  # a file can have very many empty lines
        return
    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    # Arrow's parser crashes on lines with another beginning, e.g. `null`, and on very deep ones. Lines that end with a
    # brace hold complete objects, so each holds one if there are as many objects as lines.
    usable = (data[starts] == ord("{")) & (data[_last(block, data, starts, ends)] == ord("}"))
    if (ends - starts > _DEEPEST).any():
        usable &= _shallow(data, starts)
    rows = first + np.arange(len(starts))
    if not usable.all():
        begins, stops = starts[~usable], ends[~usable]
        filled = begins < stops
        rows_of = rows[~usable][filled]
        lines = [block[start:end] for start, end in zip(begins[filled], stops[filled], strict=True)]
        lines = [line.removeprefix(codecs.BOM_UTF8).strip(_BLANKS) for line in lines]
        wrong = np.array([bool(line) for line in lines], dtype=bool)
        if read.tombstone is not None:
            nulls = np.array([line == b"null" for line in lines], dtype=bool)
            wrong &= ~nulls
            if nulls.any():
                yield Skipped(read.tombstone, int(nulls.sum()))
        yield dead_letters(read.place.file, rows_of[wrong], NOT_JSON)
        block = b"".join(block[s : e + 1] for s, e in zip(starts[usable], ends[usable], strict=True))
        rows, ends = rows[usable], np.cumsum((ends - starts + 1)[usable]) - 1
    if len(rows):
        yield from _read_lines(block, rows, ends, read)


def _last(block: bytes, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the place of the last byte of each line that is not blank, without blanks at its end."""
    last = np.maximum(ends - 1, 0)
    last -= (data[last] == ord("\r")) & (last > 0)
    blank = (data[last] == ord(" ")) | (data[last] == ord("\t")) | (data[last] == ord("\r"))
    for line in np.flatnonzero(blank).tolist():
        last[line] = starts[line] + max(0, len(block[starts[line] : ends[line]].rstrip(_BLANKS)) - 1)
    return last


def _shallow(data: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the lines whose brackets, including those in strings, are not nested too deeply, bool [lines]."""
    opening = (data == ord("{")) | (data == ord("["))
    found = np.searchsorted(np.flatnonzero(opening), np.append(starts, len(data)))
    if (np.diff(found) <= _DEEPEST).all():
        return np.ones(len(starts), dtype=bool)
    closing = (data == ord("}")) | (data == ord("]"))
    depth = np.cumsum(opening.astype(np.int8) - closing.astype(np.int8), dtype=np.int32)
    before = np.concatenate([[0], depth[starts[1:] - 1]])
    return np.maximum.reduceat(depth, starts) - before <= _DEEPEST


def _read_lines(block: bytes, rows: np.ndarray, ends: np.ndarray, read: _Lines) -> Parts:
    """Read lines that begin with a brace; `ends` are the places of their newlines in the block."""
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
