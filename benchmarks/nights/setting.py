"""The measured release and its changelog of one file a day, with similar days.

Each day `COMING` entries come into a ward, those of `STAY` days ago move to the next one, and those of twice as many
days ago leave. After the first weeks the number of entries is constant, and each day has three times `COMING`
mutations.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

START = datetime(2024, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
COMING = 5_000
STAY = 10

SPEC = """\
release: nights
changelog: {{format: parquet, path: {folder}/data/*.parquet, entry: entry, time: time, before: before_, after: after_}}
privacy: {{epsilon: 1.0, delta: 1.0e-9, constraint: {{at_most: 3}}}}
schedule: {{start: 2024-01-01T00:00:00Z, every: 1d, until: 2028-01-01T00:00:00Z}}
queries:
  - {{name: beds, measure: count, by: {{ward: [{wards}]}}, publish: [level, change, {{sliding: 7d, every: 1d}}]}}
  - {{name: arrivals, measure: count, by: {{ward: [{wards}]}}, publish: [entered]}}
strategy: {strategy}
output: {{public: {folder}/public, private: {folder}/private}}
"""


def spec(folder: Path, wards: int, strategy: str) -> str:
    """Return the spec as text.

    Args:
        folder: of the release.
        wards: number of cells of both queries.
        strategy: as in a spec.
    """
    return SPEC.format(folder=folder, wards=", ".join(names(wards)), strategy=strategy)


def names(wards: int) -> list[str]:
    return [f"ward {number:04d}" for number in range(wards)]


def path_of(folder: Path, day: int) -> Path:
    return folder / "data" / f"{START + day * DAY:%Y-%m-%d}.parquet"


def until(days: int) -> str:
    """Return the flag that closes the first `days` days."""
    return f"--until={(START + days * DAY).isoformat()}"


def write_day(folder: Path, day: int, wards: int) -> None:
    """Write the mutations of one day.

    Args:
        folder: of the release.
        day: number of the day, from 0 on.
        wards: number of cells of both queries.
    """
    parts = [
        (day, None, 0),
        (day - STAY, 0, 1),
        (day - 2 * STAY, 1, None),
    ]
    entries: list[NDArray[np.int64]] = []
    before: list[NDArray[np.int64]] = []
    after: list[NDArray[np.int64]] = []
    for came, old, new in parts:
        if came < 0:
            continue
        number = np.arange(COMING)
        entries.append(came * COMING + number)
        for states, shift in ((before, old), (after, new)):
            states.append(np.full(COMING, -1) if shift is None else (number + came + shift) % wards)
    entry = np.concatenate(entries)
    listed = pa.array(names(wards))
    columns = {
        "entry": pa.array([f"stay {number:09d}" for number in entry]),
        "time": pa.array([START + day * DAY + timedelta(hours=12)] * len(entry), pa.timestamp("us", "UTC")),
    }
    for side, states in (("before", before), ("after", after)):
        place = np.concatenate(states)
        columns[f"{side}_ward"] = listed.take(pa.array(place, mask=place < 0))
    path = path_of(folder, day)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
