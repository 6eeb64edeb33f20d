"""Lines of JSON objects as columns: Arrow's reader, and what it cannot do by itself.

in    whole lines, each of which begins with a brace
out   a table, or the values at some paths of the objects
"""

import json
import re
import threading
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from transforms.envelopes import Columns, Fields, Path
from transforms.kinds import one_chunk

_CHANGED = re.compile(r"Column\(/(.+)\) changed from (?:number to (string)|string to (number)) in row")
_ESCAPED = re.compile(rb"\\u00[2-7]")  # a letter of a name, perhaps
_INF = re.compile(r"(?<=[\s:,\[-])Inf(?=[\s,\]}])")
_LOCAL = threading.local()


def parse(block: bytes, **options: Any) -> pa.Table:
    """Arrow's reader on all lines at once.

    Raises:
        pa.ArrowException: a line that is not JSON, or a value of another type.
    """
    return pyarrow.json.read_json(
        pa.BufferReader(block),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pyarrow.json.ParseOptions(**options),
    )


def load(line: str | bytes, **options: Any) -> Any:
    """A line that Arrow's reader takes, in Python's own objects: of numbers any length and Inf are numbers to both."""
    try:
        return json.loads(line, parse_int=float, **options)
    except ValueError:
        text = line if isinstance(line, str) else line.decode()
        return json.loads(_INF.sub("Infinity", text), parse_int=float, **options)


def parse_paths(block: bytes, rows: int, fields: Fields) -> Columns:
    """What stands at the fields' paths; of loose ones as text where the lines have text.

    Raises:
        pa.ArrowException: as in `parse`, or numbers and texts at one loose path.
    """
    # Columns without values cost the reader as much as others, so a member that no line has is left out.
    names = {path[0] for path in fields.types}
    plain = [] if _ESCAPED.search(block) else [name for name in names if name.isascii() and name.isidentifier()]
    absent = {name for name in plain if f'"{name}"'.encode() not in block}
    absent = absent if absent < names else set()
    types = {path: type_ for path, type_ in fields.types.items() if path[0] not in absent}
    lists = {path for path, type_ in types.items() if pa.types.is_list(type_)}
    table = _parse_loosely(block, {path: types[path] for path in types if path not in lists}, fields.loose)
    if len(table) != rows:
        raise pa.ArrowInvalid("a line holds more than one object")
    missing = {path: type_ for path, type_ in fields.types.items() if path[0] in absent}
    values: dict[Path, pa.Array] = {path: pa.nulls(rows, type_) for path, type_ in missing.items()}
    exists = {path[:end]: np.zeros(rows, dtype=bool) for path in missing for end in range(1, len(path))}
    for name in table.column_names:
        _take_apart(one_chunk(table[name]), (name,), values, exists)
    lines = cache(lambda: block.split(b"\n"))
    values |= {path: _list(lines()[:rows], path) for path in lists}
    return Columns(rows, values, exists, lambda row: load(lines()[row]))


def _parse_loosely(block: bytes, types: dict[Path, pa.DataType], loose: frozenset[Path]) -> pa.Table:
    by_name = {"/".join(path): path for path in loose}
    types = dict(types)
    tried: set[Path] = set()
    while True:
        try:
            return parse(block, explicit_schema=_nested(types), unexpected_field_behavior="ignore")
        except pa.ArrowInvalid as error:
            found = _CHANGED.search(str(error))
            path = by_name.get(found[1]) if found else None
            if found is None or path is None or path in tried:
                raise
            tried.add(path)
            types[path] = pa.string() if found[2] else pa.int64()


def _nested(types: dict[Path, pa.DataType]) -> pa.Schema:
    return pa.schema(list(_struct(types)))


def _struct(types: dict[Path, pa.DataType]) -> pa.StructType:
    inner: dict[str, dict[Path, pa.DataType]] = {}
    for path, type_ in types.items():
        inner.setdefault(path[0], {})[path[1:]] = type_
    return pa.struct([(name, below[()] if () in below else _struct(below)) for name, below in inner.items()])


def _take_apart(values: pa.Array, path: Path, leaves: dict[Path, pa.Array], exists: dict[Path, np.ndarray]) -> None:
    if not pa.types.is_struct(values.type):
        leaves[path] = values
        return
    exists[path] = values.is_valid().to_numpy(zero_copy_only=False)
    for child in values.type:
        _take_apart(pc.struct_field(values, child.name), (*path, child.name), leaves, exists)


def _list(lines: list[bytes], path: Path) -> pa.Array:
    """An array of numbers and texts, as texts; null where there is none."""
    if not hasattr(_LOCAL, "connection"):
        _LOCAL.connection = duckdb.connect(":memory:", config={"threads": 1})
    table = pa.table({"line": pa.array(lines, pa.binary()).cast(pa.string())})
    if len(path) == 1:  # the first of two would count; a name in an inner object is nobody's
        told = pc.count_substring(table["line"], f'"{path[0]}"')
        unclear = pc.or_(pc.greater(told, 1), pc.match_substring(table["line"], "\\u00"))
        for line in table["line"].filter(unclear).to_pylist():
            if load(line, object_pairs_hook=lambda pairs: [key for key, _ in pairs].count(path[0])) > 1:
                raise pa.ArrowInvalid(f"{path[0]} is there twice")
    where = "$" + "".join(f'."{name}"' for name in path)  # names of a format, not of the data
    _LOCAL.connection.register("lines", table)
    try:
        found = _LOCAL.connection.sql(f"SELECT TRY_CAST(json_extract(line, '{where}') AS VARCHAR[]) FROM lines")
        return one_chunk(found.to_arrow_table().column(0)).cast(pa.list_(pa.string()))
    except duckdb.Error as error:
        raise pa.ArrowInvalid(f"no list at {'.'.join(path)} ({type(error).__name__})") from None
    finally:
        _LOCAL.connection.unregister("lines")
