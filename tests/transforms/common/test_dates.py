"""Names of windows, as people write them."""

from datetime import UTC, datetime

import pytest

from transforms.common.dates import moment_name, window_name

NAMED = [
    ("2026-07-26T00:00", "2026-07-27T00:00", "26 July 2026"),
    ("2026-12-28T00:00", "2027-01-04T00:00", "week of 28 December 2026 to 3 January 2027"),
    ("2026-07-01T00:00", "2026-07-15T00:00", "1 to 14 July 2026"),
    ("2026-02-01T00:00", "2026-03-01T00:00", "February 2026"),
    ("2026-02-01T00:00", "2026-04-01T00:00", "February to March 2026"),
    ("2025-12-01T00:00", "2026-02-01T00:00", "December 2025 to January 2026"),
    ("2026-01-01T00:00", "2027-01-01T00:00", "2026"),
    ("2025-01-01T00:00", "2027-01-01T00:00", "2025 to 2026"),
    ("2026-07-26T08:00", "2026-07-26T08:30", "26 July 2026, 08:00 to 08:30"),
    ("2026-07-26T23:00", "2026-07-27T00:00", "26 July 2026, 23:00 to 24:00"),
    ("2026-07-26T22:00", "2026-07-27T06:00", "26 July 2026, 22:00 to 27 July 2026, 06:00"),
    ("2026-07-26T08:00:00", "2026-07-26T08:00:15", "26 July 2026, 08:00 to 08:00:15"),
]


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(("start", "end", "name"), NAMED, ids=[name for *_, name in NAMED])
def test_a_window_has_the_name_that_people_use(start: str, end: str, name: str) -> None:
    assert window_name(at(start), at(end)) == name


def test_midnight_is_the_end_of_a_day() -> None:
    assert moment_name(at("2026-01-01T00:00")) == "the end of 31 December 2025"
