"""Make dated snapshots of a table: patients in wards, each with a score; few change from day to day.

    python -m benchmarks.snapshots.generate --rows 1000000 --days 30 --to out/benchmarks/snapshots/1000000-30

Columns: entry (string), ward (one of 20), x (0 to 10), and two that no query needs: name (string) and seen (a time).
Each day one row in a hundred changes its score, one in three hundred its ward, and a new row replaces one in five
hundred.
"""

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.throughput.generate import HIGHEST, ROW_GROUP, WARDS

START = datetime(2024, 1, 1, tzinfo=UTC)
SCORES, MOVES, GOES = 1 / 100, 1 / 300, 1 / 500


def snapshots(rows: int, days: int, folder: Path, rng: np.random.Generator) -> None:
    """Write one file a day, its rows in random order.

    Args:
        rows: of each snapshot.
        days: number of snapshots.
        folder: of the files; it must not exist.
        rng: generator.
    """
    folder.mkdir(parents=True)
    number = np.arange(rows)
    ward = rng.integers(0, len(WARDS), rows)
    x = rng.integers(0, HIGHEST + 1, rows)
    for day in range(days):
        if day:
            x = np.where(rng.random(rows) < SCORES, rng.integers(0, HIGHEST + 1, rows), x)
            ward = np.where(rng.random(rows) < MOVES, rng.integers(0, len(WARDS), rows), ward)
            goes = rng.random(rows) < GOES
            number = np.where(goes, number.max() + 1 + np.arange(rows), number)
        order = rng.permutation(rows)
        digits = pc.utf8_lpad(pc.cast(pa.array(number[order]), pa.string()), 12, "0")
        table = pa.table(
            {
                "entry": pc.binary_join_element_wise("patient", digits, "-"),
                "name": pc.binary_join_element_wise("name of", digits, " "),
                "ward": pa.array(WARDS).take(pa.array(ward[order])),
                "x": pa.array(x[order]),
                "seen": pa.array(number[order] * 1_000_000, pa.timestamp("us", "UTC")),
            }
        )
        date = START + day * timedelta(days=1)
        pq.write_table(table, folder / f"{date:%Y-%m-%d}.parquet", row_group_size=ROW_GROUP)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--days", type=int, required=True)
    parser.add_argument("--to", type=Path, required=True)
    arguments = parser.parse_args()
    snapshots(arguments.rows, arguments.days, arguments.to, np.random.default_rng(2024))


if __name__ == "__main__":
    main()
