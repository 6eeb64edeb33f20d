"""Counts about a changelog for the data controller, before a release is made from it. They are exact, hence private.

    in    the Parquet files that pipelines.changelog.parquet_parts writes
    out   counts, for the data controller alone

DuckDB does it on disk, within a fixed amount of memory. States are compared by 64-bit hashes.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.changelog.parquet_parts import FILE, ROW, SIDES, TIME
from transforms.sources.files.opening import open_random

NOTICE = "exact facts about people, for the data controller only: NOT FOR RELEASE"

MEMORY = "1GB"

_ROWS = """
create table delivered as
select entry, {owner} as owner, {unowned} as unowned, ticks, {ordered} {states}, {file} as file, {row} as place
from batches
"""

_CHANGES = """
create table changes as
select entry, owner, ticks, {ordered} before, after from delivered where entry is not null group by all;

-- Numbered, so that two rows can be seen to have a truncate between them, after which nothing is there.
create table truncates as
select row(ticks, {ordered} 0) as moment, row_number() over (order by moment) as number
from (select distinct ticks, {ordered} from delivered where entry is null);
"""

# Changes of one entry, time and order are one group: their order is unknown. Few entries have such groups.
_GROUPS = """
create table tied as
select distinct entry from (select entry from changes group by {ordered} entry, ticks having count(*) > 1);

create table groups as
with grouped as (
    select entry, ticks, {ordered} [before] as before, [after] as after from changes anti join tied using (entry)
    union all
    select entry, ticks, {ordered} list(before), list(after) from changes semi join tied using (entry) group by all
), numbered as (
    select grouped.*, coalesce(number, 0) as emptied
    from grouped asof left join truncates on row(ticks, {ordered} 0) >= moment
)
select before, after, lag(emptied, 1, 0) over chain < emptied as again, lag(after) over chain as earlier,
    if(again, [0::ubigint], earlier) as known
from numbered window chain as (partition by entry order by ticks, {ordered} emptied)
"""

# A state that no other change of the group leads to.
_LOOSE = "not (len(after) > 1 and list_contains(after, state))"
_OPENED = f"len(list_filter(before, lambda state: state > 0 and {_LOOSE})) > 0"

_COUNTS = """
select
    (select count(distinct entry) from changes) as entries,
    (select count(*) from changes) as mutations,
    (select count(*) from delivered where entry is not null) - (select count(*) from changes) as duplicates,
    (select coalesce(sum(len(list_filter(before, lambda state: not list_contains(known, state) and {loose}))), 0)
        from groups where known is not null)::bigint as gaps,
    (select count(*) from groups where known is null and {there}) as entries_there_before,
    (select count(*) from changes where after = 0) as deletions,
    (select count(*) from groups where earlier is not null and list_max(known) = 0 and list_max(after) > 0)
        as insertions_again,
    (select count(*) from truncates) as truncates,
    (select count(*) from delivered where entry is not null and unowned) as rows_without_owner,
    (select count(*) from (
        select row(ticks, {ordered} 0) < max(row(ticks, {ordered} 0)) over (partition by entry order by file, place
            rows between unbounded preceding and 1 preceding) as late from delivered where entry is not null
    ) where late) as out_of_order,
    (select min(ticks) from delivered) as first_time,
    (select max(ticks) from delivered) as last_time
"""


def check(paths: list[str], *, owner: str | None, of_states: str | None = None, folder: str) -> dict[str, Any]:
    """Return the counts.

    Args:
        paths: Paths of the files, at least one.
        owner: Name of the owner's column, if the files have one.
        of_states: Column of the states that names the owner; a row without an owner on both sides is unusable.
        folder: Folder for temporary files; if it is remote, the system's folder for temporary files is used.
    """
    schema = _schema(paths[0])
    orders = [name for name in schema.names if name.startswith("order_")]
    before = "before" in schema.names
    states = [f"if({side} is null, 0::ubigint, hash({side})) as {side}" for side in SIDES if side in schema.names]
    named = [f"{side}.{_quoted(of_states)} is null" for side in SIDES if side in schema.names and of_states is not None]
    names = {
        "unowned": " and ".join(named) or "false",
        "owner": "null" if owner is None else _quoted(owner),
        "states": ", ".join(states if before else ["0::ubigint as before", *states]),
        "loose": _LOOSE,
        "file": FILE,
        "row": ROW,
        "ordered": "".join(f"{name}, " for name in orders),
        "there": _OPENED if before else "list_max(after) = 0",
    }
    with TemporaryDirectory(prefix="check-", dir=None if "://" in folder else folder) as work:
        database = duckdb.connect(str(Path(work) / "check.duckdb"))
        try:
            database.execute(f"set memory_limit = '{MEMORY}'; set temp_directory = {_text(work)}")
            database.execute("set preserve_insertion_order = false")
            batches = pa.RecordBatchReader.from_batches(_ints(schema), _batches(paths))
            database.register("batches", batches)
            for step in (_ROWS, _CHANGES, _GROUPS):
                database.execute(step.format(**names))
            counted = database.execute(_COUNTS.format(**names))
            values = counted.fetchone()
            assert values is not None
            found = dict(zip((column[0] for column in counted.description or ()), values, strict=True))
        finally:
            database.close()
    if not before:
        found["gaps"] = None
    if of_states is None:
        del found["rows_without_owner"]
    return {**found, "first_time": _time(found["first_time"]), "last_time": _time(found["last_time"])}


def check_text(found: dict[str, Any]) -> str:
    """Return the counts as a table of two columns."""
    shown = {name: _shown(value) for name, value in found.items()}
    width = max(map(len, shown.values()))
    return "\n".join(f"  {name.replace('_', ' '):<22} {value:>{width}}" for name, value in shown.items())


def _shown(value: Any) -> str:
    return "not known" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _schema(path: str) -> pa.Schema:
    with open_random(path) as stream:
        return pq.read_schema(stream)


def _batches(paths: list[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with open_random(path) as stream:
            for batch in pq.ParquetFile(stream).iter_batches(65_536):
                times = batch[TIME].cast(pa.int64())
                yield batch.set_column(batch.schema.get_field_index(TIME), "ticks", times)


def _ints(schema: pa.Schema) -> pa.Schema:
    return schema.set(schema.get_field_index(TIME), pa.field("ticks", pa.int64())).remove_metadata()


def _time(ticks: int) -> str:
    """Return a time as text, for all years that 64 bits hold, unlike Python's times."""
    return f"{np.datetime64(ticks, 'us')}Z"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
