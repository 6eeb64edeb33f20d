"""Times as they stand in files to microseconds since the epoch, UTC; finer units are cut down (floor)."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Bad = list[tuple[np.ndarray, str]]
"""Positions that could not be converted, with the reason; positions may repeat, then the first reason counts."""

NO_ZONE = "time without a zone: write an offset, or name the zone as changelog.timezone"
NOT_UNDERSTOOD = "time not understood: ISO 8601 such as 2013-02-08T17:30:00-05:00 is expected"
OUT_OF_RANGE = "time out of range of 64-bit microseconds"

_OFFSET = r":\d{2}(\.\d+)?\s*([Zz]|[+-]\d{2}(:?\d{2})?)$"
_FINER = r"([.]\d{6})\d+"


def to_microseconds(values: pa.Array, timezone: str | None) -> tuple[pa.Array, Bad]:
    """Microseconds as int64; null where the value is null or bad.

    A time that a change of clocks makes ambiguous, or skips, is taken as the earliest that it can mean.

    Args:
        values: timestamps with or without zone, or strings in ISO 8601.
        timezone: IANA name of the zone of values without one; None makes these bad.

    >>> to_microseconds(pa.array(["1970-01-01T00:00:01.0000019Z"]), None)[0].to_pylist()
    [1000001]
    """
    if pa.types.is_timestamp(values.type):
        return _from_timestamps(values, timezone)
    return _from_strings(values, timezone)


def convert_each(values: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> tuple[pa.Array, np.ndarray]:
    """`convert(values)` with null where a value cannot be converted, and the positions of those values.

    Bad values are found by halving, so that the rest still converts as columns.
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
    if values.type.tz is None:
        if timezone is None:
            return pa.nulls(len(values), pa.int64()), [(_positions(pc.is_valid(values)), NO_ZONE)]
        values = _localise(values, timezone)
    ticks = values.cast(pa.int64())
    if values.type.unit == "us":
        return ticks, []
    if values.type.unit == "ns":
        floored = np.floor_divide(ticks.fill_null(0).to_numpy(zero_copy_only=False), 1000)
        return pa.array(floored, mask=_mask(ticks)), []
    factor = {"s": 1_000_000, "ms": 1_000}[values.type.unit]
    result, bad = convert_each(ticks, lambda part: pc.multiply_checked(part, factor))
    return result, [(bad, OUT_OF_RANGE)] if len(bad) else []


def _from_strings(values: pa.Array, timezone: str | None) -> tuple[pa.Array, Bad]:
    try:
        return _zoned(values), []
    except pa.ArrowInvalid:
        values = pc.replace_substring_regex(values, _FINER, r"\1")
    has_zone = pc.fill_null(pc.match_substring_regex(values, _OFFSET), True)
    result, bad = convert_each(pc.if_else(has_zone, values, None), _zoned)
    found: Bad = [(bad, NOT_UNDERSTOOD)] if len(bad) else []
    without = _positions(pc.invert(has_zone))
    if len(without) == 0:
        return result, found
    naive, bad = convert_each(pc.if_else(has_zone, None, values), lambda part: part.cast(pa.timestamp("us")))
    if len(bad):
        found.append((bad, NOT_UNDERSTOOD))
    if timezone is None:
        return result, [*found, (without, NO_ZONE)]
    return pc.coalesce(result, _localise(naive, timezone).cast(pa.int64())), found


def _zoned(values: pa.Array) -> pa.Array:
    return values.cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def _localise(values: pa.Array, timezone: str) -> pa.Array:
    return pc.assume_timezone(values, timezone, ambiguous="earliest", nonexistent="earliest")


def _positions(mask: pa.Array) -> np.ndarray:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def _mask(values: pa.Array) -> np.ndarray | None:
    return values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
