"""Days, weeks and months by the calendar of a time zone, as instants.

A day begins with the first instant of its date. If clocks skip midnight, that is the instant after the skipped time; if
midnight comes twice, it is the first one. Time zones come from the pinned package `tzdata` alone, never from the files
of the machine. Its version alone decides where windows that have not closed begin and end.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import count, islice, takewhile

from pipelines.spec.durations import MONTH, UNITS
from pipelines.spec.times import MICROSECOND, microseconds
from transforms.common.windows import Windows
from transforms.common.zones import zone_of

DAY = UNITS["d"]

AHEAD = timedelta(days=50 * 366)
"""How far ahead of its start, or of now, the windows of a release without an end are computed."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Windows of whole days or whole months of a time zone.

    Attributes:
        zone: IANA name of the time zone.
        first: The date on which the first window begins; for windows of months the first day of a month.
        every: Length of a window in microseconds: a multiple of a day, or of MONTH.

    Raises:
        ValueError: `every` is neither, `first` is not the first day of a month, or `tzdata` does not know the zone.

    >>> days = Calendar("Europe/Berlin", date(2026, 3, 28), DAY).until(date(2026, 3, 31))
    >>> [(days.end(number) - days.end(number - 1)) // 3_600_000_000 for number in (1, 2, 3)]
    [24, 23, 24]
    """

    zone: str
    first: date
    every: int

    def __post_init__(self) -> None:
        if self.every < 1 or (self.every % DAY and self.every % MONTH):
            raise ValueError("a window of a calendar is made of whole days, weeks or months, such as 1d, 1w or 1mo")
        if not self.every % MONTH and self.first.day > 1:
            raise ValueError("windows of months begin with the first of one")
        zone_of(self.zone)

    def until(self, last: date) -> Windows:
        """Return the windows that end at or before the beginning of a date."""
        return self._ending(takewhile(lambda day: day <= last, self._dates()))

    def leading(self, windows: int) -> Windows:
        """Return the first windows."""
        return self._ending(islice(self._dates(), windows))

    def ahead(self, moment: int) -> Windows:
        """Return the windows that end within 50 years after a moment, or after the first date if that is later.

        `moment` is in microseconds since the epoch, UTC.
        """
        day = (EPOCH + min(max(moment, 0), LATEST) * MICROSECOND).date()
        return _until(self, min(max(day, self.first), date.max - 2 * AHEAD) + AHEAD)

    def around(self, last: date) -> list[date]:
        """Return the last date before `last` at which a window ends, and the first such date at or after `last`."""
        found: list[date] = []
        for day in self._dates():
            found = [*found[-1:], day]
            if day >= last:
                break
        return found

    def _ending(self, days: Iterable[date]) -> Windows:
        ends = tuple(begins(self.zone, day) for day in days)
        return Windows(start=begins(self.zone, self.first), every=self.every, ends=ends)

    def _dates(self) -> Iterator[date]:
        """Yield the dates at whose beginning windows end, up to the year 9999."""
        months = 0 if self.every % MONTH else self.every // MONTH
        with suppress(OverflowError, ValueError):
            for number in count(1):
                if months:
                    year, month = divmod(self.first.year * 12 + self.first.month - 1 + number * months, 12)
                    yield date(year, month + 1, 1)
                else:
                    yield self.first + number * timedelta(microseconds=self.every)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = (datetime(9998, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND


@lru_cache(maxsize=16)
def _until(calendar: Calendar, last: date) -> Windows:
    return calendar.until(last)


@lru_cache(maxsize=1 << 16)
def begins(zone: str, day: date) -> int:
    """Return the first instant of a date, in microseconds since the epoch, UTC.

    >>> from pipelines.spec.times import moment_text
    >>> moment_text(begins("Europe/Berlin", date(2026, 7, 1))), moment_text(begins("America/Havana", date(2026, 11, 1)))
    ('2026-06-30T22:00:00Z', '2026-11-01T04:00:00Z')
    """
    known = zone_of(zone)
    midnight = datetime(day.year, day.month, day.day, tzinfo=known)
    early, late = sorted(microseconds(midnight.replace(fold=fold).astimezone(UTC)) for fold in (0, 1))

    def begun(moment: int) -> bool:
        return (EPOCH + moment * MICROSECOND).astimezone(known).date() >= day

    while late > early and not begun(early):  # clocks skip midnight between the two
        middle = (early + late) // 2
        early, late = (early, middle) if begun(middle) else (middle + 1, late)
    return early
