"""Files of each format from rows: the text of a row in a file depends on that row alone."""

import io
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fates.rows import KINDS, Row, chooser
from tests.transforms.events import T0, event, wrapped

MEMBERS = (*KINDS, "note")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_ODD_TOKENS = ("{}", "[]", '[1,"x",null]', '{"a":{"b":1}}', "NaN", "-Infinity", "1e400", "-0", "1.50", "true", "null")
_ODD_TOKENS += ('"\\ud83d\\ude00"', '"\\u0061"', "1.2.3", "tru", '"\\ud800"', "18446744073709551616", '"1"', '""')
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Token = str
State = dict[str, str | None] | None


def csv(rows: Sequence[Row], path: Path, choose: Random, *, before: bool = True, quoted: bool = False) -> list[int]:
    """Write the file, and return the number of each row in it."""
    sides = [("before_", 0), ("after_", 1)] if before else [("", 1)]
    header = ["id", "at", "seq", "owner", *(f"{prefix}{name}" for prefix, _ in sides for name in MEMBERS)]
    lines = [",".join(header)]
    for row in rows:
        pick = chooser(row)
        cells = [f"e{row.entry}", row.at, str(row.order), row.owner]
        cells += [(row.states[side] or {}).get(name) for _, side in sides for name in MEMBERS]
        if row.garbage is not None:
            cells = cells[: pick.randint(1, len(cells) - 1)] if pick.random() < 0.5 else [*cells, "more"]
        lines.append(",".join(_cell(cell, pick, quoted=quoted) for cell in cells))
    end = choose.choice(["\n", "\n", "\r\n"])
    _write(path, end.join([*lines, *([""] if choose.random() < 0.8 else [])]).encode())
    return list(range(1, len(rows) + 1))


def _cell(text: str | None, pick: Random, *, quoted: bool) -> str:
    if not quoted and (text is None or (pick.random() < 0.8 and not set(text) & set('",\n\r'))):
        return text or ""
    return '"' + (text or "").replace('"', '""') + '"'


def json_flat(rows: Sequence[Row], path: Path, choose: Random, *, before: bool = True) -> list[int]:
    def line(row: Row, pick: Random) -> Token:
        members = _keys(row, pick)
        for prefix, side in (("before_", 0), ("after_", 1)) if before else (("", 1),):
            members += [(prefix + name, token) for name, token in _members(row.states[side] or {}, pick)]
        return _object(members)

    return _json_lines(rows, path, line)


def json_structs(rows: Sequence[Row], path: Path, choose: Random) -> list[int]:
    def line(row: Row, pick: Random) -> Token:
        sides = zip(("before", "after"), row.states, strict=True)
        return _object([*_keys(row, pick), *((name, _state(state, pick)) for name, state in sides)])

    return _json_lines(rows, path, line)


def debezium(rows: Sequence[Row], path: Path, choose: Random) -> list[int]:
    def line(row: Row, pick: Random) -> Token:
        before, after = row.states
        op = ("u" if before else pick.choice("cr")) if after else "d" if before else pick.choice("tmd")
        source = (
            {"lsn": row.order, "ts_us": (T0 + row.order) * 1000}
            if pick.random() < 0.5
            else {"pos": row.order, "row": 0}
        )
        told = event(op, None, None, **source)
        for name, state in (("before", before), ("after", after)):
            key = json.dumps(row.entry) if pick.random() < 0.8 else json.dumps(str(row.entry))
            if state is not None and name == "before" and op == "d" and pick.random() < 0.5:
                kinds = {"n": "0", "x": "0", "ok": "false"}
                odd = ["0", '""', "false", "null", '"0"'] if pick.random() < 0.2 else []
                blanks = [(column, pick.choice([kinds.get(column, '""'), "null", *odd])) for column in MEMBERS]
                told[name] = _Raw(_object([("id", key), *blanks]))
            elif state is not None:
                told[name] = _Raw(_object([("id", key), *_members(state, pick)]))
        return _dumps(wrapped(told) if pick.random() < 0.4 else told)

    return _json_lines(rows, path, line)


def datastream(rows: Sequence[Row], path: Path, choose: Random) -> list[int]:
    def line(row: Row, pick: Random) -> Token:
        before, after = row.states
        change = pick.choice(["INSERT", "UPDATE", None]) if after else "DELETE"
        keys = pick.choice(([5, f"0/{row.order}"], [row.order], ["binlog.000009", row.order]))
        told = {
            "source_timestamp": T0 + row.order if pick.random() < 0.5 else row.at,
            "sort_keys": keys,
            "source_metadata": {"change_type": change, "is_deleted": not after},
            "payload": _Raw(_object([("id", str(row.entry)), *_members(after or before or {}, pick)])),
        }
        return _dumps(told)

    return _json_lines(rows, path, line)


def avro(rows: Sequence[Row], path: Path, choose: Random) -> list[int]:
    records = [_record(row) for row in rows]
    out = io.BytesIO()
    fastavro.writer(out, _SCHEMA, records, sync_interval=choose.choice([1, 200, 16000]))
    path.write_bytes(out.getvalue())
    return list(range(1, len(rows) + 1))


