"""A first look into a file: its columns, as far as its first block tells."""

import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from transforms.common.source import Source
from transforms.sources import files
from transforms.sources.avro_blocks import types_of
from transforms.sources.envelope_names import ENVELOPES
from transforms.sources.envelope_samples import columns_of, states_in

BLOCK = 1 << 22  # bytes
_LINE = re.compile(rb"[^\r\n]*")


def sample(source: Source, path: str | None) -> tuple[pa.Schema, pa.Table | None]:
    """Schema of a file, and its first rows as texts, by path; no rows for Parquet and Avro. Of events, their states.

    Columns of text are strings, or structs and lists where JSON has objects and lists, or null if all rows are. Without
    a path there are none.

    Raises:
        one of `files.UNREADABLE`.
    """
    if path is None:
        return pa.schema([]), pa.table({})
    if source.format == "parquet":
        with files.open_random(path) as stream:
            return pq.read_schema(stream), None
    with files.open_stream(path, source.kafka) as stream:
        if source.format == "datastream" and path.endswith(".avro"):
            return columns_of(source, path, types_of(stream)), None
        if source.format == "csv":
            table = _csv(source, stream)
            return pa.schema([(name, pa.string()) for name in table.column_names]), table
        objects = _objects(stream)
    rows = states_in(source, path, objects) if source.format in ENVELOPES else objects
    return _schema(rows), _texts(rows)


def _first_lines(stream: pa.NativeFile) -> bytes:
    head = stream.read(BLOCK)
    whole = head.rfind(b"\n") + 1 if len(head) == BLOCK else 0
    return head[:whole] if whole else head + b"\n"


def _csv(source: Source, stream: pa.NativeFile) -> pa.Table:
    head = _first_lines(stream)
    header = len(_LINE.match(head)[0])  # type: ignore[index]  # it matches nothing, too
    head = head[:header] + head[header:].decode(errors="replace").encode()  # the parser cannot leave out other rows
    reader = pyarrow.csv.open_csv(
        pa.BufferReader(head),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda _: "skip"),
        convert_options=pyarrow.csv.ConvertOptions(
            default_column_type=pa.string(),
            strings_can_be_null=True,
            null_values=["", *source.nulls],
            quoted_strings_can_be_null=bool(source.nulls),
        ),
    )
    table = reader.schema.empty_table()
    for batch in reader:
        if batch.num_rows:
            return pa.Table.from_batches([batch])
    return table


def _objects(stream: pa.NativeFile) -> list[dict[str, Any]]:
    """The objects on the first lines; of numbers their texts, as they are read."""
    lines = [line for line in _first_lines(stream).split(b"\n") if line.strip() not in (b"", b"null")]
    found = [parsed for line in lines if isinstance(parsed := _parsed(line), dict)]
    if lines and not found:
        raise pa.ArrowInvalid("no line is a JSON object")
    return found


def _parsed(line: bytes) -> Any:
    try:
        found = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
        if b"\\" in line:
            json.dumps(found, ensure_ascii=False).encode()  # halves of a character are no text
    except (ValueError, RecursionError):
        return None
    return found


def is_object(line: bytes) -> bool:
    """Whether a line is a JSON object in UTF-8, nested no deeper than Python can follow."""
    return isinstance(_parsed(line), dict)


def _schema(rows: list[dict[str, Any]]) -> pa.Schema:
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.schema([(name, _type([row.get(name) for row in rows])) for name in names])


def _type(values: list[Any]) -> pa.DataType:
    """What most of it says: a text if any value is one, else a struct, else a list."""
    values = [value for value in values if value is not None]
    if any(not isinstance(value, dict | list) for value in values):
        return pa.string()
    objects = [value for value in values if isinstance(value, dict)]
    if objects:
        names = dict.fromkeys(name for value in objects for name in value)
        return pa.struct([(name, _type([value.get(name) for value in objects])) for name in names])
    return pa.list_(pa.null()) if values else pa.null()


def _texts(rows: list[dict[str, Any]]) -> pa.Table:
    """Scalars by path, those in objects with a dot."""
    told = [row | {path: value for name in row for path, value in _inside(name, row[name])} for row in rows]
    names = dict.fromkeys(name for row in told for name in row)
    return pa.table({name: pa.array([_text(row.get(name)) for row in told], pa.string()) for name in names})


def _inside(name: str, value: Any) -> list[tuple[str, Any]]:
    return [(f"{name}.{key}", inner) for key, inner in value.items()] if isinstance(value, dict) else []


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, dict | list):
        return None
    return str(value).lower() if isinstance(value, bool) else value
