"""JSON lines that are rows themselves, or have the states before and after as objects.

A state exists if any of its members is not null: of its object, or of the row without members outside the state. A list
or an object in it is not null, even if it is empty.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from transforms.common.images import IMAGE, digest
from transforms.common.kinds import any_valid
from transforms.common.source import Source
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.sides import Side
from transforms.sources.files.opening import open_stream
from transforms.sources.formats.envelopes import OBJECT, TEXT, FieldPath, Fields, Unwrapped, Verdicts
from transforms.sources.formats.format import FirstRows, Format
from transforms.sources.formats.json_columns import parse
from transforms.sources.formats.json_lines import read_json_lines
from transforms.sources.formats.json_members import texts
from transforms.sources.formats.json_samples import columns_of, objects
from transforms.sources.formats.json_text import lines_of, names, quoted, strings

_CELLS = 1 << 26  # cells of one table
_EMPTY = 16
"""Cells for each quote in tables that are not small: if lines have different names, most cells are empty."""


def _sample(source: Source, path: str) -> FirstRows:
    with open_stream(path, source.kafka) as stream:
        return columns_of(objects(stream))


def _unwrap(block: bytes, rows: int, layout: Layout) -> Unwrapped:
    """Return the raw table of the lines; all are changes."""
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
            unclear = np.flatnonzero(~exists & (not layout.rows_are_states))
            if len(unclear):
                exists[unclear] = _exists(lines_of(lines).take(pa.array(unclear)), side, layout)
        raw[side.side] = pa.array(exists)
        raw |= {f"{side.side}.{column}": values for column, values in states.items()}
    return Unwrapped(pa.table(raw), Verdicts(rows))


def _read(
    block: bytes, marks: np.ndarray, lines: pa.Buffer, rows: int, layout: Layout, *, whole: bool
) -> tuple[dict[FieldPath, pa.Array], dict[Side, dict[str, pa.Array]]]:
    """Return the needed values of the rows by path and, if `whole`, all members of the states of each side."""
    needed: Fields = {(column,): TEXT for column in layout.roles.values()}
    needed |= {(side.name,): OBJECT for side in layout.sides if side.struct}
    needed |= {_path(side, column): TEXT for side in layout.sides for column, _ in layout.states}
    named = names(block, marks) if whole else []
    members = {side: _members(side, named, layout) for side in layout.sides}
    others = {path: TEXT for found in members.values() for path in found.values() if path not in needed}
    if rows > 1 and rows * len(others) > min(_CELLS, max(_CELLS >> 8, _EMPTY * len(marks))):
        raise pa.ArrowInvalid("too many names for the lines of one block")
    try:
        values, _ = parse(lines, rows, needed | others)
    except pa.ArrowInvalid:  # for example if another member is an object
        values, _ = parse(lines, rows, needed)
        values |= dict(zip(others, texts(lines_of(lines), list(others)), strict=True))
    return values, {side: {name: values[path] for name, path in found.items()} for side, found in members.items()}


def _exists(lines: pa.Array, side: Side, layout: Layout) -> np.ndarray:
    """Return for quoted lines whether any member of the side is not null, bool [rows]."""
    buffer = lines.buffers()[2]
    block = buffer.to_pybytes()
    _, wholes = _read(block, strings(block), buffer, len(lines), layout, whole=True)
    return any_valid(list(wholes[side].values()), len(lines))


def _members(side: Side, names_: Sequence[str], layout: Layout) -> dict[str, FieldPath]:
    """Return the paths of possible members of a side's states."""
    if side.struct:
        return {name: (side.name, name) for name in names_}
    return {name.removeprefix(side.name): (name,) for name in layout.members(side, names_)}


def _path(side: Side, column: str) -> FieldPath:
    return (side.name, column) if side.struct else (side.path(column),)


JSONL = Format(
    name="jsonl",
    kind="JSON lines",
    sample=_sample,
    read=partial(read_json_lines, unwrap=_unwrap),
    endings=(".json", ".jsonl", ".ndjson"),
    lines=lambda _: True,
    is_struct=lambda name, _: name[-1:].isalnum(),  # the name of an object ends with a letter or a digit
    owner="spec",
    topics=True,
)
