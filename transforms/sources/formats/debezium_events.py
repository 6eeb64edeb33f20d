"""Debezium's change events, one a line: {before, after, source, op, ts_ms}, bare or as the `payload` next to a schema.

The meaning of an event, by `op`:

    c, u, r   a change to `after`, with `before` if the event has it
    d         a deletion of the entry that `before` names
    t         a truncate: one change of all entries
    m         skipped, like tombstones, heartbeats, transaction and schema events; counted by kind

* Event time is `source.ts_ns`, `ts_us` or `ts_ms`, the finest that the event has, or the one that the spec names. If
  a row read by a snapshot has none (or 0, in old versions), it is the time of reading: `ts_ms` of the event itself.
* Events of one time are ordered by their positions in the database's log, as the source states them (`_LOG`). Each
  connector fills a fixed part of these fields, so that one text of all of them sorts as the log does.
* Without REPLICA IDENTITY FULL, PostgreSQL's `before` is null in updates and holds only the key in deletes, with blanks
  (0, empty text, false) in columns that cannot be null. A deletion whose `before` is null or blank in all needed
  columns except the key does not describe the state before, so it opens no entry; if the unit is an owner, such a
  deletion cannot be charged to anyone and is a dead letter.
* An unchanged value that PostgreSQL stores out of line is not in the log: Debezium writes a placeholder, and the event
  is a dead letter if the column is needed.
"""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.images import IMAGE, digest
from transforms.common.instants import convert_each
from transforms.common.kinds import NUMERIC, any_valid, to_key
from transforms.sources.columns.layout import Layout
from transforms.sources.formats.envelopes import (
    TEXT,
    Columns,
    FieldPath,
    Fields,
    Unwrapped,
    Verdicts,
    sortable,
    state_fields,
    under,
    where,
)
from transforms.sources.formats.json_columns import load
from transforms.sources.formats.json_members import texts
from transforms.sources.formats.json_text import lines_of

LOG_POSITION = "position"
"""Name of the order of changes in the source: their positions in the database's log."""

FINEST = "source.ts"
"""Name of the finest of the source's times that an event has."""

UNAVAILABLE = "__debezium_unavailable_value"
"""Placeholder for an unchanged value that is not in the log, unless the connector is configured with another one."""

UNITS = ("ts_ns", "ts_us", "ts_ms")
_LOG = (
    *("commit_lsn", "change_lsn", "event_serial_no"),  # SQL Server, Db2, Informix
    *("file", "pos", "row"),  # MySQL, MariaDB
    *("scn", "rs_id", "ssn"),  # Oracle
    "lsn",  # PostgreSQL
    "sequence",  # PostgreSQL, if the position itself was left out: ["of the last commit", "of the event"]
)
_SOURCE: Fields = {("source", name): TEXT for name in (*UNITS, *_LOG)}
_EVENT: Fields = {("op",): TEXT, **{(unit,): TEXT for unit in UNITS}, **_SOURCE}
_WRAPPED = ("payload",)
_ZERO = r"^-?0+(\.0*)?([eE][+-]?[0-9]+)?$"
_ZERO_IN_QUOTES = re.compile(rb'"(-?0[^"]*|false)"|\\u00')  # or in another form

NO_EVENT = "no Debezium change event: it has no op; flattened by ExtractNewRecordState? then it is format: jsonl"
NO_OP = "no Debezium change event: its op is not one of c, u, r, d, t and m"
NO_AFTER = "an event with op c, u or r has no `after`"
AFTER_DELETE = "an event with op d has an `after`"
NO_KEY = "a deletion without `before` does not name its entry: give the table a primary key or REPLICA IDENTITY FULL"
OTHER_KEY = "an update changes the column that changelog.entry names; choose one that stays, such as the primary key"
NO_TIME = "the event has no time of the source (ts_ms, ts_us or ts_ns)"
ODD_TIME = "a time of the event (ts_ms, ts_us or ts_ns) is no whole number"
OUT_OF_RANGE = "the event's time is out of range of 64-bit microseconds"
NOT_IN_LOG = "is needed, but unchanged and so not in the log: set REPLICA IDENTITY FULL for the table"

TOMBSTONE = "tombstone"
MESSAGE = "logical decoding message"
HEARTBEAT = "heartbeat"
TRANSACTION = "transaction boundary"
SCHEMA_CHANGE = "schema change"


def fields(layout: Layout) -> Fields:
    """Return the fields to read of each event, bare or wrapped."""
    own = {_path(name): TEXT for name in layout.source.order if name != LOG_POSITION}
    event = state_fields(layout, ("before",)) | state_fields(layout, ("after",)) | _EVENT | own
    return event | under(_WRAPPED, event)


