"""Valid files of each format, from which mutations start."""

import json
from datetime import UTC, datetime
from typing import Any

from tests.fuzz import avro
from tests.transforms.events import FIXTURES, T0, event, wrapped

_AT = "2013-02-08T12:00:00Z"
_SEEN = "2013-02-01 08:30:00.5"


def _state(entry: Any, **changes: Any) -> dict[str, Any]:
    return {"id": entry, "ward": "a", "cost": 1.5, "n": 3, "ok": True, "seen": _SEEN, "note": "n"} | changes


def _lines(*found: Any) -> bytes:
    return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in found).encode()


def _prefixed(before: dict[str, Any] | None, after: dict[str, Any] | None) -> dict[str, Any]:
    sides = {"before": before or {}, "after": after or {}}
    return {f"{side}_{name}": value for side, state in sides.items() for name, value in state.items() if name != "id"}


_FLAT = [
    {"id": "a", "at": _AT, "seq": 1} | _prefixed(_state("a"), _state("a", cost=2, ward="b")),
    {"id": "a", "at": "2013-02-08T07:00:00.123456789-05:00", "seq": 2} | _prefixed(_state("a"), None),
    {"id": "", "at": _AT, "seq": -3} | _prefixed(None, _state("", ward=None, cost=-0.0, n=-(2**63), ok=False)),
    {"id": "c", "at": _AT, "seq": 4, "after_note": 5, "other": "x"},
]
_OBJECTS = [
    {"id": "a", "at": _AT, "before": None, "after": _state("a")},
    {"id": "a", "at": _AT, "before": _state("a", cost=1e300), "after": {"ward": "é😀", "note": "\\"}},
    {"id": "b", "at": _AT, "before": {}, "after": None},
]
_DEBEZIUM = [
    event("c", None, _state(1)),
    event("u", _state(1), _state(1, ward="b", cost="2.50", n="7"), ts_us=T0 * 1000 + 7, ts_ns=T0 * 10**6 + 7999),
    event("u", None, _state(2, ward="__debezium_unavailable_value"), lsn=101),
    event("r", None, _state(3), ts_ms=0, snapshot="true"),
    event("d", _state(1), None, lsn=None, sequence='["24023119","24023128"]'),
    event("d", {"id": 5, "ward": "", "cost": 0, "n": 0, "ok": False, "seen": None}, None),
    event("t", None, None),
    event("m"),
    "null",
    wrapped(None),
    wrapped(event("c", None, _state(9), file="binlog.000009", pos=4, row=0)),
    {"ts_ms": T0},
    {"status": "BEGIN", "id": "1", "event_count": None, "data_collections": None, "ts_ms": T0},
    {"source": {}, "ddl": "create", "tableChanges": []},
]


def _datastream(entry: Any, change: str | None, keys: list[Any], at: Any = _AT, **changes: Any) -> dict[str, Any]:
    return {
        "uuid": f"u-{entry}",
        "source_timestamp": at,
        "sort_keys": keys,
        "source_metadata": {"table": "stays", "change_type": change, "is_deleted": change == "DELETE"},
        "payload": _state(entry, **changes),
    }


_DATASTREAM = [
    _datastream(1, "INSERT", [5, "9/FFFFFFFF"]),
    _datastream(1, "UPDATE-DELETE", [5, "mysql-bin.000009", 90], cost="1.25"),
    _datastream(2, None, [], at="2025-11-05T18:23:31.393000", n="12"),
    _datastream(3, "DELETE", [5, 99, " 0x0a.00ff ", None], at=T0),
]
_AVRO = [
    {
        "source_timestamp": datetime(2025, 11, 5, 18, 23, 31, 393000, tzinfo=UTC),
        "sort_keys": keys,
        "source_metadata": metadata,
        "payload": payload and payload | {"seen": datetime(2013, 2, 1, tzinfo=UTC)},
    }
    for keys, metadata, payload in (
        ([5, "0/1"], {"change_type": "INSERT", "is_deleted": False}, _state(1)),
        ([5, "mysql-bin.000010"], {"change_type": "delete", "is_deleted": None}, _state(1, ward=None, cost=None)),
        ([], {"change_type": None, "is_deleted": True}, _state(2)),
        ([7], None, _state(2)),
        ([8], {"change_type": None, "is_deleted": None}, None),
    )
]
_MEMBERS = ("ward", "cost", "n", "ok", "seen")
_HEADER = ",".join(
    ["id", "at", "seq", *(f"{side}_{name}" for side in ("before", "after") for name in _MEMBERS), "after_note"]
)
_CSV = f"""{_HEADER}
a,{_AT},1,,,,,,"one, ""two""
three",1.5,3,true,{_SEEN},
"b",2013-02-08 07:00:00-05,2,p,-0,-0,false,2013-02-01,,,,,,n
c,{_AT},3,,,,,,,,,,,""

d,{_AT},4,x
,{_AT},5,,,,,,,,,,,
e,{_AT},0x1F,a,1e400,007,1,,b,nan,+5,0,,
f,{_AT},7,"","inf",,,,"q"r"s,.5,,,,
""".encode()

SEEDS: dict[str, list[bytes]] = {
    "csv": [_CSV, _CSV.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + _CSV.replace(b"\n", b"\r"), _CSV[:-1] + b'"open\n'],
    "jsonl": [_lines(*_FLAT), *(_lines(_FLAT[0], line) for line in _FLAT)],
    "objects": [_lines(*_OBJECTS)],
    "debezium": [_lines(*_DEBEZIUM), *(_lines(_DEBEZIUM[0], line) for line in _DEBEZIUM)],
    "datastream": [_lines(*_DATASTREAM)],
    "avro": [
        avro.write(_AVRO),
        avro.write(_AVRO * 3, codec="deflate", sync_interval=100, sync_marker=b"0123456789abcdef"),
    ],
}
"""Format to files; the fixed layout is that of the first one."""

for _path in sorted(FIXTURES.glob("*/*")):
    SEEDS["avro" if _path.suffix == ".avro" else _path.parent.name].append(_path.read_bytes())
