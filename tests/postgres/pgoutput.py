"""Parser for messages of PostgreSQL's logical decoding plugin pgoutput, protocol version 1.

PostgreSQL's manual describes the layout in "Logical Replication Message Formats".
"""

import struct
from dataclasses import dataclass

UNCHANGED = object()
"""Marks a value that is stored out of line and that the update did not change: it is not in the log."""

Value = object
"""None, UNCHANGED, or the value as text."""

EPOCH = 946_684_800_000_000
"""2000-01-01, the origin of PostgreSQL's times, in microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction's first message. `time` is the time of its commit, in microseconds since 1970."""

    time: int
    transaction: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction's last message. `lsn` is the commit's position in the log."""

    lsn: int


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation. `key` states whether it is part of the replica identity."""

    name: str
    type: int
    key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table; this message precedes the table's first change."""

    number: int
    schema: str
    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """An insert `I`, update `U` or delete `D`.

    Attributes:
        old: Old row, or None if the log has none; if `key_only`, all values except the key are null.
        new: New row, or None for a delete.
    """

    kind: str
    relation: int
    old: tuple[Value, ...] | None
    key_only: bool
    new: tuple[Value, ...] | None


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables that were emptied at once."""

    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A message that pg_logical_emit_message wrote."""

    prefix: str
    content: bytes


Parsed = Begin | Commit | Relation | Change | Truncate | Message | None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, form: str) -> int:
        value: int = struct.unpack_from(f"!{form}", self._data, self._at)[0]
        self._at += struct.calcsize(f"!{form}")
        return value

    def byte(self) -> str:
        return chr(self.number("B"))

    def bytes(self, length: int) -> bytes:
        self._at += length
        return self._data[self._at - length : self._at]

    def text(self) -> str:
        value = self.bytes(self._data.index(0, self._at) - self._at).decode()
        self._at += 1
        return value

    def row(self) -> tuple[Value, ...]:
        return tuple(self._value() for _ in range(self.number("H")))

    def _value(self) -> Value:
        kind = self.byte()
        if kind == "t":
            return self.bytes(self.number("i")).decode()
        return {"n": None, "u": UNCHANGED}[kind]


def parse(data: bytes) -> Parsed:
    """Return one message, or None for messages that do not concern rows (types, origins)."""
    reader = _Reader(data)
    kind = reader.byte()
    match kind:
        case "B":
            reader.number("q")  # position of the commit
            return Begin(reader.number("q") + EPOCH, reader.number("I"))
        case "C":
            reader.number("B")
            return Commit(reader.number("q"))
        case "R":
            number, schema, name = reader.number("I"), reader.text(), reader.text()
            reader.byte()  # the replica identity, which each change also states
            return Relation(number, schema, name, tuple(_column(reader) for _ in range(reader.number("H"))))
        case "I" | "U" | "D":
            relation = reader.number("I")
            side = reader.byte()
            old = reader.row() if side in "KO" else None
            if kind == "U" and old is not None:
                reader.byte()  # N, for the new row
            new = reader.row() if kind != "D" else None
            return Change(kind, relation, old, side == "K", new)
        case "T":
            count = reader.number("I")
            reader.number("B")  # CASCADE, RESTART IDENTITY
            return Truncate(tuple(reader.number("I") for _ in range(count)))
        case "M":
            reader.number("B")  # whether it is part of a transaction
            reader.number("q")  # position in the log
            return Message(reader.text(), reader.bytes(reader.number("I")))
        case "Y" | "O":
            return None
    raise ValueError(f"no message of protocol version 1 begins with {kind!r}")


def _column(reader: _Reader) -> Column:
    flags, name, type_ = reader.number("B"), reader.text(), reader.number("I")
    reader.number("i")  # the type's modifier
    return Column(name, type_, bool(flags & 1))