def parquet(rows: Sequence[Row], path: Path, choose: Random, *, structs: bool = False) -> list[int]:
    states = [[_typed_state(row.states[side]) for row in rows] for side in (0, 1)]
    columns: dict[str, Any] = {
        "id": pa.array([f"e{row.entry}" for row in rows], pa.string()),
        "at": pa.array([_micros(row.at) for row in rows], pa.timestamp("us", "UTC")),
        "seq": pa.array([row.order for row in rows], pa.int32()),
        "owner": pa.array([row.owner for row in rows], pa.string()),
    }
    for name, of_side in zip(("before", "after"), states, strict=True):
        if structs:
            columns[name] = pa.array(of_side, pa.struct(list(_TYPES.items())))
        else:
            for column, type_ in _TYPES.items():
                columns[f"{name}_{column}"] = pa.array([(state or {}).get(column) for state in of_side], type_)
    group = choose.choice([2, 100, 100])
    pq.write_table(pa.table(columns), path, row_group_size=group, use_dictionary=choose.random() < 0.5)
    return list(range(1, len(rows) + 1))


_TYPES = {
    **{"n": pa.int64(), "ok": pa.bool_(), "seen": pa.timestamp("ns", "UTC"), "u": pa.string(), "w": pa.string()},
    **{"x": pa.float64(), "note": pa.string()},
}
_NAMES = {"n": "long", "ok": "boolean", "u": "string", "w": "string", "x": "double", "note": "string"}
_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "event",
        "fields": [
            {"name": "source_timestamp", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
            {"name": "sort_keys", "type": {"type": "array", "items": ["string", "long"]}},
            {
                "name": "source_metadata",
                "type": {
                    "type": "record",
                    "name": "metadata",
                    "fields": [
                        {"name": "change_type", "type": ["null", "string"]},
                        {"name": "is_deleted", "type": ["null", "boolean"]},
                    ],
                },
            },
            {
                "name": "payload",
                "type": {
                    "type": "record",
                    "name": "payload",
                    "fields": [
                        {"name": "id", "type": ["null", "long"]},
                        {"name": "seen", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
                        *({"name": name, "type": ["null", type_]} for name, type_ in _NAMES.items()),
                    ],
                },
            },
        ],
    }
)


def _record(row: Row) -> dict[str, Any]:
    pick = chooser(row)
    before, after = row.states
    state = {name: value for name, value in (_typed_state(after or before or {}) or {}).items() if value is not None}
    if "seen" in state:
        state["seen"] = _EPOCH + timedelta(microseconds=state["seen"] // 1000)
    at = _micros(row.at)
    return {
        "source_timestamp": None if at is None else _EPOCH + timedelta(microseconds=at),
        "sort_keys": [row.order] if pick.random() < 0.5 else ["binlog.000009", row.order],
        "source_metadata": {"change_type": "odd" if row.garbage else None, "is_deleted": after is None},
        "payload": {"id": None if row.garbage and pick.random() < 0.5 else row.entry, **state},
    }


def _typed_state(state: State) -> dict[str, Any] | None:
    """Return a state of typed formats: a text that is not a value of its column's type is null."""
    readers: dict[str, Callable[[str], Any]] = {
        "n": lambda text: int(text) if -(2**63) <= int(text) < 2**63 else None,
        "ok": lambda text: {"true": True, "false": False}[text],
        "seen": lambda text: (_micros(text) or 0) * 1000 if _micros(text) and abs(_micros(text) or 0) < 2**53 else None,
        "x": float,
    }
    if state is None:
        return None
    found: dict[str, Any] = {}
    for name, text in state.items():
        try:
            found[name] = None if text is None else readers.get(name, str)(text)
        except (ValueError, KeyError):
            found[name] = None
    return found


def _micros(text: str | None) -> int | None:
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (at.replace(tzinfo=at.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1)


class _Raw:
    """Text of JSON that is written unchanged."""

    def __init__(self, text: str) -> None:
        self.text = text


def _dumps(value: Any) -> Token:
    raws: list[str] = []

    def mark(raw: Any) -> str:
        raws.append(raw.text)
        return f"\0{len(raws) - 1}\0"

    text = json.dumps(value, default=mark)
    return re.sub(r'"\\u0000(\d+)\\u0000"', lambda found: raws[int(found[1])], text)


def _keys(row: Row, pick: Random) -> list[tuple[str, Token]]:
    entry = json.dumps(row.entry if pick.random() < 0.2 else f"e{row.entry}")
    return [("id", entry), ("at", json.dumps(row.at)), ("seq", str(row.order)), ("owner", json.dumps(row.owner))]


def _members(state: dict[str, str | None], pick: Random) -> list[tuple[str, Token]]:
    return [(name, _token(name, text, pick)) for name, text in state.items()]


def _state(state: State, pick: Random) -> Token:
    return "null" if state is None else _object(_members(state, pick))


def _token(name: str, text: str | None, pick: Random) -> Token:
    if pick.random() < 0.02:
        return pick.choice(_ODD_TOKENS)
    if text is None:
        return "null"
    bare = _NUMBER.fullmatch(text) if name in ("n", "x") else text in ("true", "false") and name == "ok"
    if bare and pick.random() < 0.9:
        return text
    if name == "w" and _NUMBER.fullmatch(text) and pick.random() < 0.5:
        return text  # a text that is written as a number
    return json.dumps(text, ensure_ascii=pick.random() < 0.5)


def _object(members: list[tuple[str, Token]]) -> Token:
    return "{" + ", ".join(f'"{name}": {token}' for name, token in members) + "}"


def _json_lines(rows: Sequence[Row], path: Path, line: Callable[[Row, Random], Token]) -> list[int]:
    lines = [line(row, chooser(row)) if row.garbage is None else row.garbage for row in rows]
    _write(path, "\n".join([*lines, ""]).encode("utf-8", "surrogatepass"))
    return list(range(1, len(rows) + 1))


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data if path.suffix != ".gz" else __import__("gzip").compress(data, 1))
