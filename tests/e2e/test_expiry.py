"""Logs of events whose states expire: levels are those of plain SQL over the log, in one run and in several."""

import json
from contextlib import chdir
from itertools import pairwise
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from benchmarks.flink.live import exact_sums
from examples.aircraft import build
from pipelines.cli import main
from pipelines.epochs.plans import plan_of
from pipelines.spec.load import load
from tests.e2e.specs import CommandLine, changelog, published
from tests.e2e.specs import write as write_rows
from tests.e2e.stays import flights, infections, transplants
from tests.e2e.test_intervals import levels, write
from tests.e2e.test_streaming import ENDS, by_day, late, prepare, stream

SPEC = """\
release: active
changelog: {{format: {format}, path: "data/*.{format}", entry: id, time: begin, expires: {expires}{more}}}
privacy: {{unit: {unit}, epsilon: 1.0e+11, delta: 1.0e-9, accounting: zcdp, mechanism: gaussian,
  constraint: {{at_most: 400}}}}
schedule: {{start: {start}T00:00:00Z, every: {every}, until: {until}T00:00:00Z}}
queries:
  - {{name: active, measure: count, by: {{cell: [{cells}]}}, publish: [level], strategy: disjoint}}
output: {{public: public, private: private}}
"""
"""With hardly any noise: values are exact numbers when they are rounded."""

ACTIVE = """
    with latest as (
        select w.until, id, arg_max(cell, begin) as cell, max(begin) as at
        from windows w join events e on e.begin < w.until group by all
    )
    select epoch_us(w.until)::bigint as until, c.cell, count(l.id)::bigint
    from windows w cross join (select unnest($cells::varchar[]) as cell) c
    left join latest l on l.until = w.until and l.cell = c.cell and l.at + $expires::interval >= w.until
    group by all order by all
"""


def expected(events: pd.DataFrame, ends: list[int], cells: str, expires: str) -> list[tuple[int, str, int]]:
    windows = pd.DataFrame({"until": [pd.Timestamp(end, unit="us", tz="UTC") for end in ends]})
    assert len(windows)
    values = {"cells": [cell.strip(" '") for cell in cells.split(",")], "expires": expires}
    return duckdb.connect().execute(ACTIVE, values).fetchall()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("data", "format_", "unit", "expires", "days"),
    [
        (infections, "csv", "owner", "26w", 182),
        (transplants, "jsonl", "entry", "60d", 60),
        (flights, "parquet", "entry", "1d", 1),
    ],
    ids=["infections", "transplants", "flights"],
)
def test_levels_are_those_of_plain_sql(data, format_, unit, expires, days, tmp_path, capsys):
    stays, asked = data()
    events = stays.assign(id=stays["tail"]) if "tail" in stays else stays
    events = events.drop_duplicates(["id", "begin"], keep="last")
    (tmp_path / "spec.yaml").write_text(SPEC.format(**asked, format=format_, unit=unit, expires=expires, more=""))
    ends = pd.date_range(asked["start"], asked["until"], periods=4, tz="UTC").ceil("D")[1:]
    for number, (end, since) in enumerate(zip(ends, [pd.Timestamp("1900-01-01", tz="UTC"), *ends], strict=False)):
        part = events[(events["begin"] >= since) & (events["begin"] < end)]
        write(part, tmp_path / f"data/events-{number}.{format_}")
        said = CommandLine(tmp_path, capsys)("run", "spec.yaml", f"--until={end:%Y-%m-%dT%H:%M:%SZ}")
        assert said.code == 0, said.err

    found = levels(tmp_path)

    assert found == sorted(expected(events, sorted({end for end, _, _ in found}), asked["cells"], f"{days} days"))
    assert max(value for _, _, value in found) >= 5


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "before: before_",
            "expires: only for a log of events, which has no states before; remove before:, or expires:",
        ),
        ("expires: 0d", "expected a duration above zero, such as 28d"),
    ],
)
def test_expiry_of_other_changelogs_is_refused(keys, message, tmp_path, capsys):
    spec = SPEC.format(
        start="2026-01-01", every="1d", until="2026-01-08", cells="a", format="csv", unit="entry", expires="1d", more=""
    )
    given = "expires: 0d" if keys.startswith("expires") else f"expires: 1d, {keys}"
    (tmp_path / "spec.yaml").write_text(spec.replace("expires: 1d", given))

    said = CommandLine(tmp_path, capsys)("plan", "spec.yaml")

    assert said.code == 2
    assert message in said.err


