"""Memory that the records of an Avro file take, at most, by the schema in its header.

fastavro makes a Python object of each value, with a recursive function in C. The schema decides how large the objects
of one byte can be: an array of nulls takes no bytes, records can hold records of many nulls, and a type that contains
itself nests as deep as the file is long. So the schema is measured before any record is read. Sizes are those of
objects of CPython on 64 bits, rounded up.

A decimal of many digits takes time that grows with their square: it gets another reader, which refuses long ones.
"""

import json
from dataclasses import dataclass
from typing import Any

import fastavro
from fastavro.read import LOGICAL_READERS

from transforms.sources.files.opening import OversizeError

MOST_MEMORY = 1 << 28
"""Bytes of memory that the records which are in memory at once may take."""

MOST_DEPTH = 64
"""Levels of JSON in a schema."""

DECIMAL = "slackwater-decimal"
"""Logical type in place of `decimal`."""

_MOST_DECIMAL = 128  # bytes, 307 digits
_NEVER = float("inf")
_PLACE, _ENTRY = 10, 110  # of a value in a list, and in a dictionary with its key; lists and dictionaries grow in steps
_LIST, _RECORD, _TEXT, _NUMBER, _LOGICAL = 64, 240, 80, 32, 160


@dataclass(frozen=True, slots=True)
class Taken:
    """Space that a value of a type needs, in the file and in memory.

    Attributes:
        least: Fewest bytes of a value in the file.
        memory: Bytes of memory of a value, without its texts, and without the items of arrays and maps.
        rate: Most bytes of memory for a byte of the file in texts and items.
        repeated: Most bytes of memory for a byte of the file of many such values, each with `_PLACE`.
    """

    least: float
    memory: float
    rate: float
    repeated: float


def measured(schema: bytes) -> tuple[bytes, Taken]:
    """Return a schema for fastavro, in which decimals have the type `DECIMAL`, and what a record takes.

    Args:
        schema: The schema of a file, in JSON.

    Raises:
        OversizeError: A record can take any amount of memory, or more than `MOST_MEMORY`.
        ValueError: This is no schema; or another error of fastavro.
    """
    document = _bounded(json.loads(schema), 0)
    taken = _taken(fastavro.parse_schema(document), {})
    if taken.memory > MOST_MEMORY or taken.rate == _NEVER:
        raise OversizeError("a record of the Avro file has no largest size in memory; write another schema")
    return json.dumps(document).encode(), taken


def _bounded(value: Any, depth: int) -> Any:
    """Return a copy of JSON without names of fastavro's own, with `DECIMAL` in place of decimals."""
    if depth > MOST_DEPTH:
        raise OversizeError(f"the schema of the Avro file has more than {MOST_DEPTH} levels; write a flatter one")
    if isinstance(value, list):
        return [_bounded(one, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    copy = {name: _bounded(one, depth + 1) for name, one in value.items() if not name.startswith("__fastavro")}
    if copy.get("logicalType") == "decimal":
        fastavro.parse_schema(copy)  # it checks scale and precision
        copy["logicalType"] = DECIMAL
    return copy


def _taken(type_: Any, named: dict[str, Taken | None]) -> Taken:
    """Return what a value of a type takes.

    Args:
        type_: A type as fastavro parses it.
        named: Types by name; None for those around this one.
    """
    if isinstance(type_, list):
        found = [_taken(one, named) for one in type_]
        return Taken(
            1 + min(one.least for one in found),
            max(one.memory for one in found),
            max(one.rate for one in found),
            max((_PLACE + one.memory) / (1 + one.least) for one in found),
        )
    name = type_["type"] if isinstance(type_, dict) else type_
    logical = isinstance(type_, dict) and "logicalType" in type_
    if name in _PRIMITIVE:
        least, memory, rate = _PRIMITIVE[name]
        return _one(least, max(memory, _LOGICAL * logical), rate)
    if name in named:
        known = named[name]
        if known is None:
            raise OversizeError("a type in the schema of the Avro file contains itself; write another schema")
        return known
    if name == "array":
        item = _taken(type_["items"], named)
        return _one(1, _LIST, max(item.rate, item.repeated))
    if name == "map":
        value = _taken(type_["values"], named)
        return _one(1, _RECORD, max(value.rate, 4, (_ENTRY + _TEXT + value.memory) / (1 + value.least)))
    named[type_["name"]] = None
    if name == "enum":
        found_type = _one(1, 0, 0)
    elif name == "fixed":
        if type_["size"] < 0:
            raise ValueError("a negative size")
        found_type = _one(type_["size"], max(_TEXT + type_["size"], _LOGICAL * logical), 0)
    else:
        members = [_taken(member["type"], named) for member in type_["fields"]]
        found_type = _one(
            sum(member.least for member in members),
            _RECORD + sum(_ENTRY + member.memory for member in members),
            max((member.rate for member in members), default=0),
        )
    named[type_["name"]] = found_type
    return found_type


def _one(least: float, memory: float, rate: float) -> Taken:
    return Taken(least, memory, rate, (_PLACE + memory) / least if least else _NEVER)


_PRIMITIVE = {
    "null": (0, 0, 0),
    "boolean": (1, 0, 0),
    "int": (1, _NUMBER, 0),
    "long": (1, _NUMBER, 0),
    "float": (4, _NUMBER, 0),
    "double": (8, _NUMBER, 0),
    "bytes": (1, _TEXT, 1),
    "string": (1, _TEXT, 4),
}
"""Fewest bytes, memory and rate of each primitive type. A text takes up to four bytes for each of its characters."""


def _decimal(data: Any, writer_schema: Any, reader_schema: Any = None) -> Any:
    if len(data) > _MOST_DECIMAL:
        raise ValueError("a decimal is too long")
    return LOGICAL_READERS[f"{writer_schema['type']}-decimal"](data, writer_schema, reader_schema)


for _type in ("bytes", "fixed"):
    LOGICAL_READERS[f"{_type}-{DECIMAL}"] = _decimal
