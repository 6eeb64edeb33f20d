"""Speed and memory of dated snapshots, compared with a changelog (benchmarks.throughput).

    python -m benchmarks.snapshots --rows 1000000 --days 30 --repeats 3

Every run is a separate process; the runs alternate; the table gives medians. A second table has the largest group of
rows that is in memory at once, for `--days` days and for twice as many.
"""

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path

from benchmarks.throughput import __main__ as throughput
from transforms.common.batches import Batch
from transforms.common.source import Source
from transforms.sources import snapshots
from transforms.sources.changelog import read_split, splits
from transforms.sources.columns.normalise import Place
from transforms.sources.inspection import inspect

OUT = Path("out/benchmarks/snapshots")
DAY = 86_400_000_000


def data(rows: int, days: int) -> str:
    """Return the folder of the snapshots, which are generated once for each size."""
    folder = OUT / f"{rows}-{days}"
    if not folder.exists():
        print(f"generating {days} snapshots of {rows:,} rows ...", file=sys.stderr, flush=True)
        command = ["benchmarks.snapshots.generate", "--rows", str(rows), "--days", str(days), "--to", str(folder)]
        subprocess.run([sys.executable, "-m", *command], check=True)
    return str(folder)


def largest_group(folder: str) -> tuple[int, int, int]:
    """Return the number of groups, and rows and bytes of the largest one as the kernel gets it."""
    source = Source(
        format="snapshots",
        paths=(f"{folder}/%Y-%m-%d.parquet",),
        entry="entry",
        time=None,
        before=None,
        after=None,
        every=DAY,
    )
    layout = inspect(source, frozenset({"x"}), frozenset({"ward"}))
    comparison = snapshots.comparison_of(layout)
    rows: Counter[int] = Counter()
    size: Counter[int] = Counter()
    for number, file in enumerate(layout.files):
        for split in splits(Place(file.path, number), layout.source.format):
            for batch in read_split(layout, split, 262_144):
                if not isinstance(batch, Batch):
                    raise SystemExit(f"{file.path}: rows that cannot be used")
                for group, payload in snapshots.route(batch, comparison):
                    table = snapshots.unpack(payload)
                    rows[group] += table.num_rows
                    size[group] += table.nbytes
    return len(rows), max(rows.values()), max(size.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--mutations", type=int, default=12_500_000, help="size of the changelog to compare with")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()

    OUT.mkdir(parents=True, exist_ok=True)
    throughput.OUT.mkdir(parents=True, exist_ok=True)
    files, days = throughput.data(arguments.mutations), [arguments.days, 2 * arguments.days]
    folders = {number: data(arguments.rows, number) for number in days}
    module = [sys.executable, "-m"]
    commands = {
        f"snapshots {number} days": [*module, "benchmarks.snapshots.ours", folders[number], str(number), str(OUT / "a")]
        for number in days
    }
    commands["changelog"] = [*module, "benchmarks.throughput.ours", files, str(throughput.OUT / "release")]
    costs = throughput.alternate(commands, arguments.repeats)
    told = {"changelog": arguments.mutations} | {f"snapshots {number} days": arguments.rows * number for number in days}
    rate = {name: told[name] / cost.seconds for name, cost in costs.items()}
    print("| what | rows | seconds | rows/s | of changelog | peak GB |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, cost in costs.items():
        print(
            f"| {name} | {told[name]:,} | {cost.seconds:.1f} | {rate[name]:,.0f} "
            f"| {rate[name] / rate['changelog']:.2f} | {cost.peak / 1e9:.2f} |"
        )
    print("\n| days | groups | rows of the largest | MB of the largest |")
    print("|--:|--:|--:|--:|")
    for number in days:
        groups, rows, size = largest_group(folders[number])
        print(f"| {number} | {groups} | {rows:,} | {size / 1e6:.1f} |")


if __name__ == "__main__":
    main()
