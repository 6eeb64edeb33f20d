"""Capture a table's changes as Debezium's PostgreSQL connector does, in lines of its envelope.

It follows Debezium's documentation of versions 1.9 and 2.7, in these points:

* the time is that of the commit, the order is the log's; the rows of the snapshot are read events, `op: r`, with the
  time of the transaction that read them;
* without REPLICA IDENTITY FULL an update has no `before`, and a delete's holds only the key: null in columns that may
  be null, and *invented* values (0, "", false) in those that may not;
* a changed key is a delete and a create at one place in the log; each delete is followed by a tombstone;
* values that the log does not hold (TOAST, untouched) are a placeholder, unless the old row has them.
"""

import base64
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg import sql

from tests.postgres.pgoutput import UNCHANGED, Begin, Change, Commit, Message, Parsed, Relation, Truncate, Value, parse

UNAVAILABLE = "__debezium_unavailable_value"
TOMBSTONE = "null"
KEY = "id"
"""The primary key's column. The log marks the replica identity as key, which may be all columns."""

Lines = dict[str, list[str]]
"""Lines of each table."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Form of the lines.

    Attributes:
        version: Version of Debezium; since 2.6 it also writes times in micro- and nanoseconds.
        schema: Whether a line holds the schema and the payload, or the payload alone.
    """

    version: str = "2.7.3.Final"
    schema: bool = False

    @property
    def fine(self) -> bool:
        return tuple(int(part) for part in self.version.split(".")[:2]) >= (2, 6)

    def line(self, event: dict[str, Any]) -> str:
        now = time.time_ns()
        event = {**event, "ts_ms": now // 1_000_000}
        if self.fine:
            event |= {"ts_us": now // 1000, "ts_ns": now}
        event |= {"transaction": None}
        # The schema has only its outer form, since no test reads it.
        schema = {"type": "struct", "optional": False, "name": "postgres.public.Envelope", "version": 1}
        return json.dumps({"schema": schema, "payload": event} if self.schema else event)

    def source(
        self, table: str, at: int, transaction: int, lsn: int, last: int | None, snapshot: str
    ) -> dict[str, Any]:
        """Return the source of an event.

        Args:
            table: Name of the table.
            at: Time of the commit, in microseconds since 1970.
            transaction: Number of the transaction.
            lsn: Position in the log.
            last: Position of the previous commit, if any.
            snapshot: Kind of snapshot, or `false`.
        """
        finer = {"ts_us": at, "ts_ns": at * 1000} if self.fine else {}
        return {
            "version": self.version,
            "connector": "postgresql",
            "name": "hospital",
            "ts_ms": at // 1000,
            "snapshot": snapshot,
            "db": "postgres",
            "sequence": json.dumps([None if last is None else str(last), str(lsn)]),
            **finer,
            "schema": "public",
            "table": table,
            "txId": transaction,
            "lsn": lsn,
            "xmin": None,
        }


def start(address: str, slot: str) -> tuple[psycopg.Connection, int, str]:
    """Create a slot, which keeps the log from its position on for `changes`.

    Returns:
        The connection, the slot's position, and the name of the tables' snapshot at this position, which is valid while
        the connection is open.
    """
    connection = psycopg.connect(f"{address} replication=database", autocommit=True)
    made = connection.execute(f"CREATE_REPLICATION_SLOT {slot} LOGICAL pgoutput EXPORT_SNAPSHOT").fetchone()
    assert made is not None
    return connection, to_number(made[1]), made[2]


def snapshot(address: str, tables: dict[str, Writer], *, name: str | None, lsn: int, kind: str = "true") -> Lines:
    """Return read events of all rows.

    Args:
        address: Connection string of the server.
        tables: Tables, with the writer of each.
        name: Snapshot to read; None reads the tables as they are now.
        lsn: Position in the log that the events state.
        kind: Kind of snapshot that the events state.
    """
    lines: Lines = {}
    with psycopg.connect(address) as connection:
        connection.execute("set transaction isolation level repeatable read")
        if name is not None:
            connection.execute(sql.SQL("set transaction snapshot {}").format(name))
        at, transaction = one(connection, "select current_timestamp, txid_current()")
        for table, writer in tables.items():
            columns = _columns(connection, table)
            texts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in columns)
            rows = connection.execute(sql.SQL("select {} from {} order by 1").format(texts, sql.Identifier(table)))
            source = writer.source(table, microseconds(at), transaction, lsn, None, kind)
            lines[table] = []
            for row in rows:
                after = {c: _json(v, type_) for (c, (type_, _)), v in zip(columns.items(), row, strict=True)}
                lines[table].append(writer.line({"before": None, "after": after, "source": source, "op": "r"}))
    return lines


def changes(connection: psycopg.Connection, slot: str, tables: dict[str, Writer], *, keep: bool = False) -> Lines:
    """Return the changes committed since the slot's position.

    Args:
        connection: A connection to the server.
        slot: Name of the slot.
        tables: Tables, with the writer of each.
        keep: Whether the slot stays at its position, so that a later call returns these changes again.
    """
    how = "peek" if keep else "get"
    told = connection.execute(
        f"""
        select lsn::text, data from pg_logical_slot_{how}_binary_changes(%s, null, null,
            'proto_version', '1', 'publication_names', 'everything', 'messages', 'true')
        """,
        [slot],
        binary=True,
    )
    lines: Lines = {table: [] for table in tables}
    relations: dict[int, Relation] = {}
    begin = Begin(0, 0)
    last: int | None = None
    kinds = {table: _columns(connection, table) for table in tables}
    for text, data in told.fetchall():
        lsn = to_number(text)
        match message := parse(data):
            case Begin():
                begin = message
            case Commit(at):
                last = at
            case Relation():
                relations[message.number] = message
        for table, event in _told(message, relations, kinds):
            source = tables[table].source(table, begin.time, begin.transaction, lsn, last, "false")
            lines[table].append(tables[table].line({**event, "source": source}))
            if event["op"] == "d":
                lines[table].append(TOMBSTONE)
    return lines


Kinds = dict[str, tuple[int, bool]]
"""Type number by column, and whether the column may be null."""


def _told(
    message: Parsed, relations: dict[int, Relation], kinds: dict[str, Kinds]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield tables and their events, without the source."""
    match message:
        case Change():
            relation = relations[message.relation]
            for event in _events(message, relation, kinds[relation.name]):
                yield relation.name, event
        case Truncate(emptied):
            for number in emptied:
                yield relations[number].name, {"before": None, "after": None, "op": "t"}
        case Message(prefix, content):  # they have a separate topic, but users often merge topics
            for table in kinds:
                yield table, {"op": "m", "message": {"prefix": prefix, "content": base64.b64encode(content).decode()}}


def _events(change: Change, relation: Relation, kinds: Kinds) -> Iterator[dict[str, Any]]:
    new = change.new
    if new is not None and change.old is not None and not change.key_only:
        new = tuple(o if n is UNCHANGED else n for o, n in zip(change.old, new, strict=True))
    before, after = _row(change.old, relation, kinds), _row(new, relation, kinds)
    if change.kind == "I":
        yield {"before": None, "after": after, "op": "c"}
    elif change.kind == "D":
        yield {"before": before, "after": None, "op": "d"}
    elif before is not None and after is not None and before[KEY] != after[KEY]:
        yield {"before": before, "after": None, "op": "d"}
        yield {"before": None, "after": after, "op": "c"}
    else:
        yield {"before": before, "after": after, "op": "u"}


def _row(values: Sequence[Value] | None, relation: Relation, kinds: Kinds) -> dict[str, Any] | None:
    if values is None:
        return None
    row = {}
    for column, value in zip(relation.columns, values, strict=True):
        type_, optional = kinds[column.name]
        row[column.name] = MADE_UP.get(type_, "") if value is None and not optional else _json(value, type_)
    return row


INTEGERS, FLOATS, BOOL, NUMERIC, TIMESTAMP, TIMESTAMPTZ = (20, 21, 23), (700, 701), 16, 1700, 1114, 1184
"""Numbers of types in pg_type."""

MADE_UP: dict[int, Any] = {**dict.fromkeys(INTEGERS, 0), **dict.fromkeys(FLOATS, 0.0), BOOL: False, NUMERIC: "0"}
MADE_UP[TIMESTAMP] = 0
"""Values that Debezium writes for missing values of columns that may not be null; texts are empty."""


def _json(value: Value, type_: int) -> Any:
    """Return a value as the connector writes it with decimal.handling.mode=string and defaults otherwise."""
    if value is None:
        return None
    if value is UNCHANGED:
        return UNAVAILABLE
    text = str(value)
    if type_ in INTEGERS:
        return int(text)
    if type_ in FLOATS:
        return float(text)
    if type_ == BOOL:
        return text in ("t", "true")
    if type_ == TIMESTAMP:
        return microseconds(datetime.fromisoformat(text).replace(tzinfo=UTC))
    if type_ == TIMESTAMPTZ:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return text


def _columns(connection: psycopg.Connection, table: str) -> Kinds:
    rows = connection.execute(
        """
        select attname, atttypid::int, not attnotnull from pg_attribute
        where attrelid = %s::regclass and attnum > 0 and not attisdropped order by attnum
        """,
        [table],
    )
    return {name: (type_, optional) for name, type_, optional in rows}


def one(connection: psycopg.Connection, query: str) -> Any:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row


def microseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def to_number(lsn: str) -> int:
    """Return a position in the log as a number.

    >>> to_number("1/16B3748")
    4318771016
    """
    high, low = lsn.split("/")
    return (int(high, 16) << 32) | int(low, 16)
