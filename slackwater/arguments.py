"""Arguments as people give them, checked at once."""

from datetime import datetime, timedelta

from pipelines.spec.times import MICROSECOND, microseconds, parse_time
from transforms.common.errors import SpecError


def moment_of(name: str, moment: datetime | str | None) -> int | None:
    """Microseconds since 1970.

    Args:
        moment: text is as the command line takes it, which is all that Beam YAML can give.

    Raises:
        SpecError: a time without a zone, or no time: a date, say.
    """
    if isinstance(moment, str):
        try:
            moment = parse_time(moment)
        except ValueError as error:
            raise SpecError(f"{name}: {error}") from None
    if moment is not None and not isinstance(moment, datetime):
        raise SpecError(f"{name}: expected a datetime with a zone, such as datetime(2026, 1, 5, tzinfo=UTC), or text")
    if moment is not None and moment.tzinfo is None:
        raise SpecError(f"{name}: the time has no zone; give one, such as datetime(2026, 1, 5, tzinfo=UTC)")
    return None if moment is None else microseconds(moment)


def count_of(name: str, count: int | None) -> int | None:
    """
    Raises:
        SpecError: less than one.
    """
    if count is not None and count < 1:
        raise SpecError(f"{name}: expected a whole number of at least 1, not {count}")
    return count


def duration_of(name: str, duration: timedelta) -> int:
    """Microseconds.

    Raises:
        SpecError: nothing, or less, or no timedelta: text, say.
    """
    if not isinstance(duration, timedelta) or duration < MICROSECOND:
        raise SpecError(f"{name}: expected a duration above zero, such as timedelta(days=5), not {duration}")
    return duration // MICROSECOND


def positive_of(name: str, number: float) -> float:
    """
    Raises:
        SpecError: not above zero, or no number.
    """
    if not 0 < number < 1e12:
        raise SpecError(f"{name}: expected a number above 0, not {number}")
    return number
