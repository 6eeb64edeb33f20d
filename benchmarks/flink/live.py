"""A release that a stream on Flink publishes while files arrive: the writer of files, the kills, and the checks.

Rows have the time at which they are written, and files arrive in time. So no row is late after any kill, and one run
over all files must have the same sums.
"""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.crash.checks import Standing, Watch, demand
from benchmarks.flink.processes import workers_of
from pipelines.store.store import Store
from templates.flink.local import Cluster

ROOT = Path(__file__).resolve().parents[2]
EVERY = timedelta(seconds=3)
STREAM = ("--streaming", "--checkpointing_interval=1000", "--poll=1s", "--lag=4s", "--shards=3")
ENOUGH = 10_000
"""Number of windows; more than a stream reaches."""

PATIENCE = 180.0
"""Seconds to wait for an event; more than it takes on a busy machine."""

SPEC = """\
release: wards
changelog: {{format: parquet, path: {folder}/data/*.parquet, entry: stay, time: at, before: before_, after: after_}}
privacy: {{epsilon: 1.0e12, constraint: {{at_most: 6}}}}
schedule: {{start: {start}, every: 3s}}
queries:
  - name: beds
    measure: count
    by: {{ward: [a, b, other]}}
    publish: [level, change, entered]
    strategy: {{tree: {{branching: 2, height: 3, refine: subtraction}}}}
output: {{public: {folder}/public, private: {folder}/private}}
"""

