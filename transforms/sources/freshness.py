"""Freshness of a source: the time up to which all changes have arrived, by the source's own statement.

    newer_file        the time at which the newest file of the changelog was stored
    file: PATH        the latest instant in this file, which the changelog's writer updates
    heartbeat: TOPIC  the latest instant in the connector's last records in this topic of Kafka, not the changelog's

A file or record holds an instant as ISO 8601 with a zone, or as JSON: `source.ts_ms` of a change event of Debezium,
else the `ts_ms` of its heartbeats, with or without the envelope of a schema.

None of these depends on the data of a unit: the times at which files are stored are public, like the set of files.
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
"""Time before all others: the freshness of the source is unknown."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"ts_us": 1, "ts_ms": 1_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Statement of a source's freshness.

    Attributes:
        by: See the module's docstring.
        path: Path of the file, or the topic; empty for `newer_file`.
        settings: Path of the settings of Kafka's client.
    """

    by: Literal["newer_file", "file", "heartbeat"]
    path: str = ""
    settings: str | None = None

    def passed(self, files: Iterable[Listed]) -> int:
        """Return the time up to which all changes have arrived, in microseconds since the epoch; NEVER if unknown.

        Read it before the files to read are listed, so that all files up to then are among them.

        Raises:
            InputError: It cannot be read, or holds no time.
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
                f"{self.path}: cannot be read ({type(error).__name__}); it states the source's progress, so check "
                "the path and your rights"
            ) from None


def said(content: bytes, where: str) -> int:
    """Return the latest instant in some lines; NEVER without lines.

    Raises:
        InputError: A line holds no time.

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
            f"{where}: states no time up to which the source has come; 2026-01-31T00:00:00Z is expected, or JSON with "
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
    _ = _EPOCH + timedelta(microseconds=come)  # nanoseconds under the name of another unit are not a time
    return come
