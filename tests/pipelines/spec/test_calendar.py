"""Days, weeks and months of a time zone: where they begin, what a spec may say, and what if tzdata changes."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from pipelines.epochs.calendar_bounds import bounds_of, continued, moved, refuse_shorter
from pipelines.epochs.job import timeline_of
from pipelines.epochs.plans import plan_of
from pipelines.spec.calendar import DAY, Calendar, begins
from pipelines.spec.durations import MONTH
from pipelines.spec.times import microseconds, moment_text, parse_time
from pipelines.store.commit import RELEASE, Commit
from pipelines.store.manifest import manifest_json
from privacy.accounting.accounting import Budget
from tests.pipelines.spec_text import GOOD, changed, loaded, problems
from transforms.common.errors import RefusedError
from transforms.common.windows import Windows

HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("zone", "day", "instant"),
    [
        ("UTC", date(2024, 2, 29), "2024-02-29T00:00:00Z"),
        ("Europe/Berlin", date(2026, 3, 29), "2026-03-28T23:00:00Z"),
        ("Europe/Berlin", date(2026, 3, 30), "2026-03-29T22:00:00Z"),
        # Clocks skip midnight: 23:59 is followed by 01:00.
        ("America/Sao_Paulo", date(2018, 11, 4), "2018-11-04T03:00:00Z"),
        # From 23:30 they go to 00:30, so the date begins before what would have been midnight.
        ("America/Toronto", date(1919, 3, 31), "1919-03-31T04:30:00Z"),
        # Midnight comes twice.
        ("America/Havana", date(2026, 11, 1), "2026-11-01T04:00:00Z"),
    ],
)
def test_a_day_begins_with_the_first_instant_of_its_date(zone: str, day: date, instant: str) -> None:
    assert moment_text(begins(zone, day)) == instant


def test_months_weeks_and_days_are_those_of_the_calendar() -> None:
    months = Calendar("Europe/Berlin", date(2023, 11, 1), MONTH).until(date(2024, 4, 1))
    lengths = [months.end(i + 1) - months.end(i) for i in range(5)]

    assert [length // HOUR for length in lengths] == [30 * 24, 31 * 24, 31 * 24, 29 * 24, 31 * 24 - 1]
    assert len(Calendar("UTC", date(2024, 1, 1), 3 * MONTH).until(date(2025, 1, 1)).ends or ()) == 4
    assert len(Calendar("UTC", date(2024, 1, 1), 7 * DAY).until(date(2025, 1, 1)).ends or ()) == 52
    assert Calendar("Europe/Berlin", date(2026, 1, 1), DAY).until(date(2027, 1, 1)).slack == HOUR
    assert Calendar("UTC", date(2026, 1, 1), DAY).until(date(2027, 1, 1)).slack == 0


def by_calendar(
    start: str = "2026-03-01", every: str = "1d", until: str = "2026-05-01", zone: str = "Europe/Berlin"
) -> str:
    text = changed("start: 2026-01-01T00:00:00Z", f"start: {start}\n  timezone: {zone}")
    return changed("every: 1d", f"every: {every}", changed("until: 2026-02-01T00:00:00Z", f"until: {until}", text))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            by_calendar("2026-03-01T00:00:00+01:00"),
            "start: with timezone, expected a date, which begins at its first instant in Europe/Berlin",
        ),
        (by_calendar(every="12h"), "every: 12h is as long in every time zone; remove timezone, or use whole days"),
        (
            by_calendar("2026-01-31", "1mo"),
            "start: windows of months begin with the first of one; use 2026-01-01 or 2026-02",
        ),
        (by_calendar("2026-03-01", "1w"), "start: weeks begin on Monday; use 2026-02-23 or 2026-03-02, or every: 7d"),
        (
            by_calendar("2026-03-01", "7d"),
            "until: windows of 1w from start do not end there; use 2026-04-26 or 2026-05-03",
        ),
        (by_calendar(until="2026-03-01"), "until: must be after start, 2026-03-01"),
        (by_calendar(until="2026-02-30"), "until: expected a date such as 2013-01-01, not '2026-02-30'"),
        (by_calendar(until="2926-03-01"), "until: 328,718 windows until then; at most 100,000"),
        (by_calendar("2011-12-01", until="2012-02-01", zone="Pacific/Apia"), "timezone: its clocks skip a whole date"),
        (changed("every: 1d", "every: 1mo"), "timezone: missing; months depend on a time zone"),
        (
            changed("2026-02-01T00:00:00Z", "2026-02-01"),
            "until: the time has no zone; write 2026-02-01T00:00:00Z for UTC",
        ),
        (
            changed("[level, change]", "[level, {sliding: 1mo}]", by_calendar()),
            "queries[0].publish[1].sliding: windows of 1d do not add up to it; use 4w2d or 4w3d",
        ),
        (
            changed("{at_most: 4}", "{within: 1mo}", by_calendar(every="1mo")),
            "privacy.constraint.within: expected a duration such as 1d",
        ),
    ],
    ids=lambda text: "spec" if text.startswith("release") else text[:40],
)
def test_unsupported_calendar_settings_are_refused_in_one_line(text: str, error: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, text)

    assert error in problem, problem


def test_months_slide_by_months_and_a_span_meets_as_many_windows_as_it_can(tmp_path: Path) -> None:
    text = by_calendar("2026-03-01", "1mo", "2027-03-01")
    text = changed(
        "constraint: {at_most: 4}", "protects: {span: 59d}", changed("[level, change]", "[{sliding: 3mo}]", text)
    )

    spec = loaded(tmp_path, text)
    plan = plan_of(spec)

    assert spec.queries[0].publish[0].width == 3
    assert spec.schedule.length == "1 month in Europe/Berlin"
    # From 31 January to 1 March in 29 days, with 59 that is one more: three ends of months.
    assert plan.promise.boundaries == 3
    assert timeline_of(spec, microseconds(parse_time("2026-05-31T22:00:00Z"))).windows == 3


def committed(spec, ends: tuple[int, ...], start: int) -> Commit:
    return Commit(
        release=spec.release,
        epoch=1,
        spec_sha256=spec.sha256,
        spec="",
        released=0,
        windows=len(ends),
        start=start,
        until=ends[-1],
        loss=Budget(epsilon=1.0),
        statement="",
        ends=ends,
    )


def test_committed_bounds_never_move_and_other_bounds_of_tzdata_are_reported(tmp_path: Path) -> None:
    spec = loaded(tmp_path, by_calendar())
    today = bounds_of(spec, ())
    then = tuple(end - HOUR for end in today.ends[:3])  # as if the clocks had gone otherwise

    bounds = bounds_of(spec, [committed(spec, then, today.start)])

    assert (bounds.ends[:3], bounds.ends[3:]) == (then, today.ends[3:])
    assert moved(spec, [committed(spec, today.ends[:3], today.start)]) is None
    assert "has other bounds for 3 published windows" in (moved(spec, [committed(spec, then, today.start)]) or "")
    with pytest.raises(RefusedError, match=r"the next window ends at .*, but windows are published up to"):
        continued(today, today.start, [today.ends[1]])


def test_a_schedule_that_ends_before_clocks_skip_a_date_has_bounds(tmp_path: Path) -> None:
    spec = loaded(tmp_path, by_calendar("2011-12-20", until="2011-12-29", zone="Pacific/Apia"))  # skips 30 December

    bounds = bounds_of(spec, ())

    assert (bounds.start, bounds.ends[-1], len(bounds.ends)) == (spec.schedule.start, spec.schedule.until, 9)


@pytest.mark.slow
def test_a_calendar_with_shorter_windows_than_planned_ends_the_release_only_if_noise_depends_on_it(
    tmp_path: Path,
) -> None:
    by_changes = loaded(tmp_path, by_calendar())
    by_span = loaded(tmp_path, changed("constraint: {at_most: 4}", "protects: {span: 14d}", by_calendar()))
    day = [24 * HOUR] * 3 + [22 * HOUR]
    shorter = Windows(start=0, every=24 * HOUR, ends=tuple(sum(day[: i + 1]) for i in range(4)))

    refuse_shorter(plan_of(by_changes), shorter)
    with pytest.raises(RefusedError, match="windows are shorter than noise was scaled to"):
        refuse_shorter(plan_of(by_span), shorter)


def test_a_record_without_its_ends_is_no_record(tmp_path: Path) -> None:
    spec = loaded(tmp_path, by_calendar())
    whole = committed(spec, (5, 9), 1)
    RELEASE.check([whole], "commits")

    assert b'"ends": [\n' in manifest_json(RELEASE, [whole], [whole.files])
    for ends in ((9,), (9, 9), (5, 8), (1, 9)):
        with pytest.raises(RefusedError, match="epoch 1 does not continue"):
            RELEASE.check([replace(whole, ends=ends)], "commits")


def test_a_timezone_changes_the_hash_and_a_missing_one_does_not(tmp_path: Path) -> None:
    assert loaded(tmp_path, by_calendar()).sha256 != loaded(tmp_path, by_calendar(zone="Europe/Paris")).sha256
    assert '"timezone"' not in loaded(tmp_path, GOOD).text
