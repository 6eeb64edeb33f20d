"""Conversion of times in files to microseconds since the epoch, UTC; finer units are rounded down (floor).

Times in text have one grammar, and each text is checked alone:

    time   = date | date ("T" | " ") clock [zone]
    date   = YYYY-MM-DD, in the years 0000 to 9999, a day that the calendar has
    clock  = hh:mm | hh:mm:ss | hh:mm:ss.f, hours to 23, minutes and seconds to 59; f is one digit or more
    zone   = "Z" | (+ | -)hh | (+ | -)hhmm | (+ | -)hh:mm, hours to 23, minutes to 59; -00:00 is UTC as +00:00 is

So digits are 0 to 9, and these are invalid: surrounding blanks, hours without minutes, 24:00, a leap second (:60), a
date with a zone, `t` and `z`. A date denotes its midnight. A time without a zone is a local time, by the clocks of
`timezone`; if a change of clocks skips or repeats it, it has the offset from before the change, as in RFC 5545.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.zones import utc_of

Bad = list[tuple[np.ndarray, str]]
"""Positions that could not be converted, with the reason; if positions repeat, the first reason counts."""

NO_ZONE = "time without a zone: write an offset, or name the zone as changelog.timezone"
NOT_UNDERSTOOD = "time not understood: ISO 8601 such as 2013-02-08T17:30:00-05:00 is expected"
OUT_OF_RANGE = "time out of range of 64-bit microseconds"

# The grammar, without the number of days of each month.
_DATE = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_HOUR, _SIXTIETH = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_CLOCK = rf"[T ]{_HOUR}:{_SIXTIETH}(?::{_SIXTIETH}(?:\.[0-9]+)?)?"
_ZONED = rf"^{_DATE}{_CLOCK}(?:Z|[+-]{_HOUR}(?::?{_SIXTIETH})?)$"
_LOCAL = rf"^{_DATE}(?:{_CLOCK})?$"

_FINER = r"([.][0-9]{6})[0-9]+"
_LONGEST = len("2013-02-08T12:00:00.123456")  # only longer texts have digits beyond microseconds
_UNITS = {"s": 1_000_000, "ms": 1_000}
_MOST = 2**63 - 3 * 86_400_000_000  # local times nearer to the ends of the range can lie outside it


def to_microseconds(values: pa.Array, timezone: str | None) -> tuple[pa.Array, Bad]:
    """Return times as int64 microseconds, null if the value is null or bad, and the bad positions.

    Args:
        values: Timestamps with or without zone, dates, or texts.
        timezone: IANA name of the zone of values without one; None makes these bad.

    >>> to_microseconds(pa.array(["1970-01-01T00:00:01.0000019Z"]), None)[0].to_pylist()
    [1000001]
    """
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        ticks, bad = _from_timestamps(values, timezone)
    else:
        ticks, bad = _from_texts(values.cast(pa.string()), timezone)
    return ticks, [(positions, reason) for positions, reason in bad if len(positions)]


def convert_each(values: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> tuple[pa.Array, np.ndarray]:
    """Return `convert(values)` with null for values that cannot be converted, and the positions of those, int64 [n].

    Bad values are found by halving, so that the rest is still converted as columns. The result of `convert` for a value
    must depend on that value alone.
    """
    try:
        return convert(values), np.zeros(0, dtype=np.int64)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, convert(values.slice(0, 0)).type), np.zeros(1, dtype=np.int64)
    middle = len(values) // 2
    left, bad_left = convert_each(values.slice(0, middle), convert)
    right, bad_right = convert_each(values.slice(middle), convert)
    return pa.concat_arrays([left, right]), np.concatenate([bad_left, bad_right + middle])


def _from_timestamps(values: pa.Array, timezone: str | None) -> tuple[pa.Array, Bad]:
    local = pa.types.is_date(values.type) or values.type.tz is None
    if local and timezone is None:
        return pa.nulls(len(values), pa.int64()), [(_positions(values.is_valid()), NO_ZONE)]
    ticks, bad = _ticks(values)
    found = [(bad, OUT_OF_RANGE)]
    if not local or timezone is None:
        return ticks, found
    inside = pc.and_(pc.greater(ticks, -_MOST), pc.less(ticks, _MOST))
    found.append((_positions(pc.invert(pc.fill_null(inside, True))), OUT_OF_RANGE))
    return _at_clock(pc.if_else(inside, ticks, None), timezone), found


def _ticks(values: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Return microseconds by the value's own clock, and the positions of values out of range."""
    if pa.types.is_date(values.type):
        return convert_each(values, lambda part: part.cast(pa.timestamp("us")).cast(pa.int64()))
    ticks, unit = values.cast(pa.int64()), values.type.unit
    if unit == "ns":
        floored = np.floor_divide(ticks.fill_null(0).to_numpy(zero_copy_only=False), 1000)
        return pa.array(floored, mask=_mask(ticks)), np.zeros(0, dtype=np.int64)
    if unit == "us":
        return ticks, np.zeros(0, dtype=np.int64)
    return convert_each(ticks, lambda part: pc.multiply_checked(part, _UNITS[unit]))


def _from_texts(texts: pa.Array, timezone: str | None) -> tuple[pa.Array, Bad]:
    zoned = pc.fill_null(pc.match_substring_regex(texts, _ZONED), True)
    local = None if zoned.true_count == len(texts) else pc.match_substring_regex(texts, _LOCAL)
    if (pc.max(pc.binary_length(texts)).as_py() or 0) > _LONGEST:
        texts = pc.replace_substring_regex(texts, _FINER, r"\1")
    result, bad = convert_each(pc.if_else(zoned, texts, None), _zoned)
    found = [(bad, NOT_UNDERSTOOD)]
    if local is None:
        return result, found
    found.append((_positions(pc.invert(pc.or_(zoned, pc.fill_null(local, True)))), NOT_UNDERSTOOD))
    naive, bad = convert_each(pc.if_else(local, texts, None), lambda part: part.cast(pa.timestamp("us")))
    found.append((bad, NOT_UNDERSTOOD))
    if timezone is None:
        return result, [*found, (_positions(naive.is_valid()), NO_ZONE)]
    return pc.coalesce(result, _at_clock(naive.cast(pa.int64()), timezone)), found


def _zoned(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def _at_clock(ticks: pa.Array, timezone: str) -> pa.Array:
    """Return UTC of local microseconds; times that a change skips or repeats have the offset from before it."""
    local = ticks.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(utc_of(local, timezone), mask=_mask(ticks))


def _positions(mask: pa.Array) -> np.ndarray:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def _mask(values: pa.Array) -> np.ndarray | None:
    return values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
