"""Changelogs as JSON lines, streamed in blocks that end with a line.

A block is parsed as columns with the types of the layout. If that fails, halves of it are, until the lines
that are to blame stand alone: these become dead letters, and the others still are columns.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from transforms import files
from transforms.batches import Batch, dead_file, dead_letters
from transforms.first_file import Side
from transforms.kinds import ARROW, one_chunk
from transforms.layout import Layout
from transforms.normalise import Place, normalise
from transforms.parquet_files import any_valid
from transforms.samples import is_object

_BLOCK = 1 << 22  # bytes
_DEEPEST = 500  # brackets in brackets

NOT_JSON = "the line is not a JSON object in UTF-8, or is nested too deeply"
NOT_OF_TYPES = "a value of the line is not of its column's type"


def read_json_lines(layout: Layout, place: Place, batch_rows: int) -> Iterator[Batch | pa.Table]:
    """Batches and dead letters of a file; a fault of the file is one dead letter. Blank lines are not rows."""
    try:
        with files.open_stream(place.file) as stream:
            for block, first in _blocks(stream):
                yield from _read_block(block, first, layout, place, batch_rows)
    except files.UNREADABLE as error:
        yield dead_file(place.file, f"the file cannot be read to its end ({type(error).__name__})")


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


def _read_block(block: bytes, first: int, layout: Layout, place: Place, batch_rows: int) -> Iterator[Batch | pa.Table]:
    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    # Arrow's parser crashes on lines that begin otherwise, e.g. `null`, and on very deep ones.
    usable = data[starts] == ord("{")
    for line in np.flatnonzero(ends - starts > _DEEPEST):
        usable[line] &= _depth(data[starts[line] : ends[line]]) <= _DEEPEST
    rows = first + np.arange(len(starts))
    if not usable.all():
        lines = [block[start:end] for start, end in zip(starts[~usable], ends[~usable], strict=True)]
        filled = np.array([bool(line.strip(b"\xef\xbb\xbf \t\r")) for line in lines], dtype=bool)
        yield dead_letters(place.file, rows[~usable][filled], NOT_JSON)
        block = b"".join(block[s : e + 1] for s, e in zip(starts[usable], ends[usable], strict=True))
        rows, ends = rows[usable], np.cumsum((ends - starts + 1)[usable]) - 1
    if len(rows):
        yield from _read_lines(block, rows, ends, layout, place, batch_rows)


def _depth(line: np.ndarray) -> int:
    """How deep brackets are nested, those in strings counted too."""
    opening = (line == ord("{")) | (line == ord("["))
    closing = (line == ord("}")) | (line == ord("]"))
    return int(np.cumsum(opening.astype(np.int32) - closing).max())


def _read_lines(
    block: bytes, rows: np.ndarray, ends: np.ndarray, layout: Layout, place: Place, batch_rows: int
) -> Iterator[Batch | pa.Table]:
    """Lines that begin with a brace; `ends` are the places of their newlines in the block."""
    try:
        raw = _raw(block, layout)
    except (pa.ArrowException, UnicodeDecodeError):
        raw = None
    if raw is not None and len(raw) == len(rows):
        yield from normalise(raw, rows, layout, place, batch_rows)
    elif len(rows) == 1:
        yield dead_letters(place.file, rows, NOT_OF_TYPES if is_object(block) else NOT_JSON)
    else:
        middle = len(rows) // 2
        cut = int(ends[middle - 1]) + 1
        yield from _read_lines(block[:cut], rows[:middle], ends[:middle], layout, place, batch_rows)
        yield from _read_lines(block[cut:], rows[middle:], ends[middle:] - cut, layout, place, batch_rows)


def _raw(block: bytes, layout: Layout) -> pa.Table:
    """The raw table (see `normalise`) of lines."""
    block.decode()  # Arrow does not check UTF-8 here
    schema = _schema(layout)
    flat = any(not side.struct for side in layout.sides)
    try:
        # Members that nothing needs say whether a flat state exists.
        table = _parse(block, explicit_schema=schema, unexpected_field_behavior="infer" if flat else "ignore")
        contradictory = False
    except pa.ArrowInvalid:
        table = _parse(block, explicit_schema=schema, unexpected_field_behavior="ignore")
        contradictory = flat  # a member that nothing needs has several types
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
    members = json.loads(line)
    return any(members[name] is not None for name in layout.rest(side, list(members)))


def _schema(layout: Layout) -> pa.Schema:
    keys = {"entry": layout.entry, "owner": layout.owner, "time": "string"}
    keys |= {f"order.{place}": kind for place, kind in enumerate(layout.order)}
    fields = {column: _plain(keys[name] or "string") for name, column in layout.roles.items()}
    for side in layout.sides:
        if side.struct:
            fields[side.name] = pa.struct([(column, _plain(kind)) for column, kind in layout.states])
        else:
            fields |= {side.path(c): _plain(k) for c, k in layout.states if side.path(c) not in fields}
    return pa.schema(list(fields.items()))


def _plain(kind: str) -> pa.DataType:
    """JSON has no times: they are strings there."""
    return pa.string() if kind in ("string", "timestamp") else ARROW[kind]


def _parse(block: bytes, **options: Any) -> pa.Table:
    return pyarrow.json.read_json(
        pa.BufferReader(block),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pyarrow.json.ParseOptions(**options),
    )
