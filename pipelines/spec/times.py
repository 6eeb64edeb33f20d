"""Moments as people write them (ISO 8601 with a zone), as microseconds since the epoch, UTC."""

import re
from datetime import UTC, date, datetime, timedelta

from transforms.common.dates import moment_name, utc_name

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def parse_time(text: str) -> datetime:
    """Return the moment that a text names, in the zone of the text.

    Raises:
        ValueError: The text is not ISO 8601, or has no zone. A guessed zone would move every window.

    >>> microseconds(parse_time("1970-01-01T01:00:00+01:00"))
    0
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected a time such as 2013-01-01T00:00:00Z, not {text[:40]!r}") from None
    if moment.tzinfo is None:
        naive = moment.isoformat()
        raise ValueError(f"the time has no zone; write {naive}Z for UTC, or {naive}-05:00")
    return moment


def parse_moment_or_date(text: str) -> datetime | date:
    """Return the moment that a text names, or the date if it names no time.

    Raises:
        ValueError: As `parse_time`, or the date does not exist.

    >>> parse_moment_or_date("2026-03-01"), parse_moment_or_date("1970-01-01T00:00:00Z").tzinfo is None
    (datetime.date(2026, 3, 1), False)
    """
    if not _DATE.fullmatch(text):
        return parse_time(text)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected a date such as 2013-01-01, not {text[:40]!r}") from None


def microseconds(moment: datetime) -> int:
    """Return the microseconds since the epoch, UTC, of a moment with a zone."""
    return (moment - _EPOCH) // MICROSECOND


def now() -> int:
    """Return the machine's time in microseconds since the epoch, UTC. All checks for closed windows use it."""
    return microseconds(datetime.now(UTC))


def time_text(moment: datetime) -> str:
    """Return a moment in ISO 8601, in its own zone, with `Z` for UTC.

    >>> time_text(parse_time("2013-01-01T00:00:00+00:00"))
    '2013-01-01T00:00:00Z'
    """
    text = moment.isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def moment_text(moment: int) -> str:
    """Return microseconds since the epoch as a time in ISO 8601, UTC.

    >>> moment_text(0)
    '1970-01-01T00:00:00Z'
    """
    return time_text(_EPOCH + moment * MICROSECOND)


def people_time(text: str) -> str:
    """Return a time in ISO 8601 as people write it, in UTC.

    >>> people_time("2026-07-27T02:00:00.5+02:00")
    '27 July 2026, 00:00 UTC'
    """
    moment = microseconds(parse_time(text))
    return utc_name(moment - moment % 1_000_000)


def end_name(text: str) -> str:
    """Return a time in ISO 8601 as people write the end of a period.

    >>> end_name("2025-06-23T00:00:00Z")
    'the end of 22 June 2025'
    """
    return moment_name(microseconds(parse_time(text)))
