"""Google Datastream's events: metadata and a `payload` that is a whole row.

The meaning of an event, by `source_metadata`:

    is_deleted, or change_type DELETE or UPDATE-DELETE     a deletion of the payload's entry
    INSERT, UPDATE, UPDATE-INSERT, or missing (backfill)   the payload is the entry's state from then on

* There is no state before: an entry that no event names before its first change did not exist before it. The owner is
  that of the payload, even in deletions.
* Event time is `source_timestamp`, in UTC: ISO 8601, or milliseconds since the epoch.
* Events of one time are ordered by `sort_keys`: for MySQL time, file and position in the binary log; for Oracle time,
  SCN, and place in the redo log; for PostgreSQL and SQL Server time and log position. If one change comes as a
  deletion and an insertion, the deletion comes first. Keys that are neither texts nor integers sort as texts.
* Delivery is at least once: repeated events (one `uuid`) are equal in all columns that are read, and such a change
  counts once (transforms.aggregation.chains). So the uuid is not read.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.instants import convert_each, to_microseconds
from transforms.common.kinds import to_key, to_kind
from transforms.sources.columns.layout import Layout
from transforms.sources.formats.envelopes import (
    TEXT,
    TEXTS,
    Columns,
    Fields,
    Unwrapped,
    Verdicts,
    sortable,
    state_fields,
    where,
)

_TIME = ("source_timestamp",)
KEYS = ("sort_keys",)
_CHANGE, _DELETED = ("source_metadata", "change_type"), ("source_metadata", "is_deleted")
_EVENT: Fields = {_TIME: TEXT, KEYS: TEXTS, _CHANGE: TEXT, _DELETED: TEXT}
_DIGITS = "^-?[0-9]+$"
_DELETIONS = ("DELETE", "UPDATE-DELETE")
_STATES = ("INSERT", "UPDATE", "UPDATE-INSERT")

NO_EVENT = "no Datastream event: it has no source_metadata"
NO_PAYLOAD = "the event has no payload"
NO_CHANGE = f"change_type is not one of {', '.join((*_STATES, *_DELETIONS))}"
NO_TIME = "the event has no source_timestamp"
OUT_OF_RANGE = "source_timestamp is out of range of 64-bit microseconds"
NO_ORDER = "the event has no sort_keys"


def fields(layout: Layout) -> Fields:
    """Return the fields to read of each event."""
    owner = layout.source.owner if layout.owner is not None else None
    of_mutation: Fields = {} if owner is None else {("payload", owner): TEXT}
    return state_fields(layout, ("payload",)) | of_mutation | _EVENT


def unwrap(columns: Columns, layout: Layout) -> Unwrapped:
    """Return the raw table of the events, and rows that are no changes."""
    verdicts = Verdicts(columns.rows)
    verdicts.dead(~columns.exists["source_metadata",], NO_EVENT)
    verdicts.dead(~columns.exists["payload",], NO_PAYLOAD)
    verdicts.dead(where(columns.values[KEYS].is_null()), NO_ORDER)
    change = pc.utf8_upper(columns.values[_CHANGE])
    verdicts.dead(where(pc.is_valid(change)) & ~_is_in(change, _DELETIONS + _STATES), NO_CHANGE)
    deleted, bad = to_kind(columns.values[_DELETED], "bool")
    verdicts.dead_at(bad, "is_deleted")
    exists = ~(where(deleted) | _is_in(change, _DELETIONS))

    raw = {"entry": columns.values["payload", layout.source.entry]}
    raw["time"] = _time(columns.values[_TIME], verdicts)
    raw["order.0"] = _order(columns.values[KEYS], exists)
    if layout.owner is not None and layout.source.owner is not None:
        raw["owner"] = columns.values["payload", layout.source.owner]
    raw["after"] = pa.array(exists)
    for column, _ in layout.states:
        values = columns.values["payload", column]
        raw[f"after.{column}"] = pc.if_else(raw["after"], values, pa.scalar(None, values.type))
    return Unwrapped(pa.table(raw), verdicts)


def _time(values: pa.Array, verdicts: Verdicts) -> pa.Array:
    """Convert times; lines have texts, in which digits alone are milliseconds."""
    verdicts.dead(where(values.is_null()), NO_TIME)
    if pa.types.is_timestamp(values.type):
        ticks, bad = to_microseconds(values, "UTC")
    else:
        texts = values.cast(TEXT)
        is_number = pc.match_substring_regex(texts, _DIGITS)
        ticks, bad = to_microseconds(pc.if_else(is_number, None, texts), "UTC")
        if pc.any(is_number).as_py():
            numbers, beyond = to_key(pc.if_else(is_number, texts, None), "int64")
            milliseconds, found = convert_each(numbers, lambda part: pc.multiply_checked(part, 1000))
            verdicts.dead_at([(np.concatenate([found, *(rows for rows, _ in beyond)]), OUT_OF_RANGE)])
            ticks = pc.coalesce(ticks, milliseconds)
    verdicts.dead_at(bad, "source_timestamp")
    return ticks.cast(pa.timestamp("us", "UTC"))


def _order(keys: pa.Array, exists: np.ndarray) -> pa.Array:
    """Return one text that sorts as the keys do, deletions first."""
    parts = sortable(keys.flatten())
    lengths = pc.fill_null(pc.list_value_length(keys), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, parts), " ")
    return pc.binary_join_element_wise(joined, pc.if_else(pa.array(exists), "1", "0"), " ")


def _is_in(values: pa.Array, words: tuple[str, ...]) -> np.ndarray:
    return where(pc.is_in(values, value_set=pa.array(words)))
