"""Changelogs as JSON lines, streamed in blocks that end with a line.

A block is parsed as columns with the types of the layout. If that fails, halves of it are, until the lines
that are to blame stand alone: these become dead letters, and the others still are columns. Lines may be rows, or
events with states in them (transforms.envelopes).

A line is a dead letter if it does not begin with a brace, holds other than one object, has a needed member twice or of
another type (times are texts; an integer has digits only, within 64 bits), or holds an exponent beyond a float's. What
one line says is read as if it stood alone. NaN and Infinity, which JSON has not, are read; an empty key is a key.
"""

import codecs
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from transforms import datastream, debezium, files
from transforms.batches import Batch, dead_file, dead_letters
from transforms.envelopes import Unwrapped, Verdicts, emit, text_or
from transforms.first_file import Side
from transforms.json_columns import load, parse, parse_paths
from transforms.kinds import one_chunk
from transforms.layout import Layout
from transforms.normalise import Place, Skipped
from transforms.parquet_files import any_valid
from transforms.samples import is_object

_ENVELOPES = {"debezium": debezium, "datastream": datastream}
_BLOCK = 1 << 22  # bytes
_DEEPEST = 500  # brackets in brackets
_BLANKS = b" \t\r"

NOT_JSON = "the line is not a JSON object in UTF-8, or is nested too deeply"
NOT_OF_TYPES = "a value of the line is not of its column's type"


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
        usable &= _depth(data, starts) <= _DEEPEST
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


def _depth(data: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """How deep brackets are nested in each line, those in strings counted too; [lines]."""
    opening = (data == ord("{")) | (data == ord("["))
    closing = (data == ord("}")) | (data == ord("]"))
    depth = np.cumsum(opening.astype(np.int8) - closing.astype(np.int8), dtype=np.int32)
    before = np.concatenate([[0], depth[starts[1:] - 1]])
    return np.maximum.reduceat(depth, starts) - before


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
        yield dead_letters(place.file, rows, NOT_OF_TYPES if is_object(block) else NOT_JSON)
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
    schema = _schema(layout)
    flat = any(not side.struct for side in layout.sides)
    try:
        # Members that nothing needs say whether a flat state exists.
        table = parse(block, explicit_schema=schema, unexpected_field_behavior="infer" if flat else "ignore")
        contradictory = False
    except pa.ArrowInvalid:
        table = parse(block, explicit_schema=schema, unexpected_field_behavior="ignore")
        contradictory = flat  # a member that nothing needs has several types
    if len(table) != rows:
        raise pa.ArrowInvalid("a line holds more than one object")
    columns = {name: table[column] for name, column in layout.roles.items()}
    for side in layout.sides:
        if side.struct:
            struct = one_chunk(table[side.name])
            columns[side.side] = struct.is_valid()
            columns |= {f"{side.side}.{c}": pc.struct_field(struct, c) for c, _ in layout.states}
        else:
            exists = _exists(table, side, layout)
            if contradictory and not exists.all():
                exists |= np.array([_has_member(line, side, layout) for line in block[:-1].split(b"\n")])
            columns[side.side] = pa.array(exists)
            columns |= {f"{side.side}.{c}": table[side.path(c)] for c, _ in layout.states}
    return pa.table(columns)


def _exists(table: pa.Table, side: Side, layout: Layout) -> np.ndarray:
    """Rows where any member of the side is not null."""
    roles = set(layout.roles.values())
    own = [side.path(column) for column, _ in layout.states if side.path(column) not in roles]
    names = own + layout.rest(side, table.column_names)
    return any_valid([one_chunk(table[name]) for name in names], len(table))


def _has_member(line: bytes, side: Side, layout: Layout) -> bool:
    members = load(line)
    return any(members[name] is not None for name in layout.rest(side, list(members)))


def _schema(layout: Layout) -> pa.Schema:
    keys = {"entry": layout.entry, "owner": layout.owner, "time": "string"}
    keys |= {f"order.{place}": kind for place, kind in enumerate(layout.order)}
    fields = {column: text_or(keys[name] or "string") for name, column in layout.roles.items()}
    for side in layout.sides:
        if side.struct:
            fields[side.name] = pa.struct([(column, text_or(kind)) for column, kind in layout.states])
        else:
            fields |= {side.path(c): text_or(k) for c, k in layout.states if side.path(c) not in fields}
    return pa.schema(list(fields.items()))
