"""Debezium's and Datastream's events for tests, after their published field descriptions."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.transforms.writing import dead, look, parts, read
from transforms.sources.columns.layout import Layout
from transforms.sources.columns.normalise import Skipped

Event = dict[str, Any]
T0 = 1_600_000_000_000
"""Milliseconds since the epoch."""

FIXTURES = Path(__file__).parent / "fixtures"


def event(op: str, before: Event | None = None, after: Event | None = None, **source: Any) -> Event:
    """Return a bare Debezium event; `source` replaces fields of its source."""
    told = {"version": "2.7.0.Final", "connector": "postgresql", "ts_ms": T0, "lsn": 100, "table": "stays"} | source
    return {"before": before, "after": after, "source": told, "op": op, "ts_ms": T0 + 5, "transaction": None}


def wrapped(payload: Event | None) -> Event:
    """Return an event as written with `schemas.enable`."""
    return {"schema": {"type": "struct", "fields": [{"field": "op", "optional": False}]}, "payload": payload}


def state(entry: Any, ward: str | None = "a", cost: Any = 1.5) -> Event:
    return {"id": entry, "ward": ward, "cost": cost, "note": "n"}


def write_lines(path: Path, lines: Iterable[Any]) -> Path:
    """Write objects as JSON, and texts unchanged."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8", errors="surrogateescape")
    return path


def see(path: Path, format_: str = "debezium", **changes: Any) -> Layout:
    """Inspect for queries that measure `cost` by `ward`."""
    usual = {"entry": "id", "time": None, "before": None, "after": None, "numbers": "cost", "others": "ward"}
    usual["types"] = (("id", "int64"),)
    return look(path, format_, **(usual | changes))


def skipped(layout: Layout) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in parts(layout):
        if isinstance(part, Skipped):
            counts[part.reason] = counts.get(part.reason, 0) + part.rows
    return counts


def sides(layout: Layout) -> list[tuple[Any, Any, Any]]:
    """Return (entry, state before, state after) of each row, with states as (ward, cost)."""
    return [(row["entry"], _state(row, "before"), _state(row, "after")) for row in read(layout)]


def in_order(layout: Layout) -> list[Any]:
    """Return the entries sorted by their order columns."""
    return [row["entry"] for row in sorted(read(layout), key=lambda row: [row[n] for n in row if "order." in n])]


def _state(row: Event, side: str) -> Any:
    return (row[f"{side}.ward"], row[f"{side}.cost"]) if row.get(side) else None


__all__ = [
    "FIXTURES",
    "T0",
    "dead",
    "event",
    "in_order",
    "read",
    "see",
    "sides",
    "skipped",
    "state",
    "wrapped",
    "write_lines",
]
