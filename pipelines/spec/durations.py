"""Durations as people write them (`1d`, `1h30m`, `14d`), as whole microseconds."""

import re

UNITS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
"""Microseconds in each unit, largest first. A day is 24 hours, always: no calendar here."""

LONGEST = 1_000 * 366 * UNITS["d"]

_PART = re.compile(r"(\d+)(ms|us|[wdhms])")
_WHOLE = re.compile(r"(?:\d+(?:ms|us|[wdhms]))+", re.ASCII)


def parse_duration(text: str) -> int:
    """Microseconds in a duration: whole numbers, each with its unit, run together.

    Raises:
        ValueError: anything else, a unit given twice, or more than about a thousand years.

    >>> parse_duration("1d12h") // 3_600_000_000
    36
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"expected a duration such as 1d, 12h, 30m or 1h30m, not {text[:40]!r}")
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


def duration_text(microseconds: int) -> str:
    """The duration as `parse_duration` reads it, in the fewest parts; at least zero.

    >>> duration_text(36 * 3_600_000_000), duration_text(7 * 86_400_000_000), duration_text(0)
    ('1d12h', '1w', '0s')
    """
    parts = []
    for unit, size in UNITS.items():
        count, microseconds = divmod(microseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
