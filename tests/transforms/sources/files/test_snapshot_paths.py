"""Files of a snapshot, its time, and missing files."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.spec.times import microseconds
from transforms.common.errors import InputError, SpecError
from transforms.common.source import Source
from transforms.sources.files.snapshot_paths import (
    base_of,
    instant_of,
    path_at,
    refuse_gaps,
    snapshot_files,
)
from transforms.sources.formats.snapshots import path_problem
from transforms.sources.inspection import named

DAY = timedelta(days=1)
HOUR = 3_600_000_000


def source(*paths: Path | str, every: int = 24 * HOUR, timezone: str | None = None, format_: str = "csv") -> Source:
    return Source(
        format=format_,
        paths=tuple(map(str, paths)),
        entry="id",
        time=None,
        before=None,
        after=None,
        timezone=timezone,
        every=every,
    )


def at(text: str) -> int:
    return microseconds(datetime.fromisoformat(text))


def files(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("id\na\n")
    return [str(folder / name) for name in names]


def found(told: Source, folder: Path) -> list[str]:
    return [file.path.removeprefix(f"{folder}/") for file in snapshot_files(told)]


def test_files_are_in_the_order_of_their_dates(tmp_path: Path) -> None:
    files(tmp_path, "31.12.2025/b.csv", "31.12.2025/a.csv", "01.01.2026/c.csv", "02.01.2026/a.csv", "02.01.2026/a.txt")

    told = source(tmp_path / "%d.%m.%Y/*.csv")

    assert found(told, tmp_path) == ["31.12.2025/a.csv", "31.12.2025/b.csv", "01.01.2026/c.csv", "02.01.2026/a.csv"]
    assert instant_of(told, f"{tmp_path}/31.12.2025/b.csv") == at("2025-12-31T00:00:00Z")


def test_a_path_may_begin_with_the_date_and_repeat_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path, "2026-01-01.csv", "2026/2026-01-02.csv", "x2026-01-03.csv", "100%/2026-01-04.csv")
    monkeypatch.chdir(tmp_path)

    assert found(source("%Y-%m-%d.csv"), tmp_path) == ["./2026-01-01.csv"]
    assert found(source("x%Y-%m-%d.csv"), tmp_path) == ["./x2026-01-03.csv"]
    assert found(source("%Y/%Y-%m-%d.csv"), tmp_path) == ["./2026/2026-01-02.csv"]
    assert found(source("100%%/%Y-%m-%d.csv"), tmp_path) == ["./100%/2026-01-04.csv"]


@given(st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31)), st.sampled_from(["UTC", "Asia/Kolkata"]))  # noqa: DTZ001
def test_an_instant_survives_conversion_to_a_path(moment: datetime, timezone: str) -> None:
    path = "d/%Y/%m%d-%H.%M.%S/%d/*.csv"
    told = source(path, timezone=timezone)
    instant = microseconds(moment.replace(microsecond=0, tzinfo=UTC))

    assert instant_of(told, path_at(path, instant, timezone)) == instant


@pytest.mark.parametrize(
    ("timezone", "name", "wanted"),
    [
        (None, "2026-03-29.csv", "2026-03-29T00:00:00Z"),
        ("Europe/Berlin", "2026-03-29.csv", "2026-03-28T23:00:00Z"),
        ("Europe/Berlin", "2026-03-30.csv", "2026-03-29T22:00:00Z"),
        ("America/New_York", "2026-01-01.csv", "2026-01-01T05:00:00Z"),
    ],
)
def test_dates_are_those_of_the_time_zone(timezone: str | None, name: str, wanted: str) -> None:
    assert instant_of(source("%Y-%m-%d.csv", timezone=timezone), f"./{name}") == at(wanted)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("2026-02-30.csv", "%Y-%m-%d.csv"),
        ("2026-13-01.csv", "%Y-%m-%d.csv"),
        ("0000-01-01.csv", "%Y-%m-%d.csv"),
        ("2026-01-01-24.csv", "%Y-%m-%d-%H.csv"),
        ("2025/2026-01-01.csv", "%Y/%Y-%m-%d.csv"),
    ],
)
def test_a_file_that_matches_without_a_date_is_named(tmp_path: Path, name: str, path: str) -> None:
    (file,) = files(tmp_path, name)

    with pytest.raises(InputError, match="its path holds no date") as error:
        snapshot_files(source(tmp_path / path))

    assert str(error.value).startswith(f"{file}: ")


def test_a_snapshot_needs_files_of_every_path(tmp_path: Path) -> None:
    paths = (tmp_path / "eu-%Y%m%d.csv", tmp_path / "us-%Y%m%d.csv")
    files(tmp_path, "eu-20260101.csv", "us-20260101.csv", "us-20260102.csv")

    with pytest.raises(InputError) as error:
        snapshot_files(source(*paths))
    assert str(error.value).startswith(
        f"{tmp_path}/eu-20260102.csv: missing, while {tmp_path}/us-20260102.csv is there"
    )

    files(tmp_path, "eu-20260102.csv")
    assert found(source(*paths), tmp_path) == [
        "eu-20260101.csv",
        "us-20260101.csv",
        "eu-20260102.csv",
        "us-20260102.csv",
    ]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("a/%Y-%m-%d.csv", None),
        ("a/%Y%m%d/*.csv.gz", None),
        ("a/%Y%m%d%H%M%S.csv.zst", None),
        ("gs://a/%Y%m%d.csv.bz2", None),
        ("a/*.csv", "%Y is missing"),
        ("a/%Y-%m.csv", "%d is missing"),
        ("a/%y-%m-%d.csv", "%y is not one of"),
        ("a/%Y-%m-%d%.csv", "%. is not one of"),
        ("a/%Y-%m-%d.csv%", "% is not one of"),
        ("a/%Y-%m-%d", "the end of the path says the format"),
        ("a/%Y-%m-%d.parquet.gz", "the end of the path says the format"),
        ("a/%Y-%m-%d.parquet", "all snapshots must be of one format"),
        ("a/%Y-%m-%d.jsonl", "the end of the path says the format"),
    ],
)
def test_unsuitable_paths_are_described(path: str, problem: str | None) -> None:
    told = path_problem(path, "b/%Y-%m-%d.csv")
    assert told is None if problem is None else problem in (told or "")
    if problem is None:
        assert named(source(path, format_="snapshots")).format == "csv"
    else:
        with pytest.raises(SpecError, match=r"changelog\.path"):
            named(source("b/%Y-%m-%d.csv", path, format_="snapshots"))


# Missing snapshots


def names(first: str, days: Sequence[int]) -> list[str]:
    return [f"./{datetime.fromisoformat(first) + day * DAY:%Y-%m-%d}.csv" for day in days]


def missing(told: Source, paths: Sequence[str], until: str = "1970-01-01T00:00:00Z") -> str | None:
    """Return the message about missing snapshots, without its advice."""
    try:
        refuse_gaps(told, paths, until=at(until))
    except InputError as error:
        return str(error).split(";")[0]
    return None


DAILY = source("%Y-%m-%d.csv")


def test_a_gap_is_reported_with_the_missing_file() -> None:
    assert missing(DAILY, names("2026-01-01", range(5))) is None
    assert missing(DAILY, names("2026-01-01", [0, 1, 3])) == "snapshots are missing: 2026-01-03.csv"
    assert missing(DAILY, names("2026-01-01", [0, 3])) == "snapshots are missing: 2026-01-02.csv, 2026-01-03.csv"
    many = missing(DAILY, names("2026-01-01", [0, 400]))
    assert many is not None
    assert (many.count(".csv"), many.endswith(", ...")) == (5, True)


def test_snapshots_are_expected_up_to_the_end_of_the_windows() -> None:
    paths = names("2026-01-01", range(3))
    assert missing(DAILY, paths, "2026-01-03T23:59:59Z") is None
    assert missing(DAILY, paths, "2026-01-04T00:00:00Z") == "snapshots are missing: 2026-01-04.csv"
    assert missing(DAILY, paths, "2025-12-01T00:00:00Z") is None


def test_an_additional_snapshot_is_reported() -> None:
    told = source("%Y-%m-%d-%H.csv")
    paths = [f"./2026-01-{day:02d}-06.csv" for day in (1, 2, 3)]
    assert missing(told, paths) is None
    between = missing(told, [*paths, "./2026-01-02-07.csv"])
    assert between is not None
    assert between.startswith("./2026-01-02-07.csv: a snapshot between those that are changelog.every apart")


@pytest.mark.parametrize("timezone", ["Europe/Berlin", "America/Havana", "Asia/Beirut", "Australia/Lord_Howe"])
def test_days_are_calendar_days_if_clocks_change(timezone: str) -> None:
    told = source("%Y-%m-%d.csv", timezone=timezone)
    assert missing(told, names("2025-01-01", range(730))) is None
    assert (
        missing(told, names("2025-01-01", [*range(300), *range(301, 730)])) == "snapshots are missing: 2025-10-28.csv"
    )


def test_hours_are_equal_steps_if_clocks_change() -> None:
    told = source("%Y-%m-%d-%H.csv", every=HOUR, timezone="Europe/Berlin")
    spring = [f"./2026-03-29-{hour:02d}.csv" for hour in (0, 1, 3, 4)]
    assert missing(told, spring) is None
    weekly = source("%Y-%m-%d.csv", every=7 * 24 * HOUR, timezone="Europe/Berlin")
    assert missing(weekly, names("2026-01-01", range(0, 366, 7))) is None


# Increments


def test_the_last_snapshot_that_was_read_is_the_base(tmp_path: Path) -> None:
    told = source(tmp_path / "%Y-%m-%d/*.csv")
    paths = files(tmp_path, "2026-01-01/a.csv", "2026-01-02/a.csv", "2026-01-02/b.csv", "2026-01-03/a.csv")
    listed = {file.path: file for file in snapshot_files(told)}
    read = {path: listed[path] for path in paths[:3]}

    assert [file.path for file in base_of(told, read, listed.values())] == paths[1:3]

    (late,) = files(tmp_path, "2026-01-02/c.csv")
    with pytest.raises(InputError, match="comes late") as error:
        base_of(told, read, snapshot_files(told))
    assert str(error.value).startswith(f"{late}: ")

    Path(late).unlink()
    Path(paths[2]).unlink()
    with pytest.raises(InputError, match="gone, but the next snapshot is compared with it") as error:
        base_of(told, read, snapshot_files(told))
    assert str(error.value).startswith(f"{paths[2]}: ")
