"""A release with marginals and a hierarchy: rows and answers are those of DuckDB's `GROUP BY CUBE` and `ROLLUP`."""

import json
import re
import shutil
from collections import Counter
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.e2e.specs import DAY, NO_NOISE, START, CommandLine, changelog, write, write_spec

KEYS = ("by: {ward: [a, b, other]}", "by: {ward: [a, b, other], age: [31, 33, 35, 41, 43]}")
PUBLISH = (
    "publish: [level, change]",
    """publish: [level, {marginals: [[], [ward], [age]]}]
  - name: places
    measure: count
    by: {ward: {tree: {South: [a, b], North: [other]}}}
    publish: [level, change]
  - name: crossed
    measure: count
    by: {age: {from: 30, to: 40, step: 5}, ward: {tree: {South: [a, b], North: [other]}}}
    publish: [level, {marginals: [[ward], [age]]}, {ranges: [{age: {from: 35}}]}, {quantiles: [0.5]}]""",
)
ANYONE = ('    where: "age >= 0"\n', "")
DAYS = range(1, 6)


def states() -> pa.Table:
    """Return the state of each stay at the end of each day."""
    rows = []
    for day in DAYS:
        state: dict[str, tuple] = {}
        for row in sorted(changelog(), key=lambda row: row["at"]):
            state.setdefault(row["stay"], (row["before_ward"], row["before_age"]))
            if row["at"] < START + day * DAY:
                state[row["stay"]] = row["after_ward"], row["after_age"]
        rows += [{"day": day, "ward": ward, "age": age} for ward, age in state.values() if ward is not None]
    return pa.Table.from_pylist(rows)


def cube() -> dict[tuple[int, str, str], int]:
    """Return the count of each day and combination of values, with `all` for sums over a key."""
    there = states()
    found = (
        duckdb.connect()
        .sql(
            """
        select day, coalesce(kind, 'all'), coalesce(cast(age as varchar), 'all'), count(*)
        from (select *, case when ward in ('a', 'b') then ward else 'other' end as kind from there)
        where age in (31, 33, 35, 41, 43) group by day, cube (kind, age)
        """
        )
        .fetchall()
    )
    assert there.num_rows
    return {(day, ward, age): count for day, ward, age, count in found}


def rollup() -> dict[tuple[int, str], int]:
    """Return the count of each day and place, region or `all`."""
    there = states()
    rows = duckdb.connect().sql(
        """
        select day, coalesce(kind, region, 'all'), count(*)
        from (
            select day, case when ward in ('a', 'b') then ward else 'other' end as kind,
                case when ward in ('a', 'b') then 'South' else 'North' end as region
            from there
        )
        group by day, rollup (region, kind)
        """
    )
    assert there.num_rows
    return {(day, place): count for day, place, count in rows.fetchall()}


@cache
def stays() -> list[dict[str, Any]]:
    return states().to_pylist()


def counted(row: dict[str, Any]) -> int:
    """Return the number of stays that a row of ages and wards counts."""
    wards = {"a": "a", "b": "b", "South": "ab", "all": "abx", "North": "x", "other": "x"}[row["ward"]]
    ages = {"below": (0, 30), "[30, 35)": (30, 35), "[35, 40)": (35, 40), "above": (40, 10**9), "all": (0, 10**9)}
    first, last = (ages | {"[35, inf)": (35, 10**9)})[row["age"]]
    day = int(row["window_end"][8:10]) - 1
    there = [one for one in stays() if one["day"] == day and first <= one["age"] < last]
    return sum((one["ward"] if one["ward"] in "ab" else "x") in wards for one in there)


