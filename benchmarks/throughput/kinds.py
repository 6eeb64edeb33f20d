"""Throughput of interval tables and of counts of units, compared with plain counts over a log of the same rows.

    python -m benchmarks.throughput.kinds --rows 3000000 --repeats 3

A log has one row for each change. A table of stays has one row for each stay, which is two changes unless it is still
open (three in a hundred); *versions* are stays of which each begins when the one before it ends. All three have the
same entries and begins, and the same number of rows. An owner has three entries on average.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.emptied import emptied
from benchmarks.throughput.__main__ import OUT
from benchmarks.throughput.generate import FILES, PIECE, WARDS, changelog, write
from benchmarks.throughput.process import Cost, measure

DAY, SECOND = 86_400, 1_000_000

SPEC = """\
release: kinds
changelog: {{format: parquet, path: {files}, entry: entry, {times}}}
privacy: {{unit: {unit}, epsilon: 1.0, constraint: {{at_most: 8}}}}
schedule: {{start: 2024-01-01T00:00:00Z, every: 1d, until: 2025-01-01T00:00:00Z}}
queries: [{{name: stays, measure: {measure}, by: {{ward: [{wards}]}}, publish: [change]}}]
strategy: disjoint
output: {{public: {output}/public, private: {output}/private}}
"""

LOG, INTERVALS = "time: time, order: seq", "from: time, to: until"

KINDS = {
    "log, entries": ("log", LOG, "entry", "count"),
    "stays, entries": ("stays", INTERVALS, "entry", "count"),
    "versions, entries": ("versions", INTERVALS, "entry", "count"),
    "log, entries of owners": ("log", LOG, "owner", "count"),
    "log, owners": ("log", LOG, "owner", "units"),
}
"""Files, names of times, privacy unit and measure by name."""

BASE = {"entry": "log, entries", "owner": "log, entries of owners"}
"""The plain count by privacy unit."""


def tables(rows: int, rng: np.random.Generator, lowest: int = 0) -> dict[str, pa.Table]:
    """Return the log, the stays and the versions, with `rows` rows each, in random order.

    Args:
        rows: number of rows.
        rng: generator.
        lowest: number of the first entry.
    """
    made = changelog(rows, rng, lowest).select(["entry", "time", "seq", "after_ward"]).sort_by("seq")
    begin, entry = made["time"].cast(pa.int64()).to_numpy() // SECOND, made["entry"].combine_chunks()
    last = np.append(pc.not_equal(entry[1:], entry[:-1]).to_numpy(zero_copy_only=False), True)
    until = np.maximum(np.append(begin[1:], 0), begin + 1)
    until[last] = begin[last] + rng.exponential(30 * DAY, int(last.sum())).astype(np.int64) + 1
    ends = begin + 1 + (rng.random(rows) * (until - begin - 1)).astype(np.int64)
    still = last & (rng.random(rows) < 0.13)
    number = pc.cast(pc.utf8_slice_codeunits(entry, 8, 17), pa.int64()).to_numpy() // 3
    owner = pc.binary_join_element_wise("owner", pc.utf8_lpad(pc.cast(pa.array(number), pa.string()), 9, "0"), "-")
    ward = made["after_ward"].fill_null(WARDS[0])
    common = {"entry": entry, "owner": owner, "time": _times(begin), "ward": ward}
    order = pa.array(rng.permutation(rows))
    return {
        "log": pa.table(common | {"seq": made["seq"]}).take(order),
        "stays": pa.table(common | {"until": _times(ends, still)}).take(order),
        "versions": pa.table(common | {"until": _times(until, still)}).take(order),
    }


def _times(seconds: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    return pa.array(seconds * SECOND, pa.timestamp("us", "UTC"), mask=missing)


def data(rows: int) -> Path:
    """Return the folder of the files, which are generated once for each size."""
    folder = OUT / f"kinds-{rows}"
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "benchmarks.throughput.kinds", "--make", str(rows)], check=True)
    return folder


def make(rows: int) -> None:
    """Make the files; in another process, since a process that starts others passes on its memory's peak."""
    draft, rng = emptied(OUT / "kinds-draft"), np.random.default_rng(2024)
    for piece, done in enumerate(range(0, rows, PIECE)):
        for name, table in tables(min(PIECE, rows - done), rng, done).items():
            write(table, draft / name, piece * FILES)
    draft.rename(OUT / f"kinds-{rows}")


def command(name: str, files: Path) -> list[str]:
    """Return the command of a run, after writing its spec into an empty folder."""
    folder, times, unit, measured = KINDS[name]
    output = emptied(OUT / "kinds-release")
    spec = output / "spec.yaml"
    files_of = f"{files / folder}/*.parquet"
    spec.write_text(
        SPEC.format(
            files=files_of, times=times, unit=unit, measure=measured, wards=", ".join(WARDS), output=output.resolve()
        )
    )
    return [sys.executable, "-m", "pipelines", "run", str(spec)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows of each table")
    parser.add_argument("--repeats", type=int, default=3, help="rounds, which run each kind once")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="default: all")
    parser.add_argument("--make", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        make(arguments.make)
        return
    OUT.mkdir(parents=True, exist_ok=True)
    files = data(arguments.rows)
    costs: dict[str, list[Cost]] = {name: [] for name in arguments.kinds}
    for _ in range(arguments.repeats):
        for name, found in costs.items():
            found.append(measure(command(name, files), OUT / "kinds.log"))
            print(f"{name}: {found[-1]}", file=sys.stderr, flush=True)
    print(
        "| table, counted | rows | seconds | processor seconds | rows per processor second | of the log's | peak GB |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, found in costs.items():
        base = costs.get(BASE[KINDS[name][2]])
        ratio = f"{median(b.processor / c.processor for b, c in zip(base, found, strict=True)):.2f}" if base else ""
        seconds, processor = median(c.seconds for c in found), median(c.processor for c in found)
        print(
            f"| {name} | {arguments.rows:,} | {seconds:.1f} | {processor:.1f} | {arguments.rows / processor:,.0f} "
            f"| {ratio} | {max(c.peak for c in found) / 1e9:.2f} |"
        )


if __name__ == "__main__":
    main()
