"""Durations and times, as text and as microseconds."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.spec.durations import LONGEST, duration_text, parse_duration
from pipelines.spec.times import microseconds, parse_time, time_text


@given(st.integers(0, LONGEST))
def test_a_duration_written_and_read_is_the_same(length: int) -> None:
    assert parse_duration(duration_text(length)) == length


@pytest.mark.parametrize(("text", "seconds"), [("1d", 86_400), ("2w", 1_209_600), ("90m", 5_400), ("1h30m", 5_400)])
def test_units_have_their_usual_lengths(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds * 1_000_000


@pytest.mark.parametrize(
    "text",
    ["", "1", "d", "1.5h", "-1d", "1 d", "1D", "1y", "P1D", "1d ", "1d1d", "1٣d", "9999999w"],
)
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|unit twice"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "meant"), [("7 days", "7d"), ("daily", "1d"), ("1 Hour 30 mins", "1h30m"), ("1D", "1d")]
)
def test_words_for_a_duration_get_a_valid_suggestion(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"not {text!r}; did you mean {meant!r}"):
        parse_duration(text)
    assert parse_duration(meant)


def test_a_guessed_unit_for_months_gets_the_correct_one() -> None:
    with pytest.raises(ValueError, match=r"a month is 1mo, and only schedule\.every knows it"):
        parse_duration("1M")


@given(st.datetimes(), st.integers(-14 * 60, 14 * 60))
def test_a_time_written_and_read_is_the_same_moment(naive: datetime, minutes: int) -> None:
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))

    assert microseconds(parse_time(time_text(moment))) == microseconds(moment)


def test_microseconds_are_exact_beyond_the_precision_of_floats() -> None:
    assert microseconds(parse_time("2262-04-11T23:47:16.854775Z")) == 9_223_372_036_854_775


def test_a_time_without_a_zone_is_refused_with_two_ways_to_write_it() -> None:
    with pytest.raises(ValueError, match=r"no zone; write 2013-01-01T09:00:00Z for UTC, or .*-05:00"):
        parse_time("2013-01-01T09:00")
