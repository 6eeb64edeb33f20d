"""Avro files block by block: records, and the Arrow types that their members are read as."""

from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa

from transforms.sources.formats.envelopes import Path
from transforms.sources.formats.format import Record

_PRIMITIVE = {
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float64(),
    "double": pa.float64(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL = {
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "date": pa.date32(),
    "decimal": pa.float64(),
}
_NONE_THAT_SERVES = pa.list_(pa.null())


def blocks(stream: pa.NativeFile) -> Iterator[tuple[list[Record], dict[Path, pa.DataType]]]:
    """The records of each block, and the types of all members of their objects.

    Raises:
        pa.ArrowInvalid: not an Avro file, or a spoilt one.
    """
    try:
        for block in fastavro.block_reader(stream):  # typed too loosely by fastavro
            records: list[Any] = list(block)
            if block.bytes_.read(1):  # type: ignore[attr-defined]
                raise ValueError("a block is longer than its records")
            yield records, _types(block.writer_schema)
    except Exception as error:  # there is hardly a kind that fastavro does not raise where bytes are wrong
        raise pa.ArrowInvalid(type(error).__name__) from None


def types_of(stream: pa.NativeFile) -> dict[Path, pa.DataType]:
    """The types of all members of the records' objects, whether there are records or not.

    Raises:
        pa.ArrowInvalid: not an Avro file, or a spoilt one.
    """
    try:
        return _types(fastavro.block_reader(stream).writer_schema)
    except Exception as error:
        raise pa.ArrowInvalid(type(error).__name__) from None


def column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Values as fastavro gives them, as an array; null where the type is none that serves.

    Raises:
        pa.ArrowInvalid: values that the file's own schema does not allow.
    """
    if type_ == _NONE_THAT_SERVES:
        return pa.nulls(len(values), type_)
    try:
        if pa.types.is_string(type_):
            values = [None if value is None else str(value) for value in values]
        elif pa.types.is_floating(type_):
            values = [None if value is None else float(value) for value in values]
        return pa.array(values, type_)
    except (ArithmeticError, TypeError, ValueError) as error:  # e.g. an integer of more than 64 bits
        raise pa.ArrowInvalid(type(error).__name__) from None


def _types(schema: Any) -> dict[Path, pa.DataType]:
    """Types of the members of the record, and of the records in it."""
    found: dict[Path, pa.DataType] = {}
    for member in schema["fields"]:
        inner = _not_null(member["type"])
        if isinstance(inner, dict) and inner["type"] == "record":
            found |= {(member["name"], f["name"]): _type(_not_null(f["type"])) for f in inner["fields"]}
        else:
            found[member["name"],] = _type(inner)
    return found


def _not_null(type_: Any) -> Any:
    """What a nullable type is otherwise; several types stand for a text."""
    if not isinstance(type_, list):
        return type_
    others = [other for other in type_ if other != "null"]
    return others[0] if len(others) == 1 else "string"


def _type(type_: Any) -> pa.DataType:
    name = type_["type"] if isinstance(type_, dict) else type_
    logical = type_.get("logicalType") if isinstance(type_, dict) else None
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    return _PRIMITIVE.get(name if isinstance(name, str) else "", _NONE_THAT_SERVES)
