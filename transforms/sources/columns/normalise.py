"""Conversion of raw columns of a file to the normalised columns that all later steps read.

A raw table has the columns of the normalised one, under the same names, with the types of the file:

    entry           int64 or string; null only if `truncate` is true
    time            int64, microseconds since the epoch, UTC; never null; absent in snapshots
    until           int64, the end of an interval, null without an end; only in tables of intervals
                    (`transforms.common.intervals`)
    order.<i>       int64 or string, never null
    order.position  without before images: position of the row in the files, which orders remaining ties; and
    file            a digest of the file's path
    owner           int64 or string, null if the entry is null; only if the owner is a column of the mutation
    <side>          bool: whether the state exists; sides are `before` (if the files hold it) and `after`
    <side>.<col>    each needed column of the state as its kind (`transforms.common.kinds`); null without a state
    image.<side>    the digest of the whole state (`transforms.common.images`), of both sides, from readers that give it

A raw table may have a column `truncate`: such a row is a change of all entries, which deletes all of them. In the
normalised table it is a row without an entry.

Unusable rows become dead letters with the first reason that is found.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.batches import FILE, POSITION, ROW_BITS, Batch, dead_letters
from transforms.common.hashing import unit_hash
from transforms.common.images import IMAGE
from transforms.common.instants import Bad, to_microseconds
from transforms.common.intervals import EMPTY, REVERSED, UNTIL, empty_rows, reversed_rows
from transforms.common.kinds import decode, one_chunk, plain, to_key, to_kind, to_mask
from transforms.sources.columns.layout import DELETED, Layout


@dataclass(frozen=True, slots=True)
class Place:
    """File and its number in the sorted list of files."""

    file: str
    number: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """Rows of a file that are intentionally no changes: their number and kind."""

    reason: str
    rows: int


def normalise(
    raw: pa.Table, rows: np.ndarray, layout: Layout, place: Place, batch_rows: int
) -> Iterator[Batch | Skipped | pa.Table]:
    """Yield batches of the usable rows, tables of dead letters for the others, and counts of rows without a change.

    Args:
        raw: See the module's docstring; `order.position` and `file` are added here.
        rows: Number of each row in the file, int64 [rows], increasing.
        layout: How the files are read.
        place: The file.
        batch_rows: Most rows of a batch.
    """
    columns, bad = _columns(raw, layout)
    if layout.source.before is None:
        columns = _with_place(columns, place, rows)
    table = pa.table(columns)
    reason = np.zeros(len(rows), dtype=np.int16)
    for code, (positions, _) in enumerate(bad, 1):
        reason[positions[reason[positions] == 0]] = code
    if bad:
        for code, (_, text) in enumerate(bad, 1):
            found = np.flatnonzero(reason == code)
            if len(found):
                yield dead_letters(place.file, rows[found], text)
        table, rows = table.filter(pa.array(reason == 0)), rows[reason == 0]
    if layout.source.until is not None and (empty := empty_rows(table)).any():
        yield Skipped(EMPTY, int(empty.sum()))
        table, rows = table.filter(pa.array(~empty)), rows[~empty]
    for start in range(0, len(rows), batch_rows):
        part = rows[start : start + batch_rows]
        whole = part[-1] - part[0] == len(part) - 1
        yield Batch(place.file, int(part[0]), table.slice(start, batch_rows), None if whole else part)


def _columns(raw: pa.Table, layout: Layout) -> tuple[dict[str, pa.Array], Bad]:
    zone, deleted = layout.source.timezone, layout.source.deleted
    kinds = {"entry": layout.entry, "owner": layout.owner or "", DELETED: "string", **_orders(layout)}
    columns: dict[str, pa.Array] = {}
    bad: Bad = []
    for name, column in layout.roles.items():
        values, undecoded = decode(one_chunk(raw[name]))
        columns[name], wrong = (
            to_microseconds(plain(values), zone) if name in ("time", UNTIL) else to_key(values, kinds[name])
        )
        bad += _named(column, undecoded + wrong)
        if columns[name].null_count and name not in (UNTIL, DELETED):
            missing = to_mask(columns[name].is_null())
            if name in ("entry", "owner") and "truncate" in raw.column_names:
                missing &= ~to_mask(raw["truncate"])
            hint = "; every row must name it, a deletion too" if name == "owner" else ""
            bad += _named(column, [(np.flatnonzero(missing), f"{name} is null{hint}")])
    if layout.source.until is not None:
        bad += _named(layout.source.until, [(reversed_rows(columns["time"], columns[UNTIL]), REVERSED)])
    for side in layout.sides:
        exists = pa.repeat(True, raw.num_rows) if layout.rows_are_states else one_chunk(raw[side.side])
        if deleted is not None:
            exists = pc.and_not(exists, pc.is_in(columns.pop(DELETED), value_set=pa.array(deleted[1], pa.string())))
        columns[side.side] = exists
        for state, kind in layout.states:
            values = one_chunk(raw[f"{side.side}.{state}"])
            if state in layout.roles.values() or (deleted is not None and state != layout.source.owner):
                # Such a column has values without a state; the owner's shows whose entry a marked row deletes.
                values = pc.if_else(exists, values, pa.scalar(None, values.type))
            values, undecoded = decode(values)
            values, wrong = to_kind(values, kind, zone)
            bad += _named(side.path(state), undecoded + wrong)
            columns[f"{side.side}.{state}"] = values
        if (image := f"{IMAGE}.{side.side}") in raw.column_names:
            columns[image] = one_chunk(raw[image])
    return columns, bad


def _named(column: str, bad: Bad) -> Bad:
    return [(positions, f"column {column!r}: {reason}") for positions, reason in bad if len(positions)]


def _with_place(columns: dict[str, pa.Array], place: Place, rows: np.ndarray) -> dict[str, pa.Array]:
    first = {name: columns[name] for name in columns if name in ("entry", "time") or name.startswith("order.")}
    file = int(unit_hash(pa.array([place.file]))[0] >> np.uint64(32))
    position = pa.array((place.number << ROW_BITS) | rows)
    return {**first, POSITION: position, FILE: pa.repeat(pa.scalar(file, pa.uint32()), len(rows)), **columns}


def _orders(layout: Layout) -> dict[str, str]:
    return {f"order.{place}": kind for place, kind in enumerate(layout.order)}
