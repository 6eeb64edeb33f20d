"""Moments and windows as people write them: `26 July 2026`, `week of 20 to 26 July 2026`, `March 2026`.

All times are microseconds since 1970 by the clocks of one zone, as if it were UTC. A window does not contain its end.
"""

from datetime import UTC, datetime, timedelta

DAY = 86_400_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_name(moment: int) -> str:
    """Return a moment as text; midnight is the end of the day before.

    >>> moment_name(1_785_110_400_000_000), moment_name(1_785_060_000_000_000)
    ('the end of 26 July 2026', '26 July 2026, 10:00')
    """
    return f"the end of {_day(_at(moment - DAY))}" if moment % DAY == 0 else _instant(_at(moment))


def utc_name(moment: int) -> str:
    """Return a moment of UTC as text.

    >>> utc_name(1_785_110_400_000_000)
    '27 July 2026, 00:00 UTC'
    """
    return f"{_instant(_at(moment))} UTC"


def start_name(moment: int) -> str:
    """Return the start of windows as text; midnight is the day that it begins.

    >>> start_name(1_785_110_400_000_000), start_name(1_785_060_000_000_000)
    ('27 July 2026', '26 July 2026, 10:00')
    """
    return (_day if moment % DAY == 0 else _instant)(_at(moment))


def window_name(start: int, end: int) -> str:
    """Return the name of a window.

    >>> day = 1_784_505_600_000_000  # 20 July 2026, a Monday
    >>> window_name(day, day + DAY), window_name(day, day + 7 * DAY), window_name(day + 7 * DAY, day + 14 * DAY)
    ('20 July 2026', 'week of 20 to 26 July 2026', 'week of 27 July to 2 August 2026')
    >>> window_name(day - 19 * DAY, day + 12 * DAY), window_name(day, day + DAY // 24)
    ('July 2026', '20 July 2026, 00:00 to 01:00')
    """
    first, after = _at(start), _at(end)
    if start % DAY or end % DAY:
        return _of_hours(first, after)
    last = after - timedelta(days=1)
    if first.day == after.day == 1:
        return _of_months(first, last)
    days = (after - first).days
    if days == 1:
        return _day(first)
    return f"week of {_days(first, last)}" if days == 7 else _days(first, last)


def number_name(kind: str, start: int, end: int) -> str:
    """Return when a number applies: a level at the end of its window, any other kind over its window.

    >>> day = 1_784_505_600_000_000  # 20 July 2026
    >>> number_name("level", day, day + DAY), number_name("entered", day, day + DAY)
    ('the end of 20 July 2026', '20 July 2026')
    """
    return moment_name(end) if kind == "level" else window_name(start, end)


def _days(first: datetime, last: datetime) -> str:
    """Return a range of days, with the parts that both have in common written once."""
    if first.year != last.year:
        return f"{_day(first)} to {_day(last)}"
    if first.month != last.month:
        return f"{first.day} {first:%B} to {_day(last)}"
    return f"{first.day} to {_day(last)}"


def _of_months(first: datetime, last: datetime) -> str:
    if first.month == 1 and last.month == 12:
        return f"{first.year}" if first.year == last.year else f"{first.year} to {last.year}"
    if (first.year, first.month) == (last.year, last.month):
        return f"{last:%B} {last.year}"
    begin = f"{first:%B}" if first.year == last.year else f"{first:%B} {first.year}"
    return f"{begin} to {last:%B} {last.year}"


def _of_hours(first: datetime, after: datetime) -> str:
    if first.date() == after.date():
        return f"{_day(first)}, {_clock(first)} to {_clock(after)}"
    if after.time() == datetime.min.time() and (after - first) < timedelta(days=1):
        return f"{_day(first)}, {_clock(first)} to 24:00"
    return f"{_instant(first)} to {_instant(after)}"


def _at(moment: int) -> datetime:
    return _EPOCH + timedelta(microseconds=moment)


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B} {at.year}"


def _instant(at: datetime) -> str:
    return f"{_day(at)}, {_clock(at)}"


def _clock(at: datetime) -> str:
    return f"{at:%H:%M:%S}".removesuffix(":00")
