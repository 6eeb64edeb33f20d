"""Changelogs as JSON lines, streamed in blocks that end with a line.

A block is parsed as columns of texts. If that fails, halves of it are, until the lines that are to blame stand alone:
these become dead letters, and the others still are columns. Lines may be rows, or events with states in them
(transforms.sources.envelopes).

A number, true and false are read as the text that stands there, and become what the spec says of their column, as CSV's
cells do. A line is a dead letter if it does not begin with a brace, holds other than one object, or has a needed member
twice, or an object or a list where there must be a value. What one line says is read as if it stood alone. NaN and
Infinity, which JSON has not, are numbers; an empty key is a key.

A state exists if any member of it is not null: of its object, or of the row, without those that are no state. A list
and an object in it are not null, whatever they hold.
"""

import codecs
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from transforms.common.batches import Batch, dead_file, dead_letters
from transforms.common.images import IMAGE, digest
from transforms.sources import datastream, debezium, files
from transforms.sources.envelopes import OBJECT, TEXT, Fields, Path, Unwrapped, Verdicts, emit
from transforms.sources.first_file import Side
from transforms.sources.json_columns import parse, parse_paths
from transforms.sources.json_members import texts
from transforms.sources.json_text import lines_of, names, quoted, strings
from transforms.sources.layout import Layout
from transforms.sources.normalise import Place, Skipped
from transforms.sources.parquet_files import any_valid
from transforms.sources.samples import is_object

_ENVELOPES = {"debezium": debezium, "datastream": datastream}
_BLOCK = 1 << 22  # bytes
_CELLS = 1 << 26  # of one table
_DEEPEST = 500  # brackets in brackets
_BLANKS = b" \t\r"

NOT_JSON = "the line is not a JSON object in UTF-8, or is nested too deeply"
NOT_OF_FORM = "the line has an object or a list in the place of a value, a value in the place of one, or a member twice"


def read_json_lines(layout: Layout, place: Place, batch_rows: int) -> Iterator[Batch | pa.Table | Skipped]:
    """Batches and dead letters of a file; a fault of the file is one dead letter. Blank lines are not rows."""
    try:
        with files.open_stream(place.file, layout.source.kafka) as stream:
            for block, first in _blocks(stream):
                yield from _read_block(block, first, layout, place, batch_rows)
    except files.UNREADABLE as error:
        yield dead_file(place.file, files.why(error, "the file cannot be read to its end ({})"))


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


def _read_block(
    block: bytes, first: int, layout: Layout, place: Place, batch_rows: int
) -> Iterator[Batch | pa.Table | Skipped]:
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
        tombstone = np.array([line == b"null" for line in lines]) & (layout.source.format == "debezium")
        if tombstone.any():
            yield Skipped(debezium.TOMBSTONE, int(tombstone.sum()))
        wrong = np.array([bool(line) for line in lines]) & ~tombstone
        yield dead_letters(place.file, rows[~usable][wrong], NOT_JSON)
        block = b"".join(block[s : e + 1] for s, e in zip(starts[usable], ends[usable], strict=True))
        rows, ends = rows[usable], np.cumsum((ends - starts + 1)[usable]) - 1
    if len(rows):
        yield from _read_lines(block, rows, ends, layout, place, batch_rows)


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


def _read_lines(
    block: bytes, rows: np.ndarray, ends: np.ndarray, layout: Layout, place: Place, batch_rows: int
) -> Iterator[Batch | pa.Table | Skipped]:
    """Lines that begin with a brace; `ends` are the places of their newlines in the block."""
    try:
        unwrapped = _unwrap(block, len(rows), layout)
    except (pa.ArrowException, UnicodeDecodeError):
        unwrapped = None
    if unwrapped is not None:
        yield from emit(unwrapped, rows, layout, place, batch_rows)
    elif len(rows) == 1:
        yield dead_letters(place.file, rows, NOT_OF_FORM if is_object(block) else NOT_JSON)
    else:
        middle = len(rows) // 2
        cut = int(ends[middle - 1]) + 1
        yield from _read_lines(block[:cut], rows[:middle], ends[:middle], layout, place, batch_rows)
        yield from _read_lines(block[cut:], rows[middle:], ends[middle:] - cut, layout, place, batch_rows)


