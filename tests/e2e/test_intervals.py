"""Tables with one row for each stay: levels are those of plain SQL over the table, in one run and in nightly copies."""

from contextlib import chdir
from datetime import timedelta
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.flink.live import exact_sums
from pipelines.cli import main
from tests.e2e.specs import SCHEMA, CommandLine, Row, changelog, published
from tests.e2e.stays import flights, infections, transplants
from tests.e2e.test_streaming import ENDS, by_day, late, prepare, stream

SPEC = """\
release: stays
changelog: {{format: {format}, path: "data/*.{format}", entry: id, from: begin, to: end{more}}}
privacy: {{unit: {unit}, epsilon: 1.0e+11, delta: 1.0e-9, accounting: zcdp, mechanism: gaussian,
  constraint: {{at_most: 40}}}}
schedule: {{start: {start}T00:00:00Z, every: {every}, until: {until}T00:00:00Z}}
queries:
  - {{name: there, measure: count, by: {{cell: [{cells}]}}, publish: [level], strategy: disjoint}}
output: {{public: public, private: private}}
"""
"""With hardly any noise: values are exact numbers when they are rounded."""

LEVELS = """
    select epoch_us(w.until)::bigint as until, c.cell, count(s.id)::bigint as there
    from windows w cross join (select unnest($cells::varchar[]) as cell) c
    left join stays s on s.cell = c.cell and s.begin < w.until and (s."end" is null or s."end" >= w.until)
        and (s."end" is null or s."end" > s.begin)
    group by all order by all
"""


def write(stays: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = stays.assign(**{name: stays[name].dt.strftime("%Y-%m-%dT%H:%M:%SZ") for name in ("begin", "end")})
    texts = texts.astype(object).where(texts.notna(), None)
    if path.suffix == ".csv":
        texts.to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        texts.to_json(path, orient="records", lines=True)
    else:
        stays.to_parquet(path, index=False)


def expected(stays: pd.DataFrame, ends: list[pd.Timestamp], cells: str) -> list[tuple[int, str, int]]:
    windows = pd.DataFrame({"until": ends})
    assert len(windows)
    found = duckdb.connect().execute(LEVELS, {"cells": [cell.strip(" '") for cell in cells.split(",")]})
    return found.fetchall()


def levels(folder: Path, side: str = "estimates") -> list[tuple[int, str, int]]:
    table = published(folder, side).to_pandas()
    table = table[table["kind"] == "level"]
    rows = zip(
        table["window_end"].astype("datetime64[us, UTC]").astype("int64"), table["cell"], table["value"], strict=True
    )
    return sorted((int(end), str(cell), round(value)) for end, cell, value in rows)


@pytest.mark.parametrize(
    ("data", "format_", "unit"),
    [(infections, "csv", "owner"), (transplants, "jsonl", "id"), (flights, "parquet", "entry")],
    ids=["infections", "transplants", "flights"],
)
def test_levels_are_those_of_plain_sql(data, format_, unit, tmp_path, capsys, monkeypatch):
    stays, asked = data()
    monkeypatch.chdir(tmp_path)
    write(stays, tmp_path / f"data/stays.{format_}")
    unit = "owner" if unit == "id" else unit
    (tmp_path / "spec.yaml").write_text(SPEC.format(**asked, format=format_, unit=unit, more=""))

    said = CommandLine(tmp_path, capsys)("run", "spec.yaml", f"--until={asked['until']}T00:00:00Z")

    assert said.code == 0, said.err
    found = levels(tmp_path)
    ends = [pd.Timestamp(end, unit="us", tz="UTC") for end in sorted({end for end, _, _ in found})]
    assert found == sorted(expected(stays, ends, asked["cells"]))
    assert max(value for _, _, value in found) > 10


def test_nightly_copies_publish_the_levels_of_one_run(tmp_path, capsys):
    """Each copy has the stays that have begun, with the ends that are known by then; runs read only new copies."""
    stays, asked = transplants()
    spec = SPEC.format(**asked, format="parquet", unit="owner", more="")
    first, *nights, last = pd.date_range(asked["start"], asked["until"], periods=6, tz="UTC")
    copies, whole = tmp_path / "copies", tmp_path / "whole"
    for night in [*nights, last]:
        copy = stays[stays["begin"] < night].copy()
        copy["end"] = copy["end"].where(copy["end"] < night).astype("datetime64[us, UTC]")
        write(copy, copies / f"data/stays-{night:%Y-%m-%d}.parquet")
        (copies / "spec.yaml").write_text(spec)
        said = CommandLine(copies, capsys)("run", "spec.yaml", f"--until={night:%Y-%m-%dT%H:%M:%SZ}")
        assert said.code == 0, said.err
    write(stays.assign(end=stays["end"].astype("datetime64[us, UTC]")), whole / "data/stays.parquet")
    (whole / "spec.yaml").write_text(spec)
    said = CommandLine(whole, capsys)("run", "spec.yaml", f"--until={last:%Y-%m-%dT%H:%M:%SZ}")
    assert said.code == 0, said.err

    assert levels(copies) == levels(whole)
    assert first < nights[0]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("to: end", "from: missing; a table of stays has from: for the start and to: for the end, which may be empty"),
        ("from: begin, to: begin", "to: the same column as from; name the column of the end"),
        ("from: begin, to: id", "the same column as entry; name a column of times"),
        ("from: begin, to: end, time: at", "time: a row with from: and to: is one state; remove it"),
        ("from: begin, to: end, order: [n]", "order: a row with from: and to: is one state; remove it"),
        ("entry: id", "time: missing; add time: with the column that holds the time of a change, or from: and to:"),
    ],
)
def test_a_spec_with_half_an_interval_is_refused(keys, message, tmp_path, capsys):
    spec = SPEC.format(
        start="2026-01-01", every="1d", until="2026-01-08", cells="a", format="csv", unit="entry", more=""
    )
    keys = keys if keys.startswith("entry") else f"entry: id, {keys}"
    (tmp_path / "spec.yaml").write_text(spec.replace("entry: id, from: begin, to: end", keys))

    said = CommandLine(tmp_path, capsys)("plan", "spec.yaml")

    assert said.code == 2
    assert message in said.err