def unwrap(columns: Columns, layout: Layout) -> Unwrapped:
    """Return the raw table of the events, and rows that are no changes."""
    event = _Event(columns)
    verdicts = Verdicts(columns.rows)
    _without_op(event, columns, verdicts)
    after, before = (_holds(event, layout, side) for side in ("after", "before"))
    op = event.values(("op",))
    change, delete, truncate, message = (
        where(pc.is_in(op, value_set=pa.array(list(ops)))) for ops in ("cur", "d", "t", "m")
    )
    verdicts.skip(message, MESSAGE)
    verdicts.dead(~(change | delete | truncate), NO_OP)
    verdicts.dead(change & ~after, NO_AFTER)
    verdicts.dead(delete & after, AFTER_DELETE)
    verdicts.dead(delete & ~before, NO_KEY)
    before &= ~truncate
    after &= ~truncate

    entry = _entry(event, layout, before, after, verdicts)
    raw = {"entry": pc.if_else(pa.array(truncate), pa.scalar(None, entry.type), entry)}
    raw["time"] = _time(event, layout.source.time or FINEST, verdicts)
    raw |= _orders(event, layout)
    states = {"before": before & ~_key_only(event, layout, delete & before), "after": after}
    for side, exists in states.items():
        raw[side] = pa.array(exists)
        for column, _ in layout.states:
            values = event.values((side, column))
            verdicts.dead(exists & where(pc.equal(values, UNAVAILABLE)), f"column {column!r} {NOT_IN_LOG}")
            raw[f"{side}.{column}"] = pc.if_else(pa.array(exists), values, pa.scalar(None, values.type))
        raw[f"{IMAGE}.{side}"] = digest([("object", event.whole(side))], exists)
    raw["truncate"] = pa.array(truncate)
    return Unwrapped(pa.table(raw), verdicts)


