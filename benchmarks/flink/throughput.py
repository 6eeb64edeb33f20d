"""Throughput, memory and state of one release on Flink with two slots, compared with the embedded runner.

    python -m benchmarks.flink.throughput --rows 1000000 10000000

The first epoch has `--rows` mutations. The second has a tenth more, and starts from the state of the first. Both
runners run the same commands in turns. A run is a whole process, from its start to its end. Flink is a session cluster
that runs already and starts its Python workers for each run. Give small sizes first: the task manager keeps its memory,
and compiles its code during its first jobs. Published rows and exact bounded sums must be equal on both, except for
noise. Last, `state.py` measures bytes of state for each unit, on disk and in the checkpoints of a stream. The program
needs Linux, since it reads /proc; Flink needs Java and Maven.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.crash.checks import BrokenError, demand
from benchmarks.emptied import own
from benchmarks.flink.live import exact_sums
from benchmarks.flink.processes import Watch, workers_of
from benchmarks.flink.state import Kept, kept, print_state, stream_state
from benchmarks.throughput import __main__ as throughput
from benchmarks.throughput.generate import FILES, ROW_GROUP
from benchmarks.throughput.ours import write_spec
from templates.flink.local import Cluster, cluster

RUNNERS = ("embedded", "Flink")
EPOCHS = ("first", "second")
LOOK = 0.1
"""Seconds between measurements of memory."""

DAY = 86_400_000_000
UNTIL = "until: 2025-01-01T00:00:00Z"
NOISY = ("value", "ci_low", "ci_high", "noisy_value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of a run: seconds, and peak memory in bytes (0 without such a process).

    Attributes:
        seconds: wall-clock seconds.
        python: processor seconds of the driver and the workers.
        java: processor seconds of Flink's processes and Beam's job server.
        driver: peak memory of the driver.
        worker: peak memory of the largest Python worker.
        workers: peak memory of all simultaneous Python workers.
        task_manager: peak memory of the task manager.
    """

    seconds: float
    python: float
    java: float
    driver: int
    worker: int
    workers: int
    task_manager: int

    @staticmethod
    def of(runs: "Sequence[Cost]") -> "Cost":
        """Return the median times and the largest memory of some runs."""
        return Cost(
            seconds=median(run.seconds for run in runs),
            python=median(run.python for run in runs),
            java=median(run.java for run in runs),
            driver=max(run.driver for run in runs),
            worker=max(run.worker for run in runs),
            workers=max(run.workers for run in runs),
            task_manager=max(run.task_manager for run in runs),
        )


def measure(command: Sequence[str], log: Path, flink: Cluster | None) -> Cost:
    """Run a command and return its cost.

    Args:
        command: to run.
        log: file for its output.
        flink: the cluster on which it runs, which is measured too; None for the embedded runner.

    Raises:
        BrokenError: the command failed.
    """
    driver, workers, task_manager, others = Watch(), Watch(), Watch(new=False), Watch(new=False)

    def look() -> None:
        driver.look(process.pid)
        if flink is not None:
            workers.look(*workers_of(flink.processes["workers"].pid))
            task_manager.look(flink.processes["taskmanager"].pid)
            others.look(*(flink.processes[name].pid for name in ("jobmanager", "jobs")))

    with log.open("ab") as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        while process.poll() is None:
            look()
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK)
        seconds = time.perf_counter() - began
        look()
    demand(process.returncode == 0, f"{' '.join(command)}: exit code {process.returncode}; see {log}")
    return Cost(
        seconds=seconds,
        python=driver.processor + workers.processor,
        java=task_manager.processor + others.processor,
        driver=driver.largest,
        worker=workers.largest,
        workers=workers.at_once,
        task_manager=task_manager.largest,
    )


