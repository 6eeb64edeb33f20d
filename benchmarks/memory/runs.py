"""Memory of whole runs over CSV files within a memory limit: a first run and a later one, with and without a state.

    python -m benchmarks.memory.runs --rows 6000000 --limit 1024

The ratio is that of a run's peak to the peak of a run that keeps no state, since the schedule ends with it. It stays
near 1 if the state of all units never is in memory at once. Give a limit of 0 for none; a limit needs an account that
may make control groups.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow.csv

from benchmarks.memory.limited import limited
from benchmarks.throughput.generate import changelog
from benchmarks.throughput.ours import write_spec
from benchmarks.throughput.process import Cost, measure

OUT = Path("out/benchmarks/memory")
PIECE = 2_500_000
HALF, LATER, END = "2024-07-01T00:00:00Z", "2024-07-02T00:00:00Z", "2025-01-01T00:00:00Z"


def data(rows: int) -> Path:
    """Return the folder with the changelog of `benchmarks.throughput` as CSV files, generated once for each size.

    Another process generates it: the system counts the peak of a process towards those that it starts.
    """
    folder = OUT / f"csv-{rows}"
    if not folder.exists():
        print(f"generating {rows:,} mutations ...", file=sys.stderr, flush=True)
        with ProcessPoolExecutor(1) as other:
            other.submit(_generate, rows, folder).result()
    return folder


def _generate(rows: int, folder: Path) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(2024)
    for piece, done in enumerate(range(0, rows, PIECE)):
        pyarrow.csv.write_csv(changelog(min(PIECE, rows - done), rng, done), folder / f"part-{piece}.csv")


def spec_of(folder: Path, name: str, *, until: str) -> Path:
    """Write the spec of a release whose schedule ends at a time.

    Args:
        folder: of the changelog.
        name: of the release's folder.
        until: end of the schedule.
    """
    path = write_spec(f"{folder.absolute()}/*.csv", OUT.absolute() / name)
    path.write_text(
        path.read_text().replace("format: parquet", "format: csv").replace(f"until: {END}", f"until: {until}")
    )
    return path


def cost_of(spec: Path, until: str, limit: int) -> Cost:
    """Run a release up to a time, and return its cost.

    Args:
        spec: path of the spec.
        until: time of the run.
        limit: memory limit in MiB; 0 for none.
    """
    command = [sys.executable, "-m", "pipelines", "run", str(spec), "--until", until]
    log = spec.parent.with_suffix(".log")
    if limit == 0:
        return measure(command, log)
    with limited(limit * 2**20) as entering:
        if entering is None:
            raise SystemExit("this account may make no control group with a memory limit; give --limit 0")
        return measure([*entering, *command], log)


def row(name: str, rows: int, limit: int, cost: Cost, without: Cost) -> str:
    """Return one line of the table.

    Args:
        name: of the run.
        rows: number of mutations.
        limit: memory limit in MiB; 0 for none.
        cost: of the run.
        without: cost of a run that keeps no state.
    """
    peak, ratio = cost.peak / 2**20, cost.peak / without.peak
    return f"| {name} | {rows:,} | {limit or 'none'} | {cost.seconds:.1f} | {peak:,.0f} | {ratio:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--limit", type=int, default=1024, help="memory limit in MiB (default: 1024; 0: none)")
    given = parser.parse_args(arguments)
    folder = data(given.rows)
    whole, ends = spec_of(folder, "kept", until=END), spec_of(folder, "ends", until=HALF)
    without = cost_of(ends, HALF, given.limit)
    first = cost_of(whole, HALF, given.limit)
    later = cost_of(whole, LATER, given.limit)
    print("| run | rows | limit, MiB | seconds | peak MiB | of a run without a state |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, cost in (("without a state", without), ("first", first), ("next night, nothing new", later)):
        print(row(name, given.rows, given.limit, cost, without))
    for made in (whole, ends):
        shutil.rmtree(made.parent)


if __name__ == "__main__":
    main()
