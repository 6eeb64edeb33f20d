"""Datastream's Avro for the fuzz tests: a writer, and a plain reader for records of its schema."""

import copy
import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from random import Random
from typing import Any

import fastavro

from tests.fuzz.values import DEAD, position

_STATE = {
    "id": ["null", "long"],
    "ward": ["null", "string"],
    "cost": ["null", "double"],
    "n": ["null", "long"],
    "ok": ["null", "boolean"],
    "seen": ["null", {"type": "long", "logicalType": "timestamp-micros"}],
}
_METADATA = {"change_type": ["null", "string"], "is_deleted": ["null", "boolean"]}


def _record(name: str, members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": member, "type": type_} for member, type_ in members.items()],
    }


_EVENT = _record(
    "event",
    {
        "source_timestamp": {"type": "long", "logicalType": "timestamp-millis"},
        "sort_keys": {"type": "array", "items": ["string", "long"]},
        "source_metadata": ["null", _record("metadata", _METADATA)],
        "payload": ["null", _record("payload", _STATE)],
    },
)
SCHEMA = fastavro.parse_schema(_EVENT)


def write(records: list[dict[str, Any]], **options: Any) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, records, **options)
    return out.getvalue()


def write_with(place: tuple[str, ...], type_: Any, value: Any, record: dict[str, Any]) -> bytes:
    """Return a file with a record in which a member has another type and value.

    Args:
        place: Names of the members that lead to it.
        type_: Its type.
        value: Its value.
        record: Record of our schema, with all other members.
    """
    schema = copy.deepcopy(_EVENT)
    record = {name: dict(held) if isinstance(held, dict) else held for name, held in record.items()}
    fields, holder = schema["fields"], record
    for name in place[:-1]:
        fields = next(field for field in fields if field["name"] == name)["type"][1]["fields"]
        holder = holder[name]
    next(field for field in fields if field["name"] == place[-1])["type"] = type_
    holder[place[-1]] = value
    out = io.BytesIO()
    fastavro.writer(out, schema, [record])
    return out.getvalue()


def is_ours(data: bytes) -> bool:
    """Return whether a file can be read with our schema alone, so that each value has one meaning."""
    found = fastavro.reader(io.BytesIO(data)).writer_schema
    return fastavro.schema.to_parsing_canonical_form(found) == _CANONICAL and found == _READ_BACK


def reading(record: Any) -> Any:
    """Return the expected result of a record of our schema."""
    metadata, payload = record["source_metadata"], record["payload"]
    if metadata is None or payload is None or payload["id"] is None:
        return DEAD
    change = metadata["change_type"] and metadata["change_type"].upper()
    if change not in (None, "INSERT", "UPDATE", "UPDATE-INSERT", "DELETE", "UPDATE-DELETE"):
        return DEAD
    exists = not metadata["is_deleted"] and change not in ("DELETE", "UPDATE-DELETE")
    state = {name: payload[name] if exists else None for name in _STATE if name != "id"}
    if exists and state["seen"] is not None:
        state["seen"] = _micros(state["seen"])
    order = " ".join([" ".join(position(key) for key in record["sort_keys"]), "1" if exists else "0"])
    return {
        "entry": payload["id"],
        "time": _micros(record["source_timestamp"]),
        "order.0": order,
        "after": exists,
    } | {f"after.{name}": value for name, value in state.items()}


def _micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


_READ_BACK = fastavro.reader(io.BytesIO(write([]))).writer_schema
_CANONICAL = fastavro.schema.to_parsing_canonical_form(_READ_BACK)


def odd_file(choose: Random) -> bytes:
    """Return a valid Avro file with other members, of other types, than an event has."""
    members = {name: choose.choice(_ODD) for name in _STATE if choose.random() < 0.97}
    kept = {name: (type_, 1 if name == "id" else None) for name, type_ in _STATE.items()}
    payload = {name: members[name] if choose.random() < 0.3 else kept[name] for name in members}
    parts = {
        "source_timestamp": ({"type": "long", "logicalType": "timestamp-millis"}, 5),
        "sort_keys": ({"type": "array", "items": ["string", "long"]}, [1, "a"]),
        "source_metadata": (_record("metadata", _METADATA), {"change_type": "INSERT", "is_deleted": None}),
        "payload": (_named(payload), {name: value for name, (_, value) in payload.items()}),
    }
    name = choose.choice(list(parts))
    changed = choose.random()
    if changed < 0.4:
        parts[name] = choose.choice(_ODD)
    elif changed < 0.5:
        del parts[name]
    schema = _record("event", {name: type_ for name, (type_, _) in parts.items()})
    record = {name: value for name, (_, value) in parts.items()}
    out = io.BytesIO()
    fastavro.writer(out, _distinct(schema), [record] * choose.randint(0, 3), codec=choose.choice(["null", "deflate"]))
    return out.getvalue()


def _named(members: dict[str, Any]) -> dict[str, Any]:
    return _record("payload", {name: type_ for name, (type_, _) in members.items()})


def _distinct(schema: Any) -> Any:
    """Give named types a different name at each place."""
    numbers = count()

    def copy(type_: Any) -> Any:
        if isinstance(type_, list):
            return [copy(inner) for inner in type_]
        if not isinstance(type_, dict):
            return type_
        inner = {
            key: copy(value) if key in ("type", "items", "values", "fields") else value for key, value in type_.items()
        }
        return inner | (
            {"name": f"{type_['name']}{next(numbers)}"} if type_["type"] in ("enum", "fixed", "record") else {}
        )

    return copy(schema)


_ODD: list[tuple[Any, Any]] = [
    ("null", None),
    ("boolean", True),
    ("int", -5),
    ("long", 2**62),
    ("float", float("nan")),
    ("double", 1e300),
    ("bytes", b"\xff\0"),
    ("string", ""),
    ("string", "2013-02-08T12:00:00Z"),
    ({"type": "enum", "name": "e", "symbols": ["A", "INSERT"]}, "A"),
    ({"type": "fixed", "name": "f", "size": 2}, b"ab"),
    ({"type": "array", "items": ["null", "long"]}, [None, 3]),
    ({"type": "array", "items": {"type": "array", "items": "bytes"}}, [[b"\xff"]]),
    ({"type": "map", "values": "long"}, {"a": 1}),
    (_record("r", {"value": ["null", "string"]}), {"value": "x"}),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("1.25")),
    ({"type": "string", "logicalType": "decimal"}, "many"),
    ({"type": "string", "logicalType": "date"}, "today"),
    ({"type": "boolean", "logicalType": "timestamp-millis"}, True),
    ({"type": "int", "logicalType": "date"}, 10**6),
    ({"type": "int", "logicalType": "time-millis"}, 5),
    ({"type": "long", "logicalType": "timestamp-micros"}, 2**55),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, -5),
    ({"type": "string", "logicalType": "uuid"}, "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    (["null", "long", "string"], "x"),
    (["null"], None),
    (["null", "boolean"], False),
]
"""Types with a value of each."""
