"""Changelogs read line by line in plain Python, without the readers' code: {row number: result}.

The result of a row is DEAD, SKIPPED, or its normalised values.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.values import (
    DEAD,
    UNAVAILABLE,
    Members,
    Number,
    instant,
    load,
    of_json,
    of_text,
    position,
    text_of,
    whole,
)

SKIPPED = object()
"""Result of a valid row that is not a change."""

Reading = dict[int, Any]

STATES = {"cost": "float64", "n": "int64", "ok": "bool", "seen": "timestamp", "ward": "string"}
NUMBERS = ("cost", "n")
DEEPEST = 500

_UNITS = {"ts_ns": (1, 1000), "ts_us": (1, 1), "ts_ms": (1000, 1)}
_LOG = (
    ("commit_lsn", "change_lsn", "event_serial_no", "file", "pos", "row", "scn", "rs_id", "ssn", "lsn", "sequence")
)  # fmt: skip


def lines(data: bytes, read: Callable[[bytes], Any]) -> Reading:
    """Return the result of `read` for each line that is not blank."""
    found: Reading = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r"):
            found[number] = DEAD if _depth(line) > DEEPEST else read(line)
    return found


def flat(line: bytes) -> Any:
    """Read JSON lines with `before_` and `after_` before the columns of states."""
    row = load(line)
    if row is None:
        return DEAD
    members = {"id": "string", "at": "timestamp", "seq": "int64"}
    members |= {f"{side}_{name}": kind for side in ("before", "after") for name, kind in STATES.items()}
    if row.twice & members.keys():
        return DEAD
    found = _keys(of_json(row.get("id"), "string"), _text_time(row.get("at")), of_json(row.get("seq"), "int64"))
    for side in ("before", "after"):
        found[side] = any(value is not None for name, value in row.items() if name.startswith(f"{side}_"))
        for name, kind in STATES.items():
            found[f"{side}.{name}"] = of_json(row.get(f"{side}_{name}"), kind, zone="UTC")
    return _settled(found)


def objects(line: bytes) -> Any:
    """Read JSON lines with an object for each state."""
    row = load(line)
    if row is None or row.twice & {"id", "at", "before", "after"}:
        return DEAD
    found = _keys(of_json(row.get("id"), "string"), _text_time(row.get("at")))
    for side in ("before", "after"):
        state = row.get(side)
        if not isinstance(state, Members | None) or (state and state.twice & STATES.keys()):
            return DEAD
        found |= _state(side, state)
    return _settled(found)


def debezium(line: bytes) -> Any:
    if line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r") == b"null":
        return SKIPPED
    row = load(line)
    if row is None or row.twice & {"payload"} or not isinstance(row.get("payload"), Members | None):
        return DEAD
    payload = row.get("payload")
    if not _formed(row) or not (payload is None or _formed(payload)):
        return DEAD
    event = row if payload is None else payload
    op = text_of(event.get("op"))
    if op is None:
        return _without_op(row)
    if op == "m":
        return SKIPPED
    before, after, source = _some(event.get("before")), _some(event.get("after")), event.get("source") or Members([])
    truncate = op == "t"
    if op not in "curdt" or len(op) != 1 or (op in "cur" and after is None):
        return DEAD
    if op == "d" and (after is not None or before is None):
        return DEAD
    if truncate:
        before = after = None
    keys = [None if state is None else text_of(state.get("id")) for state in (before, after)]
    if None not in keys and keys[0] != keys[1]:
        return DEAD
    entry = None if truncate else keys[after is not None]
    time = _source_time(source)
    if time is None and op == "r":
        time = _source_time(event)
    if op == "d" and all(_blank(before.get(name), kind) for name, kind in STATES.items()):
        before = None
    if any(state and state.get(name) == UNAVAILABLE for state in (before, after) for name in STATES):
        return DEAD
    found = _keys(entry, time) | _state("before", before) | _state("after", after)
    log = {name: text_of(source.get(name)) for name in _LOG}
    sequence = log.pop("sequence")
    if log["lsn"] is None and sequence is not None:
        log["lsn"] = _last(sequence)
    order = {"order.0": " ".join(map(position, log.values()))}
    return _settled(found | order, truncate=truncate)


def datastream(line: bytes) -> Any:
    row = load(line)
    if row is None or row.twice & {"payload", "source_metadata", "source_timestamp", "sort_keys"}:
        return DEAD
    metadata, payload, keys = row.get("source_metadata"), row.get("payload"), row.get("sort_keys")
    if not isinstance(metadata, Members) or not isinstance(payload, Members) or not isinstance(keys, list):
        return DEAD
    if metadata.twice & {"change_type", "is_deleted"} or payload.twice & {"id", *STATES}:
        return DEAD
    change, deleted = of_json(metadata.get("change_type"), "string"), of_json(metadata.get("is_deleted"), "bool")
    entry, texts = text_of(payload.get("id")), [text_of(key) for key in keys]
    if DEAD in (change, deleted, entry, *texts) or any(text_of(payload.get(name)) is DEAD for name in STATES):
        return DEAD
    change = change and change.upper()
    if change not in (None, "INSERT", "UPDATE", "UPDATE-INSERT", "DELETE", "UPDATE-DELETE"):
        return DEAD
    exists = not deleted and change not in ("DELETE", "UPDATE-DELETE")
    at = text_of(row.get("source_timestamp"))
    if at is None or at is DEAD:
        return DEAD
    if re.fullmatch("-?[0-9]+", at):
        ticks = whole(at)
        time = DEAD if ticks is DEAD or abs(ticks * 1000) >= 2**63 else ticks * 1000
    else:
        time = instant(at, "UTC")
    order = " ".join(map(position, texts)) + (" 1" if exists else " 0")
    return _settled(_keys(entry, time, order) | _state("after", payload if exists else None))


def csv(data: bytes) -> tuple[Reading, bool]:
    """Read CSV with `before_` and `after_` before the columns of states; return also whether it ends within quotes."""
    cells, open_ = _csv_cells(data.removeprefix(b"\xef\xbb\xbf"))
    header = next(cells, [])
    names = [(cell or b"").decode("utf-8", "surrogateescape") for cell in header]
    found: Reading = {}
    for number, row in enumerate(cells, 1):
        found[number] = _csv_row(dict(zip(names, row, strict=True))) if len(row) == len(names) else DEAD
    if found and open_():
        found[len(found)] = DEAD
    return found, open_()


def _csv_row(row: dict[str, bytes | None]) -> Any:
    def cell(name: str, kind: str, zone: str | None = None) -> Any:
        value = row[name]
        if value is not None and b"\x1a" in value:
            return DEAD
        try:
            return None if value is None else of_text(value.decode(), kind, zone)
        except UnicodeDecodeError:
            return DEAD

    found = _keys(cell("id", "string"), cell("at", "timestamp"), cell("seq", "int64"))
    for side in ("before", "after"):
        found[side] = any(value is not None for name, value in row.items() if name.startswith(f"{side}_"))
        found |= {f"{side}.{name}": cell(f"{side}_{name}", kind, "UTC") for name, kind in STATES.items()}
    return _settled(found)


def _csv_cells(data: bytes) -> tuple[Iterator[list[bytes | None]], Callable[[], bool]]:
    """Return rows of cells without blank lines; None is an empty cell without quotes."""
    rows: list[list[bytes | None]] = []
    row: list[bytes | None] = []
    cell, quoted, within, begun, place = bytearray(), False, False, False, 0
    while place < len(data):
        byte = data[place : place + 1]
        place += 1
        if within:
            if byte != b'"':
                cell += byte
            elif data[place : place + 1] == b'"':
                cell, place = cell + b'"', place + 1
            else:
                within = False
        elif byte == b'"' and not begun:
            quoted = within = begun = True
        elif byte in (b"\n", b"\r", b","):
            if byte == b"," or row or begun:
                row.append(bytes(cell) if cell or quoted else None)
            cell, quoted, begun = bytearray(), False, False
            if byte != b",":
                rows += [row] if row else []
                row = []
        else:
            cell, begun = cell + byte, True
    if row or begun:
        rows.append([*row, bytes(cell) if cell or quoted else None])
    return iter(rows), lambda: within


def _depth(line: bytes) -> int:
    depth = most = 0
    for byte in line:
        depth += (byte in b"{[") - (byte in b"}]")
        most = max(most, depth)
    return most


def _keys(entry: Any, time: Any, *order: Any) -> dict[str, Any]:
    return {"entry": entry, "time": time} | {f"order.{place}": value for place, value in enumerate(order)}


def _settled(found: dict[str, Any], *, truncate: bool = False) -> Any:
    needed = [value for name, value in found.items() if name == "time" or name.startswith("order.")]
    missing = None in needed or (found["entry"] is None and not truncate)
    return DEAD if missing or any(value is DEAD for value in found.values()) else found


def _state(side: str, state: Members | None) -> dict[str, Any]:
    values = {
        name: None if state is None else of_json(state.get(name), kind, zone="UTC") for name, kind in STATES.items()
    }
    return {side: _some(state) is not None} | {f"{side}.{name}": value for name, value in values.items()}


def _some(state: Members | None) -> Members | None:
    """Return a state in which a member is not null."""
    return state if state and any(value is not None for value in state.values()) else None


def _text_time(value: Any) -> Any:
    return instant(value, None) if isinstance(value, str) else DEAD


def _formed(event: Members) -> bool:
    """Return whether there are values and objects where a Debezium event needs them, bare or wrapped."""
    parts = {name: event.get(name) for name in ("before", "after", "source")}
    if event.twice & {"op", *_UNITS, *parts} or not all(isinstance(part, Members | None) for part in parts.values()):
        return False
    needed: dict[str, Any] = {"before": {"id", *STATES}, "after": {"id", *STATES}, "source": {*_UNITS, *_LOG}}
    found = [event.get(name) for name in ("op", *_UNITS)]
    for part, names in needed.items():
        state = parts[part] or Members([])
        if state.twice & names:
            return False
        found += [state.get(name) for name in names]
    return not any(text_of(value) is DEAD for value in found)


def _without_op(row: Members) -> Any:
    event: Any = row
    if "payload" in row and row.keys() <= {"schema", "payload"}:
        event = row["payload"]
    heartbeat = event and event.keys() <= _UNITS.keys()
    transaction = event is not None and {"status", "id", "event_count", "data_collections"} <= event.keys()
    schema = event is not None and {"source", "ddl", "tableChanges"} <= event.keys()
    return SKIPPED if event is None or heartbeat or transaction or schema else DEAD


def _source_time(members: Members) -> Any:
    told = {unit: of_json(members.get(unit), "int64") for unit in _UNITS}
    if DEAD in told.values():
        return DEAD
    for unit, (times, over) in _UNITS.items():
        if ticks := told[unit]:
            found = ticks * times // over
            return found if -(2**63) <= found < 2**63 else DEAD
    return None


def _blank(value: Any, kind: str) -> bool:
    if isinstance(value, str) and kind in ("int64", "float64", "bool"):
        return value == "" or re.fullmatch(r"-?0+(\.0*)?([eE][+-]?[0-9]+)?|false", value) is not None
    if isinstance(value, Number):
        return float(value) == 0
    return value is None or value is False or value == ""


def _last(sequence: str) -> str | None:
    digits = sequence.removesuffix('"]').rpartition('"')[2]
    return digits if sequence.endswith(f'"{digits}"]') and digits.isascii() and digits.isdigit() else None