def test_a_log_of_keys_and_times_alone_has_states(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/log.csv").write_text("id,begin\n1,2026-01-01T08:00:00Z\n2,2026-01-02T08:00:00Z\n")
    asked = {"start": "2026-01-01", "every": "1d", "until": "2026-01-06", "cells": "a", "expires": "2d"}
    spec = SPEC.format(**asked, format="csv", unit="entry", more="")
    (tmp_path / "spec.yaml").write_text(spec.replace("by: {cell: [a]}, ", ""))

    said = CommandLine(tmp_path, capsys)("run", "spec.yaml")

    assert said.code == 0, said.err
    values = published(tmp_path, "estimates").sort_by("window_end")["value"].to_pylist()
    assert [round(value) for value in values] == [1, 2, 1, 0, 0]


def test_the_copy_of_a_log_expires_as_well(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/log.csv").write_text("id,cell,begin\n1,a,2026-01-01T08:00:00Z\n")
    asked = {"start": "2026-01-01", "every": "1d", "until": "2026-01-06", "cells": "a", "expires": "2d"}
    (tmp_path / "spec.yaml").write_text(SPEC.format(**asked, format="csv", unit="entry", more=""))

    said = CommandLine(tmp_path, capsys)("changelog", "spec.yaml", "-o", "copy", "--json")

    assert json.loads(said.out)["changelog"]["expires"] == "2d"


UNITS = """
    select epoch_us(w.until)::bigint as until, c.cell, count(distinct owner)::bigint
    from windows w cross join (select unnest($cells::varchar[]) as cell) c
    left join events e on e.cell = c.cell and e.begin < w.until and e.begin + interval '1 day' >= w.until
    group by all order by all
"""


def test_units_with_an_event_in_the_last_day_are_those_of_plain_sql(tmp_path, capsys):
    """Aircraft that departed from each airport, in three runs."""
    stays, asked = flights()
    events = stays.assign(owner=stays["tail"])[stays["tail"].notna()]
    spec = SPEC.format(**asked, format="parquet", unit="owner", expires="1d", more="")
    (tmp_path / "spec.yaml").write_text(spec.replace("measure: count", "measure: units"))
    ends = pd.date_range(asked["start"], asked["until"], periods=4, tz="UTC").ceil("D")
    for number, (since, end) in enumerate(pairwise(ends)):
        write(events[(events["begin"] >= since) & (events["begin"] < end)], tmp_path / f"data/{number}.parquet")
        said = CommandLine(tmp_path, capsys)("run", "spec.yaml", f"--until={end:%Y-%m-%dT%H:%M:%SZ}")
        assert said.code == 0, said.err

    found = levels(tmp_path)

    windows = pd.DataFrame(
        {"until": [pd.Timestamp(end, unit="us", tz="UTC") for end in sorted({row[0] for row in found})]}
    )
    assert len(windows)
    values = {"cells": ["EWR", "JFK", "LGA"]}
    assert found == sorted(duckdb.connect().execute(UNITS, values).fetchall())
    assert max(value for _, _, value in found) > 100


def test_a_stream_of_late_events_has_the_sums_of_scheduled_runs(tmp_path, monkeypatch):
    """Events come a day late and twice, some after their states have ended."""
    days = late(by_day(changelog()))
    changes = ("  before: before_\n", "  expires: 30h\n")
    folders = [prepare(make(tmp_path / name), changes) for name in ("runs", "stream")]
    for day, rows in enumerate(days):
        write_rows(folders[0] / f"data/day-{day}.parquet", rows)
        with chdir(folders[0]):
            assert main(["run", "spec.yaml", f"--until={ENDS[day]:%Y-%m-%dT%H:%M:%SZ}", "--shards=3"]) == 0
    monkeypatch.chdir(folders[1])
    write_rows(folders[1] / "data/day-0.parquet", days[0])

    stream(days)

    assert exact_sums(folders[1]) == exact_sums(folders[0])
    assert any(exact_sums(folders[0]).values())


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_the_example_counts_the_aircraft_of_plain_sql(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build.main()
    spec = Path(build.__file__).parent / "week.yaml"
    (tmp_path / "week.yaml").write_text(spec.read_text())

    said = CommandLine(tmp_path, capsys)("evaluate", "week.yaml", "--runs=1", "--truth=truth.parquet")

    assert said.code == 0, said.err
    query = """
        select count(*), count(*) filter (exact = (
            select count(distinct aircraft) from 'out/aircraft/departures.parquet'
            where departed_at < window_end and departed_at + interval '7 days' >= window_end
        )) from 'truth.parquet'
    """
    assert duckdb.connect().execute(query).fetchone() == (365, 365)


@pytest.mark.parametrize(
    ("span", "sentence"),
    [
        ("9d", "An event changes states for 1w, so a span of 1w2d protects all events of any 2d."),
        ("7d", "An event changes states for 1w, so a span of 1w protects no event as a whole."),
    ],
)
def test_the_statement_says_what_a_span_protects_of_events(span, sentence, tmp_path):
    asked = {"start": "2026-01-01", "every": "1d", "until": "2026-01-08", "cells": "a", "expires": "7d"}
    spec = SPEC.format(**asked, format="csv", unit="entry", more="")
    (tmp_path / "spec.yaml").write_text(spec.replace("constraint: {at_most: 400}", f"protects: {{span: {span}}}"))

    assert sentence in plan_of(load(tmp_path / "spec.yaml")).conditions
