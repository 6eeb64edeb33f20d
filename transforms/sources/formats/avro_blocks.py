"""Avro files block by block: their records, and the Arrow types of the records' members."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import fastavro
import pyarrow as pa

from transforms.sources.files.opening import OversizeError
from transforms.sources.formats.avro_memory import DECIMAL
from transforms.sources.formats.avro_unpacked import Unpacked
from transforms.sources.formats.envelopes import FieldPath
from transforms.sources.formats.format import JsonRecord

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
    DECIMAL: pa.float64(),
}
_NONE_THAT_SERVES = pa.list_(pa.null())


def blocks(stream: pa.NativeFile) -> Iterator[tuple[list[JsonRecord], dict[FieldPath, pa.DataType]]]:
    """Yield some records of each block, and the types of all members of their objects.

    Raises:
        OversizeError: A block is too large.
        pa.ArrowInvalid: The file is not an Avro file, or a damaged one.
    """
    try:
        unpacked = Unpacked(stream)
        found = fastavro.block_reader(unpacked)  # type: ignore[arg-type]  # it has read and tell
        types = _types(found.writer_schema)
        for block in found:
            left: Iterator[Any] = iter(block)  # typed too loosely by fastavro
            while records := list(islice(left, unpacked.together)):
                yield records, types
            if block.bytes_.read(1):  # type: ignore[attr-defined]
                raise ValueError("a block is longer than its records")
    except OversizeError:
        raise
    except Exception as error:  # fastavro raises almost any class for wrong bytes
        raise pa.ArrowInvalid(type(error).__name__) from None


def types_of(stream: pa.NativeFile) -> dict[FieldPath, pa.DataType]:
    """Return the types of all members of the records' objects, even without records.

    Raises:
        pa.ArrowInvalid: The file is not an Avro file, or a damaged one.
    """
    try:
        return _types(fastavro.block_reader(Unpacked(stream)).writer_schema)  # type: ignore[arg-type]
    except OversizeError:
        raise
    except Exception as error:
        raise pa.ArrowInvalid(type(error).__name__) from None


def column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Return values of fastavro as an array; null if the type is not supported.

    Raises:
        pa.ArrowInvalid: The file's own schema does not allow the values.
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


def _types(schema: Any) -> dict[FieldPath, pa.DataType]:
    """Return the types of the members of the record, and of the records in it."""
    found: dict[FieldPath, pa.DataType] = {}
    for member in schema["fields"]:
        inner = _not_null(member["type"])
        if isinstance(inner, dict) and inner["type"] == "record":
            found |= {(member["name"], f["name"]): _type(_not_null(f["type"])) for f in inner["fields"]}
        else:
            found[member["name"],] = _type(inner)
    return found


def _not_null(type_: Any) -> Any:
    """Return a nullable type without null; a union of several types is read as text."""
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
