"""A copy of a spec that reads a synthetic changelog from new folders, and the files of that changelog."""

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from ruamel.yaml import YAML

from pipelines.audit.synthetic import EXISTS, Mutation, Pools, State, columns_of
from pipelines.spec.document import read_document
from pipelines.spec.load import Spec, load
from pipelines.spec.times import moment_text, now

_KEPT = ("csv", "jsonl", "parquet", "debezium")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OPS = {(False, True): "c", (True, True): "u", (True, False): "d", (False, False): "d"}
_ARROW = {"number": pa.float64(), "whole": pa.int64(), "bool": pa.bool_(), "text": pa.string()}

USUAL = 60
"""Number of windows of a schedule without an end that are over in the copy."""


def copy_of(spec: Spec, folder: Path) -> Spec:
    """Write a copy of a spec with a synthetic changelog under `folder`, and return it.

    Queries, privacy and windows are as in the spec. The schedule is moved back so that its windows are over. Formats
    that hold whole tables, stays or other envelopes become JSON lines of changes. A column of the entry or of its owner
    that queries read too becomes two columns: so every unit can be in every cell, which the plan allows for.
    """
    content = read_document(spec.path).content
    content["release"] = f"audit-of-{spec.release}"[:100]
    content["changelog"] = _changelog(spec, content["changelog"], folder)
    if (owner := spec.privacy.owner) is not None:
        content["privacy"]["unit"] = _unread(spec, owner)
    output = content["output"]
    content["output"] = {"public": f"{folder}/public", "private": f"{folder}/private"}
    content["output"] |= {"format": output["format"]} if "format" in output else {}
    schedule = spec.schedule
    if schedule.calendar is None:
        end = schedule.start + (schedule.windows or USUAL) * schedule.every
        back = max(0, -(-(end - now()) // schedule.every)) * schedule.every
        for key, moment in (("start", schedule.start), ("until", schedule.until)):
            if back and moment is not None:
                content["schedule"][key] = moment_text(moment - back)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "spec.yaml").open("w", encoding="utf-8") as file:
        YAML(pure=True).dump(content, file)
    return load(folder / "spec.yaml")


def _changelog(spec: Spec, section: dict[str, Any], folder: Path) -> dict[str, Any]:
    source = spec.changelog.source
    plain = source.until is None and source.every is None and source.format in _KEPT
    made: dict[str, Any] = {"format": source.format if plain else "jsonl"}
    made |= {"path": f"{folder}/data/*.{'jsonl' if made['format'] == 'debezium' else made['format']}"}
    made |= {"entry": _unread(spec, source.entry)} | ({"order": [*source.order]} if source.order and plain else {})
    if made["format"] == "debezium":
        return made
    made["time"] = source.time if plain and source.time is not None else "audit_time"
    if source.expires is not None:
        made["expires"] = section["expires"]
    elif source.before is not None or not plain:
        word = "struct" if made["format"] == "jsonl" else "prefix"
        made |= {"before": {word: "before_"}, "after": {word: "after_"}}
    if source.owner is not None and made["format"] == "jsonl" and "before" in made:
        made["owner"] = owner_place(spec)
    return made


def _unread(spec: Spec, column: str) -> str:
    """Return a name for the column of the entry or of its owner that no query reads."""
    return f"audit_{column}" if column in columns_of(spec) else column


def owner_place(spec: Spec) -> str:
    """Return whether owners are columns of `states` or of the `mutation` in the copy."""
    source = spec.changelog.source
    plain = source.format in ("csv", "jsonl", "parquet")
    return "mutation" if plain and ("owner", "states") not in source.forms else "states"


def write(spec: Spec, columns: Pools, rows: Sequence[Mutation], path: Path) -> None:
    """Write rows as one file of the copy's format.

    Args:
        spec: The copy.
        columns: Columns of the states.
        rows: The rows, in the order of the file.
        path: The file.
    """
    source = spec.changelog.source
    in_states = owner_place(spec) == "states" and source.owner is not None
    rows = [_with_owner(row, source.owner) if in_states and source.owner else row for row in rows]
    if source.format != "parquet":
        times = [name for name, column in columns.items() if column.kind == "time"]
        rows = [_with_times(row, times) for row in rows] if times else rows
    names = [EXISTS, *columns, *([source.owner] if in_states and source.owner and source.owner not in columns else [])]
    if source.format == "debezium":
        path.write_text("".join(_debezium(row, source.entry, names) for row in rows), encoding="utf-8")
    elif source.format == "jsonl":
        path.write_text("".join(_json(row, spec, names) for row in rows), encoding="utf-8")
    else:
        (_csv if source.format == "csv" else _parquet)(spec, columns, rows, names, path)


def _with_owner(row: Mutation, owner: str) -> Mutation:
    before, after = (None if state is None else {owner: row.owner, **state} for state in (row.before, row.after))
    return replace(row, before=before, after=after, owner=None)


def _with_times(row: Mutation, times: Sequence[str]) -> Mutation:
    """Return the row with times as texts."""
    sides = [
        state and {n: _time(v) if n in times and v is not None else v for n, v in state.items()}
        for state in (row.before, row.after)
    ]
    return replace(row, before=sides[0], after=sides[1])


def _keys(row: Mutation, spec: Spec) -> dict[str, Any]:
    source = spec.changelog.source
    keys: dict[str, Any] = {source.entry: row.entry, source.time or "": _time(row.time)}
    keys |= dict.fromkeys(source.order, row.order)
    return keys | ({source.owner: row.owner} if source.owner is not None and row.owner is not None else {})


def _json(row: Mutation, spec: Spec, names: Sequence[str]) -> str:
    source = spec.changelog.source
    line = _keys(row, spec)
    if source.before is None:
        line |= {name: _plain(value) for name, value in _state(row.after, names).items()}
    else:
        for side, state in (("before_", row.before), ("after_", row.after)):
            line[side] = None if state is None else {n: _plain(v) for n, v in _state(state, names).items()}
    return json.dumps(line) + "\n"


def _debezium(row: Mutation, entry: str, names: Sequence[str]) -> str:
    sides = []
    for state in (row.before, row.after):
        whole = {entry: row.entry, **{n: _plain(v) for n, v in _state(state, names).items()}}
        sides.append(None if state is None else whole)
    op = "t" if row.entry is None else _OPS[(row.before is not None, row.after is not None)]
    if op == "d" and sides[0] is None:
        sides[0] = {entry: row.entry}
    told = {"connector": "postgresql", "ts_ms": row.time // 1000, "ts_us": row.time, "lsn": row.order}
    return json.dumps({"op": op, "before": sides[0], "after": sides[1], "source": told}) + "\n"


def _csv(spec: Spec, columns: Pools, rows: Sequence[Mutation], names: Sequence[str], path: Path) -> None:
    sides = _sides(spec)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    keys = [*_keys(Mutation("", 0, 0, owner=""), spec)]
    if rows and rows[0].owner is None:
        keys = [*_keys(Mutation("", 0, 0), spec)]
    writer.writerow([*keys, *(prefix + name for prefix, _ in sides for name in names)])
    for row in rows:
        cells = [*_keys(row, spec).values()]
        for _, side in sides:
            state = row.after if side else row.before
            cells += ["" if v is None else _text(v) for v in _state(state, names).values()]
        writer.writerow(cells)
    path.write_text(out.getvalue(), encoding="utf-8")


def _parquet(spec: Spec, columns: Pools, rows: Sequence[Mutation], names: Sequence[str], path: Path) -> None:
    source = spec.changelog.source
    table: dict[str, pa.Array] = {
        source.entry: pa.array([row.entry for row in rows], pa.string()),
        source.time or "": pa.array([row.time for row in rows], pa.timestamp("us", "UTC")),
        **{name: pa.array([row.order for row in rows], pa.int64()) for name in source.order},
    }
    if source.owner is not None and source.owner not in names:
        table[source.owner] = pa.array([row.owner for row in rows], pa.string())
    for prefix, side in _sides(spec):
        states = [_state(row.after if side else row.before, names) for row in rows]
        for name in names:
            kind = columns[name].kind if name in columns else "text"
            arrow = pa.timestamp("us", "UTC") if kind == "time" else _ARROW[kind]
            values = [state[name] for state in states]
            table[prefix + name] = pa.array(
                [float(v) if kind == "number" and v is not None else v for v in values], arrow
            )
    pq.write_table(pa.table(table), path)


def _sides(spec: Spec) -> list[tuple[str, int]]:
    return [("", 1)] if spec.changelog.source.before is None else [("before_", 0), ("after_", 1)]


def _state(state: State, names: Sequence[str]) -> dict[str, Any]:
    if state is None:
        return dict.fromkeys(names)
    return {name: "1" if name == EXISTS else state.get(name) for name in names}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: without infinities, which are numbers that are too large."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else math.copysign(1e308, value)
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def _time(time: int) -> str:
    return (_EPOCH + timedelta(microseconds=time)).isoformat(timespec="microseconds")
