"""Clocks of time zones from the installed package `tzdata`.

The machine's own files are never read: workers and the driver can have different versions of them, or none, and the
time of a row would depend on the machine that reads it. A release's calendar takes its windows from the same package.
"""

import re
import struct
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from zoneinfo import ZoneInfo

import numpy as np

from privacy.bisection import last_holding

_LAST_YEAR = 2037
"""Last year in which rules are followed; afterwards a zone keeps its last offset."""

_WEEK, _SECOND = 7 * 86_400, 1_000_000


def utc_of(local: np.ndarray, zone: str) -> np.ndarray:
    """Return UTC of local microseconds; both int64 [n].

    A local time that the clocks skip or repeat has the offset from before the change (RFC 5545).

    Raises:
        ValueError: The package does not have the zone.

    >>> at = np.array(["2026-03-29T02:30", "2026-10-25T02:30", "2026-07-01"], "datetime64[us]").astype(np.int64)
    >>> utc_of(at, "Europe/Berlin").astype("datetime64[us]").astype(str).tolist()
    ['2026-03-29T01:30:00.000000', '2026-10-25T00:30:00.000000', '2026-06-30T22:00:00.000000']
    """
    begins, offsets = _clocks(zone)
    return local - offsets[np.searchsorted(begins, local, side="right")]


@lru_cache(maxsize=8)
def zone_of(name: str) -> ZoneInfo:
    """Return a zone of the package `tzdata`.

    Raises:
        ValueError: The package does not have the zone.
    """
    path = _file_of(name) if re.fullmatch(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", name) else None
    if path is None or not path.is_file():
        raise ValueError(f"{name!r} is not in {tzdata()}")
    with path.open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def tzdata() -> str:
    """Return name and version of the package."""
    return f"tzdata {version('tzdata')}"


def _file_of(zone: str) -> Traversable:
    return files("tzdata").joinpath("zoneinfo", *zone.split("/"))


@lru_cache(maxsize=64)
def _clocks(zone: str) -> tuple[np.ndarray, np.ndarray]:
    """Return local times at which a zone's offset changes, [changes], and its offsets, [changes + 1]; microseconds."""
    known = zone_of(zone)
    changes, first = _changes(_file_of(zone).read_bytes())
    last = changes[-1] if changes else -(1 << 32)
    changes += _by_rule(known, max(last, _at(1970)))
    offsets = np.array([first, *(_offset(known, change) for change in changes)], dtype=np.int64) * _SECOND
    # A change is over at the later of its local times by the old offset and by the new one.
    begins = np.array(changes, dtype=np.int64) * _SECOND + np.maximum(offsets[:-1], offsets[1:])
    return np.maximum.accumulate(begins) if len(begins) else begins, offsets


def _changes(content: bytes) -> tuple[list[int], int]:
    """Return the changes that a file of RFC 8536 lists, in seconds since the epoch, and the offset before the first."""
    at = 44 + _size(content, 0, 4)
    utc, standard, leaps, times, types, letters = struct.unpack(">6l", content[at + 20 : at + 44])
    del utc, standard, leaps, letters
    at += 44
    found = struct.unpack(f">{times}q", content[at : at + 8 * times])
    at += 9 * times
    kinds = [struct.unpack(">lBB", content[at + 6 * kind : at + 6 * kind + 6]) for kind in range(types)]
    return list(found), int(kinds[0][0])


def _size(content: bytes, at: int, width: int) -> int:
    """Return the bytes of the data block after a header, with times of `width` bytes."""
    utc, standard, leaps, times, types, letters = struct.unpack(">6l", content[at + 20 : at + 44])
    return int(times * (width + 1) + types * 6 + letters + leaps * (width + 4) + standard + utc)


def _by_rule(zone: ZoneInfo, begin: int) -> list[int]:
    """Return the changes after a moment that follow from the rule at the end of the file."""
    found = []
    end = _at(_LAST_YEAR + 1)
    while begin < end:
        after = min(begin + _WEEK, end)
        if _offset(zone, begin) != _offset(zone, after - 1):
            begin = 1 + _last_alike(zone, begin, after - 1)
            found.append(begin)
        else:
            begin = after - 1 if after < end else end
    return found


def _last_alike(zone: ZoneInfo, begin: int, other: int) -> int:
    """Return the last moment with the offset of `begin`, before one with another offset."""
    offset = _offset(zone, begin)
    return last_holding(
        lambda moment: _offset(zone, moment) == offset,
        begin,
        other,
        near=lambda good, bad: bad - good <= 1,
        whole=True,
    )


def _at(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


def _offset(zone: ZoneInfo, moment: int) -> int:
    """Return the seconds by which the clocks are ahead of UTC at a moment."""
    ahead = datetime.fromtimestamp(moment, zone).utcoffset()
    assert ahead is not None
    return int(ahead.total_seconds())