def _name(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["kind"], row["window_end"], row["ward"], row["age"]


def test_marginals_are_those_of_a_cube_and_add_up(tmp_path, capsys):
    say = CommandLine(tmp_path, capsys)
    write(tmp_path / "data/day.parquet", changelog())
    write_spec(tmp_path, KEYS, ANYONE, PUBLISH, NO_NOISE)
    ran = say("run", "spec.yaml")
    assert ran.code == 0, ran.err
    compared = json.loads(say("evaluate", "spec.yaml", "--runs=1", "--json").out)
    planned = say("plan", "spec.yaml")
    shutil.rmtree(tmp_path / "private")
    shutil.rmtree(tmp_path / "data")

    everything = json.loads(say("show", "public", "--json").out)["estimates"]

    shown = [row for row in everything if row["query"] == "beds"]
    days = {f"{START + day * DAY:%Y-%m-%dT%H:%M:%S}": day for day in DAYS}
    expected = cube()
    values = {(days[row["window_end"][:19]], row["ward"], row["age"]): row["value"] for row in shown}
    assert len(values) == len(shown) == 5 * (3 * 5 + 1 + 3 + 5)
    assert values == {key: pytest.approx(expected.get(key, 0), abs=1e-6) for key in values}
    assert expected.keys() <= values.keys()
    for day in DAYS:
        wards = [values[day, ward, "all"] for ward in ("a", "b", "other")]
        assert (
            sum(wards)
            == values[day, "all", "all"]
            == sum(values[day, "all", age] for age in ("31", "33", "35", "41", "43"))
        )
    of_places = [row for row in everything if row["query"] == "places" and row["kind"].startswith("level")]
    places = {(days[row["window_end"][:19]], row["ward"]): row["value"] for row in of_places}
    assert len(places) == len(of_places) == 5 * (3 + 2 + 1)
    expected_places = rollup()
    assert places == {key: pytest.approx(expected_places.get(key, 0), abs=1e-6) for key in places}
    assert expected_places.keys() <= places.keys()
    crossed = [row for row in everything if row["query"] == "crossed"]
    found = {_name(row): row["value"] for row in crossed if row["quantile"] is None}
    assert found == {_name(row): pytest.approx(counted(row), abs=1e-6) for row in crossed if row["quantile"] is None}
    rows = Counter(row["kind"] for row in crossed)
    assert rows == {"level": 60, "level_marginal": 5 * (4 * 3 + 6 + 4 - 4), "level_range": 30, "level_quantile": 30}
    assert len(set(map(_name, crossed))) == len(crossed)
    kinds = {row["kind"] for row in shown}
    assert kinds == {"level", "level_marginal"}

    (answered,) = json.loads(
        say(
            "answer", "public", "--query", "beds", "--where", "ward = 'b'", "--window", "2026-01-05T00:00:00Z", "--json"
        ).out
    )["answers"]
    (same,) = [
        row
        for row in shown
        if row["window_end"][:19] == answered["window_end"][:19] and (row["ward"], row["age"]) == ("b", "all")
    ]
    for name in ("value", "stddev"):
        assert answered[name] == pytest.approx(same[name], abs=1e-9)
    marginals = {number["marginal"]: number for number in compared["queries"][0]["numbers"] if "marginal" in number}
    assert [*marginals] == ["total", "by ward", "by age"]
    assert all(number["rmse_observed"] < 1e-6 < number["truth"] for number in marginals.values())
    assert marginals["by age"]["rows"] == 5 * 5
    assert "level_marginal by ward" in planned.out
    totals_have_one_interval_each(json.loads(say("report", "public", "--json").out)["queries"])
    page = (tmp_path / "report.html").read_text()
    assert all(
        part in page
        for part in ("beds, by ward", "crossed, ranges of age, by level 1 of ward", "crossed, quantiles of age, total")
    )
    tables = re.findall(r"<table[^>]*><caption>beds, by ward: .*?</table>", page, re.DOTALL)
    assert [re.findall("<th scope=.col.[^>]*>(.*?)</th>", one) for one in tables][-1:] == [
        ["when", "kind", "ward", "number", "95&nbsp;% from", "to"]  # no column of which each row is "all"
    ]
    assert "level_marginal: made from the cells" in say("smooth", "public", "-o", "smooth.csv").out


def totals_have_one_interval_each(queries: list[dict[str, Any]]) -> None:
    """Check the sum of all cells and the published total of a hierarchy, and changes and differences of levels."""
    cells, total = (next(one for one in queries if (one["query"], one["of"]) == ("places", of)) for of in ("", "total"))
    widths = []
    for one, other in zip(cells["series"], total["series"], strict=True):
        numbers = one["latest"][0], other["latest"][0]
        assert numbers[0]["cell"] is None
        widths += [number["high"] - number["low"] for number in numbers]
    assert widths[0] == pytest.approx(widths[1], rel=1e-5)
    assert widths[2] == pytest.approx(widths[3], rel=1e-5)
    for part in (cells, total):
        change = part["series"][0]["differences"][0]
        assert change["high"] - change["low"] == pytest.approx(widths[2], rel=1e-5)
