"""A first look into a file: its columns with their types, as far as its first block tells."""

import json
import re

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from transforms import files
from transforms.envelope_samples import sample_avro, sample_events
from transforms.own_names import ENVELOPES
from transforms.source import Source

BLOCK = 1 << 22  # bytes
_LINE = re.compile(rb"[^\r\n]*")


def sample(source: Source, path: str) -> tuple[pa.Schema, pa.Table | None]:
    """Schema of a file, and its first rows; no rows for Parquet. Of events, the states in them.

    Types of CSV and JSON columns are Arrow's inference, except that what looks like a time is left a string.

    Raises:
        one of `files.UNREADABLE`.
    """
    if source.format == "parquet":
        with files.open_random(path) as stream:
            return pq.read_schema(stream), None
    with files.open_stream(path, source.kafka) as stream:
        if source.format == "datastream" and path.endswith(".avro"):
            table = sample_avro(source, path, stream)
            return table.schema, table
        if source.format == "csv":
            table = _csv(source, stream)
        elif source.format in ENVELOPES:
            table = sample_events(source, path, _objects(stream), _inferred)
        else:
            table = _json(source, stream)
    return pa.schema([pa.field(f.name, _settled(f.type)) for f in table.schema]), table


def _first_lines(stream: pa.NativeFile) -> bytes:
    head = stream.read(BLOCK)
    whole = head.rfind(b"\n") + 1 if len(head) == BLOCK else 0
    return head[:whole] if whole else head + b"\n"


def _csv(source: Source, stream: pa.NativeFile) -> pa.Table:
    head = _first_lines(stream)
    header = len(_LINE.match(head)[0])  # type: ignore[index]  # it matches nothing, too
    head = head[:header] + head[header:].decode(errors="replace").encode()  # the parser cannot leave out other rows
    strings = (source.entry, source.owner, source.time)
    convert = pyarrow.csv.ConvertOptions(
        column_types={name: pa.string() for name in strings if name is not None},
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=False,
    )
    reader = pyarrow.csv.open_csv(
        pa.BufferReader(head),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda _: "skip"),
        convert_options=convert,
    )
    table = reader.schema.empty_table()
    for batch in reader:
        if batch.num_rows:
            return _time_if_number(pa.Table.from_batches([batch]), source.time)
    return table


def _time_if_number(table: pa.Table, time: str | None) -> pa.Table:
    """CSV's times are read as text; where they are whole numbers, their type says so."""
    if time is None or table.column_names.count(time) != 1 or table[time].null_count == table.num_rows:
        return table
    try:
        return table.set_column(table.column_names.index(time), time, table[time].cast(pa.int64()))
    except pa.ArrowInvalid:
        return table


def _json(source: Source, stream: pa.NativeFile) -> pa.Table:
    lines = _objects(stream)
    table = _inferred(lines)
    # A time in JSON loses its offset by inference.
    if source.time in table.column_names and pa.types.is_timestamp(table[source.time].type):
        schema = pa.schema([(source.time, pa.string())])
        times = _parse(lines[: len(table)], explicit_schema=schema, unexpected_field_behavior="ignore")
        table = table.set_column(table.column_names.index(source.time), source.time, times[source.time])
    return table


def _objects(stream: pa.NativeFile) -> list[bytes]:
    lines = [line for line in _first_lines(stream).split(b"\n") if is_object(line)]
    if not lines:
        raise pa.ArrowInvalid("no line is a JSON object")
    return lines


def _inferred(lines: list[bytes]) -> pa.Table:
    """The lines as a table; fewer lines if a later one contradicts the types of the first."""
    while True:
        try:
            return _parse(lines)
        except pa.ArrowInvalid:
            if len(lines) == 1:
                raise
            lines = lines[: len(lines) // 2]


def _parse(lines: list[bytes], **options: object) -> pa.Table:
    return pyarrow.json.read_json(
        pa.BufferReader(b"\n".join(lines) + b"\n"),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=2 * BLOCK),
        parse_options=pyarrow.json.ParseOptions(**options),
    )


def is_object(line: bytes) -> bool:
    """Whether a line is a JSON object in UTF-8, nested no deeper than Python can follow."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _settled(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _settled(f.type)) for f in type_])
    return pa.string() if pa.types.is_temporal(type_) or pa.types.is_binary(type_) else type_
