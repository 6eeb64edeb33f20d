"""Throughput and memory of a bounded aggregation: ours, DuckDB's and PipelineDP's.

    python -m benchmarks.throughput --rows 12500000 --repeats 3

Every run is a process of its own, from its start to its end; the runs alternate, so that a machine
that slows down slows all of them; the table gives medians.
"""

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks.throughput.process import Cost, measure

OUT = Path("out/benchmarks/throughput")
PIPELINEDP = OUT / "pipelinedp"  # an environment of its own: its versions are not ours to choose
PIPELINEDP_PINS = ("pipeline-dp==0.3.1", "python-dp==1.1.5", "apache-beam==2.77.0")


def data(rows: int) -> str:
    """A glob of the changelog's files, generated once for each size."""
    folder = OUT / f"changelog-{rows}"
    if not folder.exists():
        print(f"generating {rows:,} mutations ...", file=sys.stderr, flush=True)
        here("generate", "--rows", str(rows), "--to", str(folder))
    return str(folder / "*.parquet")


def here(module: str, *arguments: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.throughput.{module}", *arguments]
    subprocess.run(command, check=True)


def pipelinedp_python() -> str:
    """The interpreter of PipelineDP's environment, which is made if need be."""
    python = PIPELINEDP / "bin" / "python"
    if not python.exists():
        print("installing PipelineDP ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(PIPELINEDP)], check=True)
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, *PIPELINEDP_PINS], check=True)
    return str(python)


def alternate(commands: Mapping[str, list[str]], repeats: int) -> dict[str, Cost]:
    """Medians over `repeats` rounds, each of which runs every command once."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(repeats):
        for name, command in commands.items():
            print(f"round {turn + 1} of {repeats}: {name}", file=sys.stderr, flush=True)
            costs[name].append(measure(command, OUT / f"{name.replace(' ', '-')}.log"))
    return {
        name: Cost(seconds=median(cost.seconds for cost in runs), peak=max(cost.peak for cost in runs))
        for name, runs in costs.items()
    }


def print_table(results: list[tuple[str, int, Cost]]) -> None:
    speed = {name: rows / cost.seconds for name, rows, cost in results}
    print("| what | mutations | seconds | mutations/s | of DuckDB | of PipelineDP Beam | peak GB |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, rows, cost in results:
        peers = [f"{speed[name] / speed[peer]:,.3g}" if peer in speed else "" for peer in ("DuckDB", "PipelineDP Beam")]
        print(
            f"| {name} | {rows:,} | {cost.seconds:.1f} | {speed[name]:,.0f} "
            f"| {' | '.join(peers)} | {cost.peak / 1e9:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--peer-rows", type=int, default=200_000, help="for PipelineDP; 0: leave out")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()

    OUT.mkdir(parents=True, exist_ok=True)
    files = data(arguments.rows)
    module = [sys.executable, "-m"]
    big = {
        "Slackwater": [*module, "benchmarks.throughput.ours", files, str(OUT / "release")],
        "DuckDB": [*module, "benchmarks.throughput.duck", files, str(OUT / "duck.parquet")],
    }
    results = [(name, arguments.rows, cost) for name, cost in alternate(big, arguments.repeats).items()]
    if arguments.peer_rows:
        files = data(arguments.peer_rows)
        program = [pipelinedp_python(), "benchmarks/throughput/pipelinedp.py"]
        small = {
            f"PipelineDP {backend}": [*program, backend.lower(), files, str(OUT / f"{backend}.csv")]
            for backend in ("local", "Beam")
        }
        results += [(name, arguments.peer_rows, cost) for name, cost in alternate(small, arguments.repeats).items()]
    print_table(results)


if __name__ == "__main__":
    main()
