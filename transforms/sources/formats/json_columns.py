"""Lines of JSON objects as columns of texts: Arrow's reader on quoted lines (transforms.sources.formats.json_text).

in    complete lines, each of which begins and ends with a brace
out   a table, or the values at some paths of the objects
"""

import json
import re
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from transforms.common.kinds import one_chunk
from transforms.sources.formats.envelopes import Columns, FieldPath, Fields
from transforms.sources.formats.json_text import quoted, strings

_ESCAPED = re.compile(rb"\\u00[2-7]")  # it may be a letter of a name
_INF = re.compile(r"(?<=[\s:,\[-])Inf(?=[\s,\]}])")


def parse(lines: pa.Buffer, rows: int, fields: Fields) -> tuple[dict[FieldPath, pa.Array], dict[FieldPath, np.ndarray]]:
    """Parse quoted lines with Arrow's reader.

    Args:
        lines: Quoted lines.
        rows: Number of lines.
        fields: Paths to read.

    Returns:
        Values at each path; and for the objects on the way, whether each row has them, bool [rows].

    Raises:
        pa.ArrowException: A line is not one JSON object, or has a needed member twice or in another form.
    """
    table = pyarrow.json.read_json(
        pa.BufferReader(lines),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=lines.size + 1),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=pa.schema(list(_struct(fields))), unexpected_field_behavior="ignore"
        ),
    )
    if len(table) != rows:
        raise pa.ArrowInvalid("a line holds more than one object")
    values: dict[FieldPath, pa.Array] = {}
    exists: dict[FieldPath, np.ndarray] = {}
    for name in table.column_names:
        _take_apart(one_chunk(table[name]), (name,), values, exists)
    return values, exists


def load(line: str | bytes) -> Any:
    """Parse a line that Arrow's reader accepts into Python objects; both accept numbers of any length and Inf."""
    try:
        return json.loads(line, parse_int=float)
    except ValueError:
        text = line if isinstance(line, str) else line.decode()
        return json.loads(_INF.sub("Infinity", text), parse_int=float)


def parse_paths(block: bytes, rows: int, fields: Fields) -> Columns:
    """Return the values at the fields' paths.

    Args:
        block: Complete lines.
        rows: Number of lines.
        fields: Paths to read.

    Raises:
        pa.ArrowException: As in `parse`.
    """
    # Columns without values take the reader as long as others, so members that no line has are left out.
    names = {path[0] for path in fields}
    plain = [] if _ESCAPED.search(block) else [name for name in names if name.isascii() and name.isidentifier()]
    absent = {name for name in plain if f'"{name}"'.encode() not in block}
    absent = absent if absent < names else set()
    present = {path: type_ for path, type_ in fields.items() if path[0] not in absent}
    lines = quoted(block, strings(block))
    missing = {path: type_ for path, type_ in fields.items() if path[0] in absent}
    values, exists = parse(lines, rows, present)
    values |= {path: pa.nulls(rows, type_) for path, type_ in missing.items()}
    exists |= {path[:end]: np.zeros(rows, dtype=bool) for path in missing for end in range(1, len(path))}
    given = cache(lambda: block.split(b"\n"))
    return Columns(rows, values, exists, lines, lambda row: given()[row])


def _struct(types: dict[FieldPath, pa.DataType]) -> pa.StructType:
    inner: dict[str, dict[FieldPath, pa.DataType]] = {}
    for path, type_ in types.items():
        inner.setdefault(path[0], {})[path[1:]] = type_
    fields = []
    for name, below in inner.items():
        own = below.pop((), None)
        fields.append((name, _struct(below) if below or own is None else own))
    return pa.struct(fields)


def _take_apart(
    values: pa.Array, path: FieldPath, leaves: dict[FieldPath, pa.Array], exists: dict[FieldPath, np.ndarray]
) -> None:
    if not pa.types.is_struct(values.type):
        leaves[path] = values
        return
    exists[path] = values.is_valid().to_numpy(zero_copy_only=False)
    # Access by name would take a time quadratic in the number of fields.
    for child, inner in zip(values.type, values.flatten(), strict=True):
        _take_apart(inner, (*path, child.name), leaves, exists)