SCHEMA = pa.schema(
    [
        ("stay", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("before_ward", pa.string()),
        ("after_ward", pa.string()),
    ]
)


class Writer:
    """Writes a file each second: a stay begins, earlier stays move, and one ends and returns later."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._wards: dict[int, str | None] = {}
        self._numbers = itertools.count()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        (folder / "data").mkdir(parents=True)
        self.write()  # the first file defines the columns

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def write(self) -> None:
        """Write a file under another name and rename it, so that the stream never finds a partial file."""
        number = next(self._numbers)
        moved = [stay for stay in (number, number - 2, number - 5, number - 6) if stay >= 0]
        rows = []
        for stay in moved:
            before = self._wards.get(stay)
            after = None if stay == number - 5 else random.choice("abc")
            if before != after:
                rows.append((f"{stay:04}", datetime.now(UTC), before, after))
                self._wards[stay] = after
        columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
        draft = self._folder / "draft"
        pq.write_table(pa.table(columns, schema=SCHEMA), draft)
        draft.rename(self._folder / f"data/{number:04}.parquet")

    def _run(self) -> None:
        while not self._ended.wait(1):
            self.write()


@dataclass(slots=True)
class Live:
    """A stream with its files and its driver, and checks of it.

    Attributes:
        windows: number of windows after which it ends; more than it reaches until `end_soon`.
    """

    folder: Path
    cluster: Cluster
    windows: int
    start: datetime
    writer: Writer
    driver: "subprocess.Popen[bytes]"
    watch: Watch = field(default_factory=Watch)
    standing: Standing = field(default_factory=lambda: Standing(committed=0, shown=0, epochs=(), attempts={}))

    @staticmethod
    def begin(folder: Path, cluster: Cluster) -> "Live":
        start = datetime.fromtimestamp(int(time.time()) + 2, UTC)
        writer = Writer(folder)
        (folder / "spec.yaml").write_text(SPEC.format(folder=folder, start=f"{start:%Y-%m-%dT%H:%M:%SZ}"))
        writer.start()
        return Live(folder, cluster, ENOUGH, start, writer, _drive(folder, cluster, start + ENOUGH * EVERY))

    @property
    def end(self) -> datetime:
        return self.start + self.windows * EVERY

    @property
    def committed(self) -> int:
        """Number of committed windows. A stream that starts again releases all due windows in one epoch."""
        names = sorted((self.folder / "private/commits").glob("*.json"))
        return int(json.loads(names[-1].read_text())["windows"]) if names else 0

    def drive(self) -> None:
        """Start the driver again."""
        self.driver = _drive(self.folder, self.cluster, self.end)

    def look(self) -> None:
        """Compare the files with everything that was seen before."""
        # Public files first: an epoch may be committed between the two reads.
        public = contents(self.folder / "public")
        self.standing = self.watch.look(public, contents(self.folder / "private"))

    def wait_for(self, windows: int) -> None:
        """Wait until `windows` windows, or all, are committed; start the driver again if Flink gave up."""
        end = time.monotonic() + PATIENCE
        while self.committed < min(windows, self.windows):
            demand(time.monotonic() < end, f"no window after the {self.committed}th; see {self.folder / 'driver.log'}")
            if self.driver.poll() is not None:
                # 1: the job of an earlier driver, killed during its submission, started late and committed first.
                demand(self.driver.returncode in (1, 4), f"the driver ended with {self.driver.returncode}")
                self.drive()
            self.look()
            time.sleep(0.1)
        self.look()

    def kill_worker(self) -> bool:
        """Kill a Python worker now; return whether one was running."""
        workers = workers_of(self.cluster.processes["workers"].pid)
        with suppress(ProcessLookupError):
            if workers:
                os.kill(random.choice(workers), signal.SIGKILL)
                return True
        return False

    def kill_task_manager(self) -> bool:
        """Kill the task manager and start another; return whether it was running."""
        killed = self.cluster.processes["taskmanager"]
        was_there = killed.poll() is None
        with suppress(ProcessLookupError):
            os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
        self.cluster.start_task_manager()
        return was_there

    def kill_driver(self) -> bool:
        """Kill the driver, cancel its job, which continues without it, and start another driver.

        Returns:
            whether the driver was running.
        """
        was_there = self.driver.poll() is None
        self.driver.kill()
        self.driver.wait()
        cancel_jobs(self.cluster)
        self.drive()
        return was_there

    def end_soon(self) -> bool:
        """Kill the driver, and start one that ends the stream after six more windows.

        Returns:
            whether the driver was running.
        """
        self.windows = (datetime.now(UTC) - self.start) // EVERY + 6
        return self.kill_driver()

    def finish(self, other: Path) -> None:
        """Wait for the end, and compare the published numbers with one run over all files in folder `other`."""
        self.wait_for(self.windows)
        self.writer.stop()
        code = self.driver.wait(PATIENCE)
        demand(code == 0, f"the driver ended with {code}; see {self.folder / 'driver.log'}")
        cancel_jobs(self.cluster)  # after a reset to a checkpoint, a job counts its ticks again
        self.look()
        self.watch.look_at_end(
            contents(self.folder / "public"), contents(self.folder / "private"), windows=self.windows
        )
        recorded = [
            source.path
            for commit in Store(str(self.folder / "public"), str(self.folder / "private")).commits()
            for source in commit.sources
        ]
        demand(len(recorded) == len(set(recorded)), "a file is recorded twice")
        (other / "data").mkdir(parents=True)
        for path in map(Path, recorded):
            (other / "data" / path.name).write_bytes(path.read_bytes())
        (other / "spec.yaml").write_text((self.folder / "spec.yaml").read_text().replace(str(self.folder), str(other)))
        command = [sys.executable, "-m", "pipelines", "run", str(other / "spec.yaml"), f"--until={_text(self.end)}"]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        demand(said.returncode == 0, said.stderr)
        found = exact_sums(self.folder)
        demand(any(found.values()), "there are no sums to compare")
        demand(found == exact_sums(other), "sums differ from those of one run over all files")


def contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of every file by path, while the folder changes: files that name others come first."""
    names = [folder / "manifest.json", *sorted(folder.glob("commits/*.json"))]
    found = {str(path.relative_to(folder)): path.read_bytes() for path in names if path.exists()}
    for path in [
        Path(inner, name) for inner, _, names in os.walk(folder) for name in names
    ]:  # folders may disappear meanwhile
        name = str(path.relative_to(folder))
        if name not in found and not name.startswith("commits/"):
            with suppress(FileNotFoundError):
                found[name] = path.read_bytes()
    return found


def exact_sums(folder: Path) -> dict[tuple[Any, ...], float]:
    """Return the published nodes by key. The huge epsilon leaves no noise, so they are exact bounded sums."""
    tables = [pq.read_table(path) for path in sorted((folder / "public/nodes").rglob("*.parquet"))]
    rows = pa.concat_tables(tables).drop_columns(["scale", "mechanism"]).to_pylist()
    return {tuple(value for name, value in row.items() if name != "noisy_value"): row["noisy_value"] for row in rows}


def running_jobs(cluster: Cluster) -> list[str]:
    """Return ids of jobs that have not ended."""
    with urllib.request.urlopen(f"http://127.0.0.1:{cluster.rest}/jobs") as said:
        jobs = json.load(said)["jobs"]
    return [job["id"] for job in jobs if job["status"] not in ("CANCELED", "FAILED", "FINISHED")]


def cancel_jobs(cluster: Cluster) -> None:
    """Cancel all jobs, and wait until they have ended."""
    end = time.monotonic() + PATIENCE
    while jobs := running_jobs(cluster):
        demand(time.monotonic() < end, "a job cannot be cancelled")
        for job in jobs:
            url = f"http://127.0.0.1:{cluster.rest}/jobs/{job}?mode=cancel"
            with urllib.request.urlopen(urllib.request.Request(url, method="PATCH")):
                pass
        time.sleep(0.2)


def _drive(folder: Path, cluster: Cluster, end: datetime) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "pipelines", "run", str(folder / "spec.yaml"), f"--until={_text(end)}", *STREAM]
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen([*command, *cluster.flags], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
