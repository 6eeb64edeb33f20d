"""Times of all formats: one grammar for texts, one rule for clocks, independent of other rows."""

import os
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.fuzz.values import DEAD, instant
from transforms.common import zones
from transforms.common.instants import NO_ZONE, NOT_UNDERSTOOD, OUT_OF_RANGE, to_microseconds
from transforms.common.kinds import to_kind
from transforms.common.zones import zone_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

DATES = (
    *("2013-02-08", "2012-02-29", "2013-02-29", "1900-02-29", "2000-02-29", "2013-04-31", "0000-01-01", "0001-01-01"),
    *("9999-12-31", "10000-01-01", "-001-01-01", "+2013-02-08", "2013-13-01", "2013-00-10", "2013-02-00", "2013-2-8"),
    *("20130208", "2013-039", "2013-W06-5", "13-02-08", "\u0662\u0660\u0661\u0663-02-08", "2013-02", "2013/02/08", ""),
)
CLOCKS = (
    *("", "T08:30", " 08:30:15", "T08:30:15.5", "T23:59:59.999999", "T08:30:15.1234567", "t08:30", "  08:30", "T08"),
    *("T", "T8:30", "T24:00", "T24:00:00", "T23:60", "T23:59:60", "T08:30:", "T08:30:15.", "T08:30:15,5", "T083015"),
    *("T08:30.5", "T-8:30", "T08:30:15.5x", " 08:30 ", "T08:30:15.000000" + "9" * 40, "08:30", "T08:30\n", "T08:30\0"),
)
ZONES = (
    *("", "Z", "z", "+05", "-05", "+0530", "+05:30", "-00:00", "+00", "+23:59", "+24:00", "+05:60", "+5", "+5:30"),
    *(" Z", "Z ", "ZZ", "+", "UTC", "+05:3", "+05:300", "\u221205:00", "+05:30:00", "[Europe/Paris]"),
)

CHANGES = (
    "1972-01-07",
    "2011-12-30",
    "2024-03-10",
    "2024-03-31",
    "2024-04-07",
    "2024-10-06",
    "2024-10-27",
    "2024-11-03",
)
"""Days on which some clocks skip or repeat time."""


@pytest.mark.slow
@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_each_text_follows_the_grammar_next_to_any_others(zone):
    texts = ["".join(parts) for parts in product(DATES, CLOCKS, ZONES)]
    random.Random(3).shuffle(texts)
    expected = [instant(text, zone) for text in texts]

    values, bad = to_microseconds(pa.array(texts), zone)

    assert [DEAD if value is None else value for value in values.to_pylist()] == expected
    assert {place for positions, _ in bad for place in positions.tolist()} == {
        place for place, value in enumerate(expected) if value is DEAD
    }
    assert sum(value is not DEAD for value in expected) > 250
    times = [place for place, value in enumerate(expected) if value is not DEAD]
    for place in times + random.Random(4).sample(range(len(texts)), 300):
        alone, reasons = to_microseconds(pa.array(texts[place : place + 1]), zone)
        assert alone[0] == values[place], texts[place]
        assert bool(reasons) == (expected[place] is DEAD)


def test_hours_without_minutes_are_invalid_next_to_any_others():
    for company in ([], ["2013-02-08T08:00:00Z"], ["noon"], ["2013-02-08T08:00:00"]):
        values, bad = to_microseconds(pa.array(["2013-02-08T08Z", "2013-02-08T08+05", *company]), None)

        assert values[:2].null_count == 2
        assert {0, 1} <= {place for found, reason in bad if reason == NOT_UNDERSTOOD for place in found.tolist()}


def test_a_local_time_without_a_zone_has_another_reason_than_an_invalid_text():
    values, bad = to_microseconds(pa.array(["2013-02-08", "2013-02-08 08:00", "2013-02-30", "noon", None]), None)

    reasons = {place: reason for found, reason in reversed(bad) for place in found.tolist()}
    assert reasons == {0: NO_ZONE, 1: NO_ZONE, 2: NOT_UNDERSTOOD, 3: NOT_UNDERSTOOD}
    assert values.null_count == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Monrovia"]
)
def test_local_times_that_the_clocks_skip_or_repeat_are_read_with_the_offset_from_before(zone):
    choose = random.Random(zone)
    first = datetime.fromisoformat("1880-01-01")
    locals_ = [first + timedelta(seconds=choose.randrange(155 * 31_557_600)) for _ in range(3000)]
    for day in CHANGES:
        locals_ += [datetime.fromisoformat(day) + timedelta(seconds=61 * step) for step in range(1440)]

    of_texts, bad = to_microseconds(pa.array([local.isoformat() for local in locals_]), zone)
    of_timestamps = [to_microseconds(pa.array(locals_, pa.timestamp(unit)), zone)[0] for unit in ("s", "ms", "us")]

    assert not bad
    assert of_texts.to_pylist() == [instant(local.isoformat(), zone) for local in locals_]
    assert all(values.equals(of_texts) for values in of_timestamps)


def test_a_date_is_midnight_in_the_named_zone_as_in_text():
    dates = pa.array(["2013-02-08", "2013-07-08"])
    for values in (dates, dates.cast(pa.date32()), dates.cast(pa.date64())):
        assert to_microseconds(values, "Europe/Berlin")[0].to_pylist() == [1_360_278_000_000_000, 1_373_234_400_000_000]
        assert [reason for _, reason in to_microseconds(values, None)[1]] == [NO_ZONE]


@pytest.mark.parametrize("least", [True, False])
@pytest.mark.parametrize("type_", [pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.date32()])
def test_one_time_out_of_range_does_not_change_the_others(type_, least):
    end = np.iinfo(np.int32 if pa.types.is_date32(type_) else np.int64)
    ticks = np.array([0, end.min + 1 if least else end.max, 1], dtype=end.dtype)

    values, bad = to_kind(pa.array(ticks).view(type_), "timestamp", "Europe/Berlin")

    assert values.is_valid().to_pylist() == [True, False, True]
    assert [(positions.tolist(), reason) for positions, reason in bad] == [([1], OUT_OF_RANGE)]


def test_local_times_follow_the_package_tzdata():
    """A row's time does not depend on a worker's zone files, and windows of a calendar use the same clocks."""
    choose = np.random.default_rng(5)
    for name in ("Africa/Casablanca", "Europe/Berlin", "America/Havana", "Asia/Tehran", "Pacific/Apia", "UTC"):
        known, (begins_, _) = zone_of(name), zones._clocks(name)
        edges = [begins_ + step for step in (-1, 0, 1, -1_800_000_000, 1_800_000_000)]
        local = np.concatenate([*edges, choose.integers(-(10**15), 2 * 10**15, 200)])
        naive = [EPOCH.replace(tzinfo=None) + timedelta(microseconds=int(one)) for one in local]
        expected = [(one.replace(tzinfo=known).astimezone(UTC) - EPOCH) // timedelta(microseconds=1) for one in naive]

        found, _ = to_microseconds(pa.array(local).cast(pa.timestamp("us")), name)

        assert found.to_pylist() == expected, name


@pytest.mark.slow
def test_zone_files_of_the_machine_are_ignored(tmp_path: Path):
    """A machine has the clocks of Tokyo in its file for Berlin."""
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe/Berlin").write_bytes(files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes())
    code = (
        "import pyarrow as pa; from transforms.common.instants import to_microseconds\n"
        "print(to_microseconds(pa.array(['2026-01-01']), 'Europe/Berlin')[0][0].as_py())"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONTZPATH": str(tmp_path), "TZDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(done.stdout) == (datetime(2025, 12, 31, 23, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
