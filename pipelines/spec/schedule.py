"""The windows of a spec: of one length, or the days, weeks and months of a time zone's calendar."""

import re
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any, Self

from pydantic import model_validator

from pipelines.spec.calendar import DAY, Calendar, begins
from pipelines.spec.durations import MONTH, duration_text
from pipelines.spec.errors import Problem, refuse, refused
from pipelines.spec.fields import Length, MomentOrDate, Section, Timezone
from pipelines.spec.rules import MOST_WINDOWS
from pipelines.spec.times import MICROSECOND, microseconds, parse_time, time_text
from transforms.common.windows import Windows
from transforms.common.zones import tzdata, zone_of

MOST_DAYS = 100_000
"""Most windows of a calendar."""


class ScheduleSection(Section):
    """The windows [start, start + every) and so on, up to `until` if it is given; with a zone, by its calendar."""

    start: MomentOrDate
    every: Length
    until: MomentOrDate | None = None
    timezone: Timezone | None = None

    @model_validator(mode="before")
    @classmethod
    def _weeks(cls, raw: Any) -> Any:
        """Refuse weeks that do not begin on Monday; `7d` may begin on any day."""
        if isinstance(raw, dict) and raw.get("timezone") is not None and re.fullmatch(r"\d+w", str(raw.get("every"))):
            try:
                start = date.fromisoformat(str(raw.get("start")))
            except ValueError:  # the check of start itself reports it
                return raw
            monday = start - timedelta(days=start.weekday())
            if start != monday:
                message = f"weeks begin on Monday; use {monday} or {monday + timedelta(days=7)}, or every: 7d"
                refuse([(("start",), message)])
        return raw

    @model_validator(mode="after")
    def _check(self) -> Self:
        with refused():
            Windows(start=0, every=self.every)
        if self.timezone is None:
            refuse([*self._of_times()])
        else:
            refuse([*self._of_dates(self.timezone)])
        if self.until is not None and self._moment(self.until) <= self._moment(self.start):
            refuse([(("until",), f"must be after start, {_text(self.start)}")])
        refuse([*self._of_end()])
        return self

    @property
    def calendar(self) -> Calendar | None:
        """The calendar by which windows begin and end; None if all have the same length."""
        if self.timezone is None or isinstance(self.start, datetime):
            return None
        return Calendar(self.timezone, self.start, self.every)

    @property
    def windows(self) -> int | None:
        """Number of windows; None without an end."""
        if self.until is None:
            return None
        if self.calendar is None:
            return (self._moment(self.until) - self._moment(self.start)) // self.every
        return len(self.bounds(0).ends or ())

    def bounds(self, moment: int) -> Windows:
        """Return the bounds of all windows; by a calendar without an end, up to 50 years after a moment."""
        if self.calendar is None:
            return Windows(start=self._moment(self.start), every=self.every)
        if self.until is None:
            return self.calendar.ahead(moment)
        assert not isinstance(self.until, datetime)
        return self.calendar.until(self.until)

    @property
    def slack(self) -> int:
        """Slack in microseconds: any m consecutive windows are at least m * every - slack long.

        Without an end, this covers the first 50 years of the release.
        """
        return self.bounds(0).slack

    def _moment(self, moment: datetime | date) -> int:
        if isinstance(moment, datetime):
            return microseconds(moment)
        assert self.timezone is not None
        return begins(self.timezone, moment)

    def _of_times(self) -> list[Problem]:
        if self.every % MONTH == 0:
            return [(("timezone",), "missing; months depend on a time zone: add timezone: Europe/Paris")]
        problems: list[Problem] = []
        for key in ("start", "until"):
            given = getattr(self, key)
            if given is not None and not isinstance(given, datetime):
                try:
                    parse_time(given.isoformat())
                except ValueError as error:
                    problems.append(((key,), f"{error}; or add timezone: with the zone whose days are meant"))
        return problems

    def _of_dates(self, zone: str) -> list[Problem]:
        problems: list[Problem] = []
        for key in ("start", "until"):
            given = getattr(self, key)
            if isinstance(given, datetime):
                message = f"with timezone, expected a date, which begins at its first instant in {zone}"
                message += f"; write {given.date()}"
                problems.append(((key,), message))
        if problems:
            return problems
        if self.every % DAY and self.every % MONTH:
            message = f"{duration_text(self.every)} is as long in every time zone; remove timezone, or use whole days, "
            return [(("every",), message + "weeks or months, such as 1d, 1w or 1mo")]
        assert isinstance(self.start, date)
        if self.every % MONTH == 0 and self.start.day > 1:
            first = self.start.replace(day=1)
            after = (first + timedelta(days=31)).replace(day=1)
            return [(("start",), f"windows of months begin with the first of one; use {first} or {after}")]
        try:
            zone_of(zone)
        except ValueError as error:
            return [(("timezone",), f"{error}; install another version of tzdata")]
        return []

    def _of_end(self) -> list[Problem]:
        every = duration_text(self.every)
        if self.calendar is None:
            if self.until is None or not isinstance(self.start, datetime):
                return []
            windows, rest = divmod(self._moment(self.until) - self._moment(self.start), self.every)
            if rest:
                fits = " or ".join(_ends(self.start, windows, self.every))
                return [(("until",), f"windows of {every} from start do not end there; use {fits}")]
            if windows > MOST_WINDOWS:
                message = f"{windows:,} windows until the end; at most {MOST_WINDOWS:,}, take longer ones"
                return [(("every",), message)]
            return []
        if self.until is not None:
            assert isinstance(self.start, date)
            windows = (self.until - self.start) // timedelta(microseconds=self.every)
            if windows > MOST_DAYS:
                return [(("until",), f"{windows:,} windows until then; at most {MOST_DAYS:,}, take longer ones")]
            around = self.calendar.around(self.until)
            if self.until not in around:
                fits = " or ".join(map(str, around)) or "a shorter every"
                return [(("until",), f"windows of {every} from start do not end there; use {fits}")]
        try:
            self.bounds(0)
        except ValueError:
            message = f"its clocks skip a whole date by {tzdata()}, so that a window would be empty; use longer windows"
            return [(("timezone",), f"{message}, or continue with the version of tzdata that the release began with")]
        return []


def _text(moment: datetime | date) -> str:
    return time_text(moment) if isinstance(moment, datetime) else moment.isoformat()


def _ends(start: datetime, windows: int, every: int) -> list[str]:
    """Return the ends of the first `windows` windows and of one more, if these times exist."""
    ends = [start + windows * every * MICROSECOND] if windows else []
    with suppress(OverflowError):  # past the year 9999
        ends.append(start + (windows + 1) * every * MICROSECOND)
    return [time_text(end) for end in ends] or ["a shorter every"]
