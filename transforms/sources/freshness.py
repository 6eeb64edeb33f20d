"""How far a source is known to have come: what it says of itself, and not what rows say.

    newer_file        the time at which the newest file of the changelog was stored
    file: PATH        the latest instant that whoever writes the changelog says in this file
    heartbeat: TOPIC  the latest one of the connector's last records in this topic of Kafka, not the changelog's

A file or record says an instant as ISO 8601 with a zone, or as JSON: `source.ts_ms` of a change event of Debezium, else
the `ts_ms` of its heartbeats, with or without the envelope of a schema.

None of it is anybody's row. When files are stored is taken as given, as it is which files there are at a run.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from transforms.common.errors import InputError
from transforms.common.sinks import is_there, read_bytes
from transforms.sources.files.kafka import last_lines
from transforms.sources.files.listing import Listed

NEVER = -(2**62)
"""Before all time: nothing is known of a source."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"ts_us": 1, "ts_ms": 1_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """What says how far a source has come.

    Attributes:
        by: see above.
        path: of the file, or the topic; empty for `newer_file`.
        settings: path of the settings of Kafka's client.
    """

    by: Literal["newer_file", "file", "heartbeat"]
    path: str = ""
    settings: str | None = None

    def passed(self, files: Iterable[Listed]) -> int:
        """Up to when all changes are there, in microseconds since the epoch, UTC; NEVER if that is not known.

        It must be asked before files are listed to be read, so that these are all there up to then.

        Args:
            files: of the changelog.

        Raises:
            InputError: it cannot be read, or says no time.
        """
        if self.by == "newer_file":
            return max((int(file.updated * 1_000_000) for file in files), default=NEVER)
        if self.by == "file":
            return said(self._content(), self.path)
        return said(b"\n".join(last_lines(self.path, self.settings)), self.path)

    def _content(self) -> bytes:
        try:
            return read_bytes(self.path) if is_there(self.path) else b""
        except OSError as error:
            raise InputError(
                f"{self.path}: cannot be read ({type(error).__name__}); it says how far the source has come, so check "
                "the path and your rights"
            ) from None


def said(content: bytes, where: str) -> int:
    """The latest instant in some lines; those without one are none of a source.

    Raises:
        InputError: there is no time in one of them.

    >>> said(b"1970-01-01T00:00:01Z", "progress") == said(b'{"payload": {"ts_ms": 1000}}', "topic") == 1_000_000
    True
    """
    lines = [line.strip() for line in content.splitlines() if line.strip() not in (b"", b"null")]
    if not lines:
        return NEVER
    try:
        return max(_instant(line.decode()) for line in lines)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise InputError(
            f"{where}: says no time up to which the source has come; 2026-01-31T00:00:00Z is expected, or JSON with "
            "ts_ms, as Debezium's heartbeats have it"
        ) from None


def _instant(line: str) -> int:
    if not line.startswith("{"):
        moment = datetime.fromisoformat(line)
        if moment.tzinfo is None:
            raise ValueError("no zone")
        return (moment - _EPOCH) // timedelta(microseconds=1)
    told: Any = json.loads(line)
    told = told.get("payload") or told
    told = told.get("source") or told
    unit = next((unit for unit in _UNITS if told.get(unit) is not None), "ts_ms")
    if type(told[unit]) is not int:
        raise ValueError("no whole number")
    come = int(told[unit]) * _UNITS[unit]
    _ = _EPOCH + timedelta(microseconds=come)  # nanoseconds under the name of another unit are no time
    return come
