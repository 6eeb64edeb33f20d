"""Make a changelog of any size: patients who move between wards, each with a changing score.

    python -m benchmarks.throughput.generate --rows 12500000 --to out/benchmarks/throughput/12500000

Columns: entry (string), time (UTC, within 2024), seq (the source's order, for mutations of the same
time), before_ward and after_ward (one of 20, or null), before_x and after_x (0 to 10, or null).

Rows are in random order in eight files. More than 12.5 million rows are split into pieces with separate entries, so
that memory does not limit their number. Every mutation changes something, so the first four mutations of an entry are
also its first four projected changes. The number of mutations of an entry is skewed: 4.2 on average, most have one to
four, a few have hundreds.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

START = np.datetime64("2024-01-01T00:00:00", "s")
YEAR = 366 * 86_400  # seconds
WARDS = tuple(f"ward {number:02d}" for number in range(1, 21))
HIGHEST = 10
ROW_GROUP = 250_000
FILES = 8
PIECE = 12_500_000

Ints = NDArray[np.int64]


def mutations_per_entry(rows: int, rng: np.random.Generator) -> Ints:
    """Return the number of mutations of each entry, `rows` in total.

    Of 100 entries, 15 have a heavy tail (Zipf, cut at 500), the others a geometric number.
    """
    entries = rows  # enough: each has at least one
    tail = rng.random(entries) < 0.15
    counts = np.where(tail, np.minimum(rng.zipf(1.7, entries), 500), rng.geometric(0.4, entries))
    ends = np.cumsum(counts)
    last = int(np.searchsorted(ends, rows))
    counts = counts[: last + 1]
    counts[last] -= ends[last] - rows
    return counts[counts > 0]


def walk(first: NDArray[np.bool_], steps: Ints, modulus: int) -> Ints:
    """Return sums [rows] of `steps` since the entry's first row, modulo `modulus`.

    Args:
        first: whether a row is the first of its entry, [rows].
        steps: [rows].
        modulus: of the sums.
    """
    total = np.cumsum(steps)
    before = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    return (total - (total - steps)[before]) % modulus


def changelog(rows: int, rng: np.random.Generator, lowest: int = 0) -> pa.Table:
    """Return the changelog in random order.

    Args:
        rows: number of mutations.
        rng: generator.
        lowest: number of the first entry.
    """
    counts = mutations_per_entry(rows, rng)
    entry = np.repeat(np.arange(len(counts)), counts)
    # An entry exists for a part of the year; its times are sorted.
    born = rng.integers(0, YEAR, len(counts))
    lives = np.minimum(rng.exponential(30 * 86_400, len(counts)).astype(np.int64) + 1, YEAR - born)
    second = born[entry] + (rng.random(rows) * lives[entry]).astype(np.int64)
    second = np.sort(entry * YEAR + second) - entry * YEAR

    first = np.insert(entry[1:] != entry[:-1], 0, True)
    ends = np.append(first[1:], True) & (rng.random(rows) < 0.5) | (rng.random(rows) < 0.02)
    gone = ends & ~first
    gone[1:] &= ~ends[:-1]  # a deleted entry returns before its next deletion
    x = walk(first, rng.integers(1, HIGHEST + 1, rows), HIGHEST + 1)
    moves = np.where(rng.random(rows) < 0.3, rng.integers(0, len(WARDS), rows), 0)
    ward = walk(first, moves + np.where(first, rng.integers(0, len(WARDS), rows), 0), len(WARDS))

    order = rng.permutation(rows)
    earlier = np.maximum(order - 1, 0)
    no_before = first[order] | gone[earlier]
    names = pa.array(WARDS)
    digits = pc.utf8_lpad(pc.cast(pa.array(lowest + rng.permutation(len(counts))), pa.string()), 9, "0")
    keys = pc.binary_join_element_wise("patient", digits, "-")
    return pa.table(
        {
            "entry": keys.take(pa.array(entry[order])),
            "time": pa.array((START + second[order]).astype("datetime64[us]"), pa.timestamp("us", "UTC")),
            "seq": pa.array(order),
            "before_ward": names.take(pa.array(ward[earlier], mask=no_before)),
            "before_x": pa.array(x[earlier], mask=no_before),
            "after_ward": names.take(pa.array(ward[order], mask=gone[order])),
            "after_x": pa.array(x[order], mask=gone[order]),
        }
    )


def write(table: pa.Table, folder: Path, first: int = 0) -> None:
    """Write a table as files.

    Args:
        table: to split.
        folder: of the files.
        first: number of the first file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(table) // FILES)
    for number in range(FILES):
        part = table.slice(number * size, size)
        pq.write_table(part, folder / f"part-{first + number}.parquet", row_group_size=ROW_GROUP)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=2024)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    for piece, done in enumerate(range(0, arguments.rows, PIECE)):
        write(changelog(min(PIECE, arguments.rows - done), rng, done), arguments.to, piece * FILES)


if __name__ == "__main__":
    main()
