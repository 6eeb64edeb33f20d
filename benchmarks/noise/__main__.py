"""Speed of noise: samples a second, and what a release with many numbers takes.

    python -m benchmarks.noise             # all three tables; ten minutes
    python -m benchmarks.noise samples     # samples only
    python -m benchmarks.noise large       # ten million numbers, on all cores; five minutes

All times are processor seconds, so that a busy machine changes them little; releases also have wall-clock seconds.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.noise.opendp import opendp_samples
from benchmarks.noise.releases import LARGE, RELEASES, write_release
from benchmarks.throughput.process import measure
from privacy.noise.exact.bounds import gaussian, laplace
from privacy.noise.exact.sampler import make_sampler

LAWS = {"Laplace": laplace, "Gaussian": gaussian}
SCALES = (0.01, 1.0, 30.0, 1e3, 1e6, 1e9, 2.0**55)
MANY, FEW = 2_000_000, 20_000
"""Samples to time: of the fast samplers, and of OpenDP."""

PARTS = ("samples", "releases", "large")
STAGES = ("noise", "numbers", "tables", "files", "plan", "everything else")


def seconds(work: Callable[[], object], *, repeats: int = 3) -> float:
    """Return the least processor time of some calls."""
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def print_samples() -> None:
    """Print samples a second by distribution and scale, and what small calls take."""
    print(
        "| noise | scale | samples/s, million | OpenDP | times | NumPy, not exact | first call, ms | 1, us | 100, us |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in LAWS:
        for scale in SCALES:
            print("| " + " | ".join(samples_row(name, scale)) + " |", flush=True)


def samples_row(name: str, scale: float) -> list[str]:
    law, chance = LAWS[name], np.random.default_rng()
    draw = chance.laplace if law is laplace else chance.normal
    first = seconds(lambda: make_sampler(law, scale).sample(1), repeats=1)
    sampler = make_sampler(law, scale)
    ours = MANY / seconds(lambda: sampler.sample(MANY))
    theirs = FEW / seconds(lambda: opendp_samples(name, scale, FEW))
    numpy = MANY / seconds(lambda: np.rint(draw(0, scale, MANY)).astype(np.int64))
    one, hundred = (seconds(lambda: [sampler.sample(size) for _ in range(1000)]) / 1000 for size in (1, 100))  # noqa: B023
    return [
        *(
            name,
            f"{scale:.3g}",
            f"{ours / 1e6:.0f}",
            f"{theirs / 1e6:.3f}",
            f"{ours / theirs:.0f}",
            f"{numpy / 1e6:.0f}",
        ),
        *(f"{first * 1e3:.1f}", f"{one * 1e6:.0f}", f"{hundred * 1e6:.0f}"),
    ]


def run_on_one_core(command: list[str]) -> dict[str, Any]:
    """Return the JSON of a command's last line."""
    core = {min(os.sched_getaffinity(0))}
    made = subprocess.run(
        command, check=False, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, core)
    )
    if made.returncode:
        sys.exit(made.stderr)
    told: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    return told


def print_releases() -> None:
    """Print what `slackwater run` takes for each release on one core, with our noise and with OpenDP's."""
    columns = ("release", "noise by", "samples", "numbers", "wall s", "processor s", "s per million numbers", *STAGES)
    print("| " + " | ".join(columns) + " |")
    print("|---|---|" + "--:|" * (len(columns) - 2))
    with tempfile.TemporaryDirectory() as folder:
        for name in RELEASES:
            for source in ("slackwater", "opendp"):
                spec = write_release(name, Path(folder, f"{name}-{source}"))
                told = run_on_one_core([sys.executable, "-m", "benchmarks.noise.stages", str(spec), source])
                stages = " | ".join(f"{told['stages'].get(stage, 0):.2f}" for stage in STAGES)
                print(
                    f"| {name} | {source} | {told['samples']:,} | {told['numbers']:,} | {told['wall']:.1f} "
                    f"| {told['processor']:.1f} | {told['processor'] / told['numbers'] * 1e6:.2f} | {stages} |",
                    flush=True,
                )


def print_large() -> None:
    """Print what whole commands take for large releases on all cores: `run`, `show` and `report`."""
    print("| release | numbers | command | wall s | processor s | peak MB | output MB |")
    print("|---|--:|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in LARGE:
            spec = write_release(name, Path(folder, name))
            files = {"run": spec.parent / "public", "show": spec.parent / "log", "report": spec.parent / "page.html"}
            for command, made in files.items():
                output = ["-o", str(made)] if command == "report" else []
                before = os.times()
                cost = measure([sys.executable, "-m", "pipelines", command, str(spec), *output], spec.parent / "log")
                after = os.times()
                processor = sum(after[2:4]) - sum(before[2:4])
                size = sum(path.stat().st_size for path in ([made] if made.is_file() else made.rglob("*.*")))
                numbers = sum(
                    pq.read_metadata(file).num_rows for file in spec.parent.glob("public/estimates/*.parquet")
                )
                print(
                    f"| {name} | {numbers:,} | {command} | {cost.seconds:.1f} | {processor:.1f} "
                    f"| {cost.peak / 1e6:,.0f} | {size / 1e6:.1f} |",
                    flush=True,
                )
            shutil.rmtree(spec.parent)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=PARTS, help="default: all")
    parts = parser.parse_args().parts or PARTS
    if "samples" in parts:
        print_samples()
    if "releases" in parts:
        print_releases()
    if "large" in parts:
        print_large()


if __name__ == "__main__":
    main()