class _Event:
    """Access to the bare or the wrapped event of each row."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._wrapped = columns.exists[_WRAPPED]

    def values(self, path: FieldPath) -> pa.Array:
        bare, wrapped = self._columns.values[path], self._columns.values[_WRAPPED + path]
        if not self._wrapped.any():
            return bare
        if self._wrapped.all():
            return wrapped
        return pc.if_else(pa.array(self._wrapped), wrapped, bare)

    def exists(self, path: FieldPath) -> np.ndarray:
        return np.where(self._wrapped, self._columns.exists[_WRAPPED + path], self._columns.exists[path])

    def whole(self, side: str) -> pa.Array:
        """Return the objects of a side as texts."""
        lines, bare, wrapped = lines_of(self._columns.lines), (side,), (*_WRAPPED, side)
        if not self._wrapped.any() or self._wrapped.all():
            return texts(lines, [wrapped if self._wrapped.any() else bare])[0]
        found = texts(lines, [bare, wrapped])
        return pc.if_else(pa.array(self._wrapped), found[1], found[0])

    def line(self, row: int) -> bytes:
        return self._columns.line(row)

    def record(self, row: int) -> dict[str, Any]:
        """Return the event of a row as Python objects."""
        record: dict[str, Any] = load(self.line(row))
        return record["payload"] if self._wrapped[row] else record


def _without_op(event: _Event, columns: Columns, verdicts: Verdicts) -> None:
    """Add verdicts for events of other kinds; each is examined alone, since there are few of them."""
    found: dict[tuple[str, bool], list[int]] = {}
    for row in np.flatnonzero(where(event.values(("op",)).is_null())).tolist():
        found.setdefault(_kind(load(columns.line(row))), []).append(row)
    for (reason, skipped), rows in sorted(found.items()):
        mask = np.zeros(columns.rows, dtype=bool)
        mask[rows] = True
        (verdicts.skip if skipped else verdicts.dead)(mask, reason)


def _kind(record: dict[str, Any]) -> tuple[str, bool]:
    """Return the kind of a record without an op, and whether it may be skipped."""
    if "payload" in record and record.keys() <= {"schema", "payload"}:
        if record["payload"] is None:
            return TOMBSTONE, True
        record = record["payload"]
    if record and record.keys() <= set(UNITS):
        return HEARTBEAT, True
    if {"status", "id", "event_count", "data_collections"} <= record.keys():
        return TRANSACTION, True
    if {"source", "ddl", "tableChanges"} <= record.keys():
        return SCHEMA_CHANGE, True
    return NO_EVENT, False


def _holds(event: _Event, layout: Layout, side: str) -> np.ndarray:
    """Return whether each row has a state: an object in which a member is not null, bool [rows]."""
    exists = event.exists((side,))
    needed = {layout.source.entry, *(column for column, _ in layout.states)}
    unclear = exists & ~any_valid([event.values((side, column)) for column in needed], len(exists))
    for row in np.flatnonzero(unclear).tolist():
        exists[row] = any(value is not None for value in event.record(row)[side].values())
    return exists


def _entry(event: _Event, layout: Layout, before: np.ndarray, after: np.ndarray, verdicts: Verdicts) -> pa.Array:
    name = layout.source.entry
    old, new = event.values(("before", name)), event.values(("after", name))
    differ = where(pc.not_equal(old, new))
    verdicts.dead(before & after & differ, OTHER_KEY)
    return pc.if_else(pa.array(after), new, old)


def _time(event: _Event, named: str, verdicts: Verdicts) -> pa.Array:
    """Return the time of the source; for rows that a snapshot read without one, that of the event itself."""
    units = UNITS if named == FINEST else (named.removeprefix("source."),)
    source, wrong, odd = _finest([(unit, event.values(("source", unit))) for unit in units])
    own, wrong_own, odd_own = _finest([(unit, event.values((unit,))) for unit in UNITS])
    read = where(pc.equal(event.values(("op",)), "r")) & where(source.is_null())
    verdicts.dead(odd | (odd_own & read), ODD_TIME)
    verdicts.dead(wrong | (wrong_own & read), OUT_OF_RANGE)
    time = pc.if_else(pa.array(read), own, source)
    verdicts.dead(where(time.is_null()), NO_TIME)
    return time.cast(pa.timestamp("us", "UTC"))


def _finest(units: list[tuple[str, pa.Array]]) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """Return microseconds by the first unit that exists and is not 0; rows out of range; rows without a number."""
    found = pa.nulls(len(units[0][1]), pa.int64())
    wrong, odd = np.zeros(len(found), dtype=bool), np.zeros(len(found), dtype=bool)
    for unit, given in units:
        values, unread = to_key(given, "int64")
        for rows, _ in unread:
            odd[rows] = True
        values = pc.if_else(pc.equal(values, 0), None, values)
        if values.null_count == len(values):
            continue
        ticks, bad = _microseconds(values, unit)
        wrong[bad] |= where(found.is_null())[bad]
        found = pc.coalesce(found, ticks)
    return found, wrong, odd


def _microseconds(values: pa.Array, unit: str) -> tuple[pa.Array, np.ndarray]:
    if unit == "ts_ms":
        return convert_each(values, lambda part: pc.multiply_checked(part, 1000))
    if unit == "ts_ns":
        mask = where(values.is_null())
        values = pa.array(np.floor_divide(values.fill_null(0).to_numpy(zero_copy_only=False), 1000), mask=mask)
    return values, np.zeros(0, dtype=np.int64)


def _orders(event: _Event, layout: Layout) -> dict[str, pa.Array]:
    if layout.source.order != (LOG_POSITION,):
        return {f"order.{place}": event.values(_path(name)) for place, name in enumerate(layout.source.order)}
    log = {name: event.values(("source", name)) for name in _LOG}
    sequence = log.pop("sequence")
    if log["lsn"].null_count and sequence.null_count < len(sequence):
        last = pc.extract_regex(sequence, r'"(?P<lsn>[0-9]+)"\]$').field("lsn")
        log["lsn"] = pc.coalesce(log["lsn"], last)
    parts = [sortable(values) if values.null_count < len(values) else pa.scalar("") for values in log.values()]
    key = pc.binary_join_element_wise(*parts, " ")
    return {"order.0": pa.array([key.as_py()] * len(sequence)) if isinstance(key, pa.Scalar) else key}


def _key_only(event: _Event, layout: Layout, rows: np.ndarray) -> np.ndarray:
    """Return the rows whose `before` holds only the key: a needed column besides it exists, and all of them are blank.

    If the log holds only the key, Debezium fills columns that cannot be null with 0, an empty text or false. In a
    column of numbers each zero is blank; in other columns a text "0" or "false" is not.
    """
    needed = {column: kind for column, kind in layout.states if column != layout.source.entry}
    unknown = rows.copy() if needed else np.zeros(len(rows), dtype=bool)
    unclear = np.zeros(len(rows), dtype=bool)
    for column, kind in needed.items():
        if not unknown.any():
            return unknown
        values = event.values(("before", column))
        zero = where(pc.or_(pc.match_substring_regex(values, _ZERO), pc.equal(values, "false")))
        unknown &= where(pc.or_kleene(pc.is_null(values), pc.equal(values, ""))) | zero
        unclear |= zero if kind not in (*NUMERIC, "bool") else False
    for row in np.flatnonzero(unknown & unclear).tolist():
        if _ZERO_IN_QUOTES.search(event.line(row)):
            state = event.record(row)["before"]
            texts = [state.get(column) for column, kind in needed.items() if kind not in (*NUMERIC, "bool")]
            unknown[row] = not any(isinstance(text, str) and text for text in texts)
    return unknown


def _path(name: str) -> FieldPath:
    return tuple(name.split("."))