def _unwrap(block: bytes, rows: int, layout: Layout) -> Unwrapped:
    """The raw table (see `normalise`) of lines, and which of them are no changes."""
    block.decode()  # Arrow does not check UTF-8 here
    envelope = _ENVELOPES.get(layout.source.format)
    if envelope is None:
        return Unwrapped(_raw(block, rows, layout), Verdicts(rows))
    return envelope.unwrap(parse_paths(block, rows, envelope.fields(layout)), layout)


def _raw(block: bytes, rows: int, layout: Layout) -> pa.Table:
    """The raw table of lines that are rows themselves."""
    marks = strings(block)
    lines = quoted(block, marks)
    imaged = len(layout.sides) == 2
    values, wholes = _read(block, marks, lines, rows, layout, whole=imaged)
    raw = {name: values[column,] for name, column in layout.roles.items()}
    for side in layout.sides:
        states = {column: values[_path(side, column)] for column, _ in layout.states}
        if imaged:
            exists = any_valid(list(wholes[side].values()), rows)
            raw[f"{IMAGE}.{side.side}"] = digest(wholes[side].items(), exists)
        else:
            own = [values for column, values in states.items() if side.path(column) not in layout.roles.values()]
            exists = any_valid(own, rows)
            unclear = np.flatnonzero(~exists)
            if len(unclear):
                exists[unclear] = _exists(lines_of(lines).take(pa.array(unclear)), side, layout)
        raw[side.side] = pa.array(exists)
        raw |= {f"{side.side}.{column}": values for column, values in states.items()}
    return pa.table(raw)


def _read(
    block: bytes, marks: np.ndarray, lines: pa.Buffer, rows: int, layout: Layout, *, whole: bool
) -> tuple[dict[Path, pa.Array], dict[Side, dict[str, pa.Array]]]:
    """What is needed of the rows, by path; and if they are asked for, of each side all members of its states."""
    needed: Fields = {(column,): TEXT for column in layout.roles.values()}
    needed |= {(side.name,): OBJECT for side in layout.sides if side.struct}
    needed |= {_path(side, column): TEXT for side in layout.sides for column, _ in layout.states}
    told = names(block, marks) if whole else []
    members = {side: _members(side, told, layout) for side in layout.sides}
    others = {path: TEXT for found in members.values() for path in found.values() if path not in needed}
    if rows > 1 and rows * len(others) > _CELLS:
        raise pa.ArrowInvalid("too many names for so many lines at once")
    try:
        values, _ = parse(lines, rows, needed | others)
    except pa.ArrowInvalid:  # one of the others is an object, say
        values, _ = parse(lines, rows, needed)
        values |= dict(zip(others, texts(lines_of(lines), list(others)), strict=True))
    return values, {side: {name: values[path] for name, path in found.items()} for side, found in members.items()}


def _exists(lines: pa.Array, side: Side, layout: Layout) -> np.ndarray:
    """Of quoted lines, whether any member of the side is not null."""
    buffer = lines.buffers()[2]
    block = buffer.to_pybytes()
    _, wholes = _read(block, strings(block), buffer, len(lines), layout, whole=True)
    return any_valid(list(wholes[side].values()), len(lines))


def _members(side: Side, names_: Sequence[str], layout: Layout) -> dict[str, Path]:
    """The paths of what may be members of a side's states."""
    if side.struct:
        return {name: (side.name, name) for name in names_}
    return {name.removeprefix(side.name): (name,) for name in layout.members(side, names_)}


def _path(side: Side, column: str) -> Path:
    return (side.name, column) if side.struct else (side.path(column),)
