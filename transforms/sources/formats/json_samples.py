"""Samples of lines of JSON: the objects in the first lines, also as columns of texts."""

import json
from typing import Any

import pyarrow as pa

from transforms.sources.files.opening import first_lines
from transforms.sources.formats.format import FirstRows, JsonRecord

_READER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Decoder that is made once: `json.loads` would make one for each line, which takes half of the time."""

_CELLS = 1 << 20  # cells of one table


def objects(stream: pa.NativeFile) -> list[JsonRecord]:
    """Return the objects in the first lines, with numbers as texts."""
    lines = [line for line in first_lines(stream).split(b"\n") if line.strip() not in (b"", b"null")]
    found = [parsed for line in lines if isinstance(parsed := _parsed(line), dict)]
    if lines and not found:
        raise pa.ArrowInvalid("no line is a JSON object")
    return found


def _parsed(line: bytes) -> Any:
    try:
        found = _READER.decode(line.decode(json.detect_encoding(line), "surrogatepass"))
        if b"\\" in line:
            json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is not a text
    except (ValueError, RecursionError):
        return None
    return found


def is_object(line: bytes) -> bool:
    """Return whether a line is a JSON object in UTF-8, nested no deeper than Python can follow."""
    return isinstance(_parsed(line), dict)


def columns_of(rows: list[JsonRecord]) -> FirstRows:
    """Return the objects as columns: strings, or structs and lists for objects and lists, or null if all rows are."""
    return _schema(rows), _texts(rows)


def _schema(rows: list[JsonRecord]) -> pa.Schema:
    return pa.schema([(name, _type(values)) for name, values in _by_name(rows).items()])


def _by_name(rows: list[JsonRecord]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return found


def _type(values: list[Any]) -> pa.DataType:
    """Return the type that loses the least: a text if any value is one, else a struct, else a list."""
    values = [value for value in values if value is not None]
    if any(not isinstance(value, dict | list) for value in values):
        return pa.string()
    objects = [value for value in values if isinstance(value, dict)]
    if objects:
        return pa.struct([(name, _type(inner)) for name, inner in _by_name(objects).items()])
    return pa.list_(pa.null()) if values else pa.null()


def _texts(rows: list[JsonRecord]) -> pa.Table:
    """Return scalars by path, with a dot for members of objects; of fewer rows if there are too many names for all."""
    flat, names = list[JsonRecord](), dict[str, None]()
    for row in rows:
        flat.append(row | {path: value for name in row for path, value in _inside(name, row[name])})
        names |= dict.fromkeys(flat[-1])
        if len(flat) * len(names) > _CELLS:
            break
    return pa.table({name: pa.array([_text(row.get(name)) for row in flat], pa.string()) for name in names})


def _inside(name: str, value: Any) -> list[tuple[str, Any]]:
    return [(f"{name}.{key}", inner) for key, inner in value.items()] if isinstance(value, dict) else []


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, dict | list):
        return None
    return str(value).lower() if isinstance(value, bool) else value