def cut(rows: int, folder: Path) -> str:
    """Make the changelog of both epochs once: `rows` mutations, and a tenth more that are later.

    Returns:
        end of the first epoch: the start of the day of its last mutation, so that some rows wait.
    """
    parts = [folder / epoch for epoch in EPOCHS]
    if not (folder / "until").exists():
        shutil.rmtree(folder, ignore_errors=True)
        table = pq.read_table(Path(throughput.data(rows + rows // 10)).parent)
        order = np.argsort(table["time"].to_numpy(), kind="stable")
        last = table["time"][int(order[rows - 1])].value
        for part, chosen in zip(parts, (order[:rows], order[rows:]), strict=True):
            _write(table.take(pa.array(np.sort(chosen))), part)
        day = np.datetime64(last // DAY, "D")
        (folder / "until").write_text(f"{day}T00:00:00Z")
    return (folder / "until").read_text()


def _write(table: pa.Table, folder: Path) -> None:
    """Write a table as `benchmarks.throughput.generate` does, under names with the folder's name."""
    folder.mkdir(parents=True)
    size = -(-len(table) // FILES)
    for number in range(FILES):
        path = folder / f"{folder.name}-{number}.parquet"
        pq.write_table(table.slice(number * size, size), path, row_group_size=ROW_GROUP)


def release(data: Path, until: str, folder: Path, flink: Cluster | None) -> list[Cost]:
    """Run both epochs on one runner, and return their costs.

    Args:
        data: folder with a folder of files for each epoch.
        until: end of the first epoch.
        folder: of the release; it is emptied first.
        flink: the cluster; None for the embedded runner.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    spec = write_spec(f"{folder}/data/*.parquet", folder / "release")
    text = spec.read_text().replace("epsilon: 1.0", "epsilon: 1.0e12")  # so that nodes are exact sums
    demand(UNTIL in text, f"the spec has no {UNTIL}")
    spec.write_text(text.replace(UNTIL, UNTIL.replace("2025", "2026")))  # so that both epochs leave a state
    costs = []
    for epoch, end in zip(EPOCHS, (until, "2025-01-01T00:00:00Z"), strict=True):
        for path in (data / epoch).iterdir():
            os.link(path, folder / "data" / path.name)
        command = [sys.executable, "-m", "pipelines", "run", str(spec), f"--until={end}"]
        if flink is not None:
            _wait_for_workers(flink)
            command += flink.flags
        costs.append(measure(command, folder / "run.log", flink))
    return costs


def _wait_for_workers(flink: Cluster) -> None:
    """Wait until the workers of an earlier run have ended, which the next run cannot use."""
    end = time.monotonic() + 60
    while workers_of(flink.processes["workers"].pid):
        demand(time.monotonic() < end, "workers of an earlier run do not end")
        time.sleep(0.2)


def compare(one: Path, other: Path) -> None:
    """Compare the releases of two runners from the same data.

    Raises:
        BrokenError: the releases differ by more than noise.
    """
    for side in ("estimates", "nodes"):
        demand(_about(one, side) == _about(other, side), f"{side} have different keys")
    found = exact_sums(one)
    demand(any(found.values()), "there are no sums to compare")
    demand(found == exact_sums(other), "bounded sums differ")


def _about(folder: Path, side: str) -> list[str]:
    """Return published rows as text without their noisy columns, in order."""
    table = pa.concat_tables(pq.read_table(path) for path in (folder / "public" / side).rglob("*.parquet"))
    demand(table.num_rows > 0, f"{folder}: no {side}")
    return sorted(map(str, table.drop_columns([c for c in table.column_names if c in NOISY]).to_pylist()))


def compared(rows: int, repeats: int, flink: Cluster, folder: Path) -> tuple[dict[tuple[str, str], Cost], Kept]:
    """Run both epochs on both runners in turns; return medians by (epoch, runner), and the final state.

    Args:
        rows: mutations of the first epoch.
        repeats: number of rounds.
        flink: the cluster.
        folder: of data and releases.
    """
    until = cut(rows, folder / f"data-{rows}")
    costs: dict[tuple[str, str], list[Cost]] = {(epoch, runner): [] for epoch in EPOCHS for runner in RUNNERS}
    for turn in range(repeats):
        for runner in RUNNERS:
            print(f"{rows:,} mutations, round {turn + 1} of {repeats}: {runner}", file=sys.stderr, flush=True)
            on = flink if runner == "Flink" else None
            for epoch, cost in zip(EPOCHS, release(folder / f"data-{rows}", until, folder / runner, on), strict=True):
                costs[epoch, runner].append(cost)
                print(f"  {epoch}: {cost}", file=sys.stderr, flush=True)
        compare(folder / RUNNERS[0] / "release", folder / RUNNERS[1] / "release")
    states = [kept(folder / runner / "release") for runner in RUNNERS]
    demand(states[0].counts == states[1].counts, "the states hold different units")
    return {key: Cost.of(runs) for key, runs in costs.items()}, states[0]


def print_costs(results: dict[int, dict[tuple[str, str], Cost]]) -> None:
    print(
        "| mutations | epoch | runner | of embedded's: time | processor | mutations/s | seconds | Python's | Java's ",
        end="",
    )
    print("| driver MB | largest worker MB | workers MB | task manager MB |")
    print("|--:|---|---|" + "--:|" * 10)
    for rows, costs in results.items():
        for (epoch, runner), cost in costs.items():
            new = rows if epoch == "first" else rows // 10
            base = costs[epoch, "embedded"]
            memory = (cost.driver, cost.worker, cost.workers, cost.task_manager)
            print(
                f"| {new:,} | {epoch} | {runner} "
                f"| {cost.seconds / base.seconds:.2f} | {(cost.python + cost.java) / base.python:.2f} "
                f"| {new / cost.seconds:,.0f} | {cost.seconds:.1f} | {cost.python:.1f} "
                f"| {f'{cost.java:.1f}' if cost.java else ''} "
                f"| {' | '.join(f'{size / 1e6:,.0f}' if size else '' for size in memory)} |"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000], help="numbers of mutations of first epochs")
    parser.add_argument(
        "--repeats",
        type=int,
        nargs="+",
        default=[3],
        help="numbers of rounds, for each size; the last one for all others",
    )
    parser.add_argument("--units", type=int, default=100_000, help="units of the stream; 0 leaves it out")
    parser.add_argument(
        "--folder", type=Path, default=Path("out/benchmarks/flink-throughput"), help="folder of data and releases"
    )
    arguments = parser.parse_args()
    folder = own(arguments.folder.resolve())
    throughput.OUT.mkdir(parents=True, exist_ok=True)
    repeats = arguments.repeats + arguments.repeats[-1:] * len(arguments.rows)
    results, states = {}, {}
    try:
        with cluster(folder / "cluster") as flink:
            for rows, turns in zip(arguments.rows, repeats, strict=False):
                results[rows], states[f"disk, {rows:,} mutations and a tenth"] = compared(rows, turns, flink, folder)
            if arguments.units:
                states |= stream_state(arguments.units, flink, folder / "stream")
    except BrokenError as error:
        print(f"broken: {error}", file=sys.stderr)
        return 1
    finally:
        print_costs(results)
        print()
        print_state(states)
    return 0


if __name__ == "__main__":
    sys.exit(main())
