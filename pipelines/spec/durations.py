"""Durations as people write them (`1d`, `1h30m`), in whole microseconds; and months, which have no fixed length."""

import re

from privacy.counted import counted, time_text

UNITS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
"""Microseconds in each unit, largest first. A day always has 24 hours, also when clocks change."""

MONTH = 365 * UNITS["d"] // 12 - 1
"""Length that represents a month in windows of months: a twelfth of 365 days less one microsecond, so that no number of
months equals a number of days."""

LONGEST = 1_000 * 366 * UNITS["d"]

_NAMED = {"hourly": "1h", "daily": "1d", "weekly": "1w", "monthly": "1mo", "yearly": "12mo", "annually": "12mo"}
_WRITTEN = {"week": "w", "day": "d", "hour": "h", "hr": "h", "minute": "m", "min": "m", "second": "s", "sec": "s"}
_WRITTEN |= {"month": "mo", "mon": "mo"}

_PART = re.compile(r"(\d+)(ms|us|[wdhms])")
_MONTHS = re.compile(r"(\d{1,5})mo", re.ASCII)
_WORDS = re.compile(r"(?:\d+\s*[a-z]+\s*)+", re.ASCII)
_WHOLE = re.compile(r"(?:\d+(?:ms|us|[wdhms]))+", re.ASCII)


def parse_duration(text: str) -> int:
    """Return the microseconds of a duration, which is written as whole numbers with units and without spaces.

    Raises:
        ValueError: The text is not a duration, gives a unit twice, or is longer than a thousand years.

    >>> parse_duration("1d12h") // 3_600_000_000
    36
    """
    if not _WHOLE.fullmatch(text):
        meant = _meant(text)
        hint = f"; did you mean {meant!r}?" if meant else ""
        hint = "; a month is 1mo, and only schedule.every knows it" if re.search("M|mo", f"{text}{meant}") else hint
        raise ValueError(f"expected a duration such as 1d, 12h, 30m or 1h30m, not {text[:40]!r}{hint}")
    parts = _PART.findall(text)
    units = [unit for _, unit in parts]
    if len(set(units)) < len(units):
        raise ValueError(f"{text[:40]!r} gives a unit twice; write each unit once, such as 1h30m")
    if any(len(number) > 18 for number, _ in parts):
        raise ValueError("a duration may be at most 1000 years long")
    total = sum(int(number) * UNITS[unit] for number, unit in parts)
    if total > LONGEST:
        raise ValueError("a duration may be at most 1000 years long")
    return total


def _meant(text: str) -> str:
    """Return the duration that a text probably means; empty if it is not known.

    >>> _meant("7 days"), _meant("Weekly"), _meant("1 hour 30 min"), _meant("1d 1 day"), _meant("soon")
    ('7d', '1w', '1h30m', '', '')
    """
    words = text.strip().lower()
    parts = re.findall(r"(\d+)\s*([a-z]+)", words, re.ASCII) if _WORDS.fullmatch(words) else []
    units = [unit if unit in UNITS else _WRITTEN.get(unit.removesuffix("s"), "") for _, unit in parts]
    if not all(units) or len(set(units)) < len(units):
        return ""
    return _NAMED.get(words, "".join(f"{number}{unit}" for (number, _), unit in zip(parts, units, strict=True)))


def parse_length(text: str) -> int:
    """Return the microseconds of a duration, or of a number of months, each of which counts as MONTH.

    Raises:
        ValueError: As `parse_duration`.

    >>> parse_length("3mo") == 3 * MONTH, parse_length("1d") == UNITS["d"]
    (True, True)
    """
    months = _MONTHS.fullmatch(text)
    if months is None:
        return parse_duration(text)
    if int(months[1]) > 12_000:
        raise ValueError("a duration may be at most 1000 years long")
    return int(months[1]) * MONTH


def duration_text(microseconds: int) -> str:
    """Return the text of a duration that `parse_length` reads, in the fewest parts; the duration is at least zero.

    >>> duration_text(36 * 3_600_000_000), duration_text(7 * 86_400_000_000), duration_text(0), duration_text(3 * MONTH)
    ('1d12h', '1w', '0s', '3mo')
    """
    if microseconds and not microseconds % MONTH:
        return f"{microseconds // MONTH}mo"
    parts = []
    for unit, size in UNITS.items():
        count, microseconds = divmod(microseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def length_text(microseconds: int) -> str:
    """Return a duration in words, for pages.

    >>> length_text(36 * 3_600_000_000), length_text(7 * 86_400_000_000), length_text(MONTH)
    ('36 hours', '7 days', '1 month')
    """
    if microseconds and not microseconds % MONTH:
        return counted(microseconds // MONTH, "month")
    text = time_text(microseconds)
    return text if text[0].isdigit() else f"1 {text}"
