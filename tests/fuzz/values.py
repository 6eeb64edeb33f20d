"""Single values read by the readers' documentation, in plain Python: the reference for the readers."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

DEAD = object()
"""Result of a value that makes its row a dead letter."""

UNAVAILABLE = "__debezium_unavailable_value"

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ODD = re.compile(r"[+-]?(nan(\(\w*\))?|inf(inity)?)", re.ASCII | re.IGNORECASE)


class Number(str):
    """A number of JSON as text."""


class Members(dict[str, Any]):
    """An object of JSON, and the names that it has twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.twice = {name for name in names if names.count(name) > 1}


def load(line: bytes) -> Members | None:
    """Return the object of a line; None if the line is not one."""
    if not line.startswith(b"{"):
        return None
    try:
        text = re.sub(r"(?<=[\s:,\[-])Inf(?=[\s,\]}])", "Infinity", line.decode())
        found = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=Members)
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is not a text
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Members) else None


def whole(text: str) -> Any:
    """Return an int64 in CSV's and JSON's notation: decimal digits, or hexadecimal ones as in memory."""
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text, re.ASCII):
        found = int(text, 16)
        return found - 2**64 if found >= 2**63 else found
    if not re.fullmatch(r"-?\d+", text, re.ASCII):
        return DEAD
    digits = text.lstrip("-").lstrip("0") or "0"
    found = int(digits) * (-1 if text[0] == "-" else 1) if len(digits) < 30 else 2**70
    return found if -(2**63) <= found < 2**63 else DEAD


def real(text: str) -> Any:
    """Return a float64; infinity beyond its range."""
    if _NUMBER.fullmatch(text):
        return float(text)
    if _ODD.fullmatch(text):
        return float(text.split("(")[0])
    return DEAD


def instant(text: str, zone: str | None) -> Any:
    """Return microseconds since the epoch; a time without offset follows the clocks of `zone`, if given."""
    found = _TIME.fullmatch(text)
    if found is None:
        return DEAD
    *parts, fraction, offset = found.groups()
    if offset is None and zone is None:
        return DEAD
    try:
        year, *rest = (int(part or 0) for part in parts)
        at = datetime(year or 400, *rest, tzinfo=UTC if offset or not zone else ZoneInfo(zone))  # type: ignore[misc, arg-type]
    except ValueError:
        return DEAD
    micros = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) + int(
        (fraction or "0")[:6].ljust(6, "0")
    )
    micros -= 0 if year else 146_097 * 86_400_000_000  # days in 400 years
    if offset and offset != "Z":
        digits = offset[1:].replace(":", "").ljust(4, "0")
        hours, minutes = int(digits[:2]), int(digits[2:])
        if hours > 23 or minutes > 59:
            return DEAD
        micros -= (hours * 60 + minutes) * 60_000_000 * (-1 if offset[0] == "-" else 1)
    return micros


def of_text(text: str, kind: str, zone: str | None) -> Any:
    """Return a text as a value of a kind."""
    if kind == "int64":
        return whole(text)
    if kind == "float64":
        return real(text)
    if kind == "bool":
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), DEAD)
    return text if kind == "string" else instant(text, zone)


def of_json(value: Any, kind: str, *, zone: str | None = None) -> Any:
    """Return a value of JSON as a cell with its text would be read."""
    text = text_of(value)
    return text if text in (None, DEAD) else of_text(text, kind, zone)


def text_of(value: Any) -> Any:
    """Return the text of a value; an object or a list has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else value if value is None else DEAD


def position(value: Any) -> str:
    """Return a log position as a text that sorts as positions do."""
    if value is None:
        return ""
    text = str(value)
    numbered = re.fullmatch(r"((?:.*[G-WYZg-wyz_-].*\.)?)([0-9]+)", text)
    if numbered:
        return numbered[1] + numbered[2].rjust(20, "0")
    lsn = re.fullmatch(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})", text)
    return lsn[1].upper().rjust(8, "0") + lsn[2].upper().rjust(8, "0") if lsn else text
