"""The private state of a release in bytes for each unit: in its files, and in the checkpoints of a stream on Flink."""

import json
import shutil
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.crash.checks import demand
from benchmarks.flink.live import PATIENCE, ROOT, cancel_jobs, running_jobs
from benchmarks.throughput import __main__ as throughput
from benchmarks.throughput.generate import START, YEAR
from benchmarks.throughput.ours import write_spec
from pipelines.store.store import Store
from templates.flink.local import Cluster
from transforms.aggregation.shard_state import state_from_bytes

MUTATIONS_A_UNIT = 4.2
"""Mean number in the changelog of benchmarks.throughput."""

EVERY = timedelta(seconds=5)
WINDOWS = 12
"""Number of windows with mutations."""

WATCHED = 20.0
"""Seconds in which checkpoints are measured: some windows without mutations, each published for all units."""

STREAM = ("--streaming", "--checkpointing_interval=1000", "--poll=1s", "--lag=4s", "--shards=3")
SCHEDULE = "schedule: {start: 2024-01-01T00:00:00Z, every: 1d, until: 2025-01-01T00:00:00Z}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """State between two epochs.

    Attributes:
        counts: units that may contribute again, units that are done, and rows that wait for their windows to close.
        size: in bytes.
    """

    counts: tuple[int, int, int]
    size: int

    @property
    def units(self) -> int:
        return self.counts[0] + self.counts[1]


def kept(folder: Path) -> Kept:
    """Return the state of units after the last epoch of a release."""
    store = Store(str(folder / "public"), str(folder / "private"))
    paths = store.attempts.state_paths(store.commits()[-1])
    contents = [Path(path).read_bytes() for name, path in paths.items() if name.startswith("units-")]
    states = [state_from_bytes(content) for content in contents]
    tables = [(state.units, state.frozen, state.pending) for state in states]
    alive, done, waiting = (sum(table.num_rows for table in kind) for kind in zip(*tables, strict=True))
    return Kept(counts=(alive, done, waiting), size=sum(map(len, contents)))


def stream_state(units: int, flink: Cluster, folder: Path) -> dict[str, Kept]:
    """Run a stream with new units for a minute; return its state afterwards, on disk and in Flink.

    Args:
        units: approximate number of units.
        flink: the cluster.
        folder: of the stream; it is emptied first.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    start = int(time.time()) + 2
    table = _within(throughput.data(round(units * MUTATIONS_A_UNIT)), start)
    spec = write_spec(f"{folder}/data/*.parquet", folder / "release")
    text = spec.read_text()
    demand(SCHEDULE in text, "the spec has another schedule")
    spec.write_text(text.replace(SCHEDULE, f"schedule: {{start: {_text(start)}, every: {EVERY.seconds}s}}"))
    command = [sys.executable, "-m", "pipelines", "run", str(spec), *STREAM, *flink.flags]
    with (folder / "driver.log").open("wb") as log:
        _land(table, start, folder)  # the first file defines the columns
        driver = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        end = time.monotonic() + PATIENCE
        while (windows := _windows(folder / "release")) <= WINDOWS:
            _land(table, start, folder)
            demand(driver.poll() is None, f"the driver has ended; see {folder / 'driver.log'}")
            demand(time.monotonic() < end, f"no window after the {windows}th; see {folder / 'driver.log'}")
            time.sleep(1)
        sizes = _checkpoints(flink, WATCHED)
        on_disk = kept(folder / "release")
    finally:
        driver.kill()
        driver.wait()
        cancel_jobs(flink)
    demand(on_disk.units == pc.count_distinct(table["entry"]).as_py(), "units are missing")
    return {
        "disk, stream": on_disk,
        "smallest checkpoint, stream": Kept(counts=on_disk.counts, size=min(sizes)),
        "largest checkpoint, stream": Kept(counts=on_disk.counts, size=max(sizes)),
    }


def _within(files: str, start: int) -> pa.Table:
    """Return a changelog of a year with its times scaled to the stream's windows, in order of time."""
    table = pq.read_table(Path(files).parent)
    passed = (table["time"].to_numpy() - START).astype("timedelta64[us]").astype(np.int64)
    moved = start * 1_000_000 + passed * (WINDOWS * EVERY.seconds) // YEAR
    times = pa.array(moved, pa.timestamp("us", "UTC"))
    return table.set_column(table.column_names.index("time"), "time", times).sort_by("time")


def _land(table: pa.Table, start: int, folder: Path) -> None:
    """Write mutations since the last file and of the next second, under another name first."""
    landed = sorted((folder / "data").iterdir())
    begin = int(landed[-1].stem.partition("-")[2]) if landed else 0
    until = int((max(time.time(), start) + 1) * 1_000_000)
    end = int(np.searchsorted(table["time"].to_numpy().astype(np.int64), until))
    if end > begin:
        pq.write_table(table.slice(begin, end - begin), folder / "draft")
        (folder / "draft").rename(folder / f"data/{begin:09}-{end:09}.parquet")


def _windows(folder: Path) -> int:
    commits = Store(str(folder / "public"), str(folder / "private")).commits() if (folder / "private").exists() else []
    return commits[-1].windows if commits else 0


def _checkpoints(flink: Cluster, seconds: float) -> list[int]:
    """Return bytes of state in each complete checkpoint of the only job from now on."""
    [job] = running_jobs(flink)
    sizes: dict[int, int] = {}
    began = time.time()
    while time.time() < began + seconds or not sizes:
        demand(time.time() < began + PATIENCE, "no checkpoint is complete")
        with urllib.request.urlopen(f"http://127.0.0.1:{flink.rest}/jobs/{job}/checkpoints", timeout=30) as said:
            told = json.load(said)["history"]
        sizes |= {
            one["id"]: one["state_size"]
            for one in told
            if one["status"] == "COMPLETED" and one["trigger_timestamp"] / 1000 > began
        }
        time.sleep(0.5)
    return list(sizes.values())


def _text(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"


def print_state(states: dict[str, Kept]) -> None:
    print("| state in | units | bytes/unit | MB | units done | waiting rows |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, state in states.items():
        _, done, waiting = state.counts
        each = state.size / state.units
        print(f"| {name} | {state.units:,} | {each:.1f} | {state.size / 1e6:.2f} | {done:,} | {waiting:,} |")
