"""Throughput and memory of a bounded aggregation: ours, DuckDB's and PipelineDP's.

    python -m benchmarks.throughput --rows 12500000 --repeats 3

Every run is a separate process, measured from its start to its end. The runs alternate, so a slower phase of the
machine affects all of them. The table gives medians.
"""

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks import environment
from benchmarks.throughput.process import Cost, measure

OUT = Path("out/benchmarks/throughput")
PIPELINEDP = OUT / "pipelinedp"
PIPELINEDP_PINS = Path(__file__).with_name("pipelinedp.txt")


def data(rows: int) -> str:
    """Return a glob of the changelog's files, which are generated once for each size."""
    folder = OUT / f"changelog-{rows}"
    if not folder.exists():
        print(f"generating {rows:,} mutations ...", file=sys.stderr, flush=True)
        here("generate", "--rows", str(rows), "--to", str(folder))
    return str(folder / "*.parquet")


def here(module: str, *arguments: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.throughput.{module}", *arguments]
    subprocess.run(command, check=True)


def alternate(commands: Mapping[str, list[str]], repeats: int) -> dict[str, Cost]:
    """Return the median times and largest memory over `repeats` rounds that each run every command once."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(repeats):
        for name, command in commands.items():
            print(f"round {turn + 1} of {repeats}: {name}", file=sys.stderr, flush=True)
            costs[name].append(measure(command, OUT / f"{name.replace(' ', '-')}.log"))
    return {
        name: Cost(
            seconds=median(cost.seconds for cost in runs),
            processor=median(cost.processor for cost in runs),
            peak=max(cost.peak for cost in runs),
        )
        for name, runs in costs.items()
    }


def print_table(results: list[tuple[str, int, Cost]]) -> None:
    speed = {name: rows / cost.seconds for name, rows, cost in results}
    print("| program | mutations | seconds | mutations/s | of DuckDB | of PipelineDP Beam | processor s | peak GB |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, rows, cost in results:
        peers = [f"{speed[name] / speed[peer]:,.3g}" if peer in speed else "" for peer in ("DuckDB", "PipelineDP Beam")]
        print(
            f"| {name} | {rows:,} | {cost.seconds:.1f} | {speed[name]:,.0f} "
            f"| {' | '.join(peers)} | {cost.processor:.1f} | {cost.peak / 1e9:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="mutations of the changelog")
    parser.add_argument("--peer-rows", type=int, default=200_000, help="mutations for PipelineDP; 0 leaves it out")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each program")
    arguments = parser.parse_args()

    OUT.mkdir(parents=True, exist_ok=True)
    files = data(arguments.rows)
    module = [sys.executable, "-m"]
    big = {
        "Slackwater": [*module, "benchmarks.throughput.ours", files, str(OUT / "release")],
        "DuckDB": [*module, "benchmarks.throughput.duck", files, str(OUT / "duck.parquet")],
    }
    results = [(name, arguments.rows, cost) for name, cost in alternate(big, arguments.repeats).items()]
    if arguments.peer_rows and (python := environment.python(PIPELINEDP, peer="PipelineDP", pins=PIPELINEDP_PINS)):
        files = data(arguments.peer_rows)
        program = [python, "benchmarks/throughput/pipelinedp.py"]
        small = {
            f"PipelineDP {backend}": [*program, backend.lower(), files, str(OUT / f"{backend}.csv")]
            for backend in ("local", "Beam")
        }
        results += [(name, arguments.peer_rows, cost) for name, cost in alternate(small, arguments.repeats).items()]
    print_table(results)


if __name__ == "__main__":
    main()