def test_unusable_intervals_are_dead_letters_and_empty_ones_are_skipped(tmp_path, capsys):
    rows = [("1", "2026-01-01", "2026-01-03"), ("2", "2026-01-03", "2026-01-02"), ("3", "2026-01-02", "soon")]
    rows += [("4", "2026-01-02", "2026-01-02"), ("5", "", "2026-01-02"), ("6", "2026-01-02", "")]
    (tmp_path / "data").mkdir()
    text = "id,cell,begin,end\n" + "".join(f"{key},a,{begin},{end}\n" for key, begin, end in rows)
    (tmp_path / "data/stays.csv").write_text(text)
    more = ", timezone: UTC, bad_rows: 0.9"
    asked = {"start": "2026-01-01", "every": "1d", "until": "2026-01-05", "cells": "a"}
    (tmp_path / "spec.yaml").write_text(SPEC.format(**asked, format="csv", unit="entry", more=more))

    said = CommandLine(tmp_path, capsys)("run", "spec.yaml")

    assert said.code == 0, said.err
    assert [value for _, _, value in levels(tmp_path)] == [1, 2, 1, 1]
    dead = pd.read_parquet(tmp_path / "private/diagnostics/dead_letters.parquet")
    assert sorted(zip(dead["row"], dead["reason"].str.partition(":")[0], strict=True)) == [
        (2, "column 'end'"),
        (3, "column 'end'"),
        (5, "column 'begin'"),
    ]
    assert '"intervals that end when they begin": 1' in (tmp_path / "private/diagnostics/read.json").read_text()


def land_stays(step: tuple[str, list[Row]]) -> str:
    """Write the stays that begin with the rows of a day; two in three end after 30 hours."""
    path, rows = step
    if rows and not Path(path).exists():
        stays = [row for row in rows if row["after_ward"] is not None]
        ends = [row["at"] + timedelta(hours=30) if sum(map(ord, row["stay"])) % 3 else None for row in stays]
        columns = {name: pa.array([row[name] for row in stays], SCHEMA.field(name).type) for name in ("stay", "at")}
        columns |= {name: pa.array([row[f"after_{name}"] for row in stays]) for name in ("ward", "age")}
        pq.write_table(pa.table(columns | {"end": pa.array(ends, pa.timestamp("us", "UTC"))}), path)
    return path


def test_a_stream_of_late_stays_has_the_sums_of_scheduled_runs(tmp_path, monkeypatch):
    days = late(by_day(changelog()))
    columns = ("  time: at\n  before: before_\n  after: after_\n", "  from: at\n  to: end\n")
    for name in ("runs", "stream"):
        (tmp_path / name).mkdir()
        prepare(tmp_path / name, columns)
    with chdir(tmp_path / "runs"):
        for day, rows in enumerate(days):
            land_stays((f"data/day-{day}.parquet", rows))
            assert main(["run", "spec.yaml", f"--until={ENDS[day]:%Y-%m-%dT%H:%M:%SZ}", "--shards=3"]) == 0
    monkeypatch.chdir(tmp_path / "stream")
    land_stays(("data/day-0.parquet", days[0]))

    stream(days, landing=land_stays)

    assert exact_sums(tmp_path / "stream") == exact_sums(tmp_path / "runs")
    assert any(exact_sums(tmp_path / "runs").values())
