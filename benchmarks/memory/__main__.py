"""Memory of strategies over many windows, compared with NumPy that makes all nodes at once.

    python -m benchmarks.memory              # about four minutes

Each run is a separate process. NumPy cannot hold the full size, so the comparison uses a tenth of it.
"""

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.memory.ours import Told
from benchmarks.memory.setting import NAMES
from benchmarks.throughput.process import measure

OUT = Path("out/benchmarks/memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run; `peak` is the largest memory of the whole process in bytes, measured from outside."""

    program: str
    name: str
    cells: int
    windows: int
    told: Told
    peak: int


def result(program: str, name: str, cells: int, windows: int) -> Result:
    """Run a program in a separate process, and return its measurements.

    Args:
        program: `ours` or `at_once`.
        name: one of `NAMES`.
        cells: number of cells.
        windows: number of windows.
    """
    print(f"{program}: {name}, {cells:,} cells, {windows:,} windows ...", file=sys.stderr, flush=True)
    log = OUT / f"{program}-{name}-{cells}-{windows}.json"
    command = [sys.executable, "-m", f"benchmarks.memory.{program}", name, str(cells), str(windows)]
    cost = measure(command, log)
    told = Told(**json.loads(log.read_text()))
    return Result(program=program, name=name, cells=cells, windows=windows, told=told, peak=cost.peak)


def row(found: Result, peer: Result | None) -> str:
    """Return a line of the table; `peer` is the run to compare with, possibly the same one."""
    label = "NumPy at once" if found.program == "at_once" else "Slackwater"
    carries = " / ".join(f"{carry / 1e3:,.6g}" for carry in found.told.carries)
    ratios = ("", "")
    if peer:
        ratios = f"{found.told.seconds / peer.told.seconds:.2f}", f"{found.peak / peer.peak:.3f}"
    half = f"{found.told.half / 1e6:,.0f}" if found.told.half else ""
    return (
        f"| {label} | {found.name} | {found.cells:,} | {found.windows:,} | {carries} | {half} "
        f"| {found.peak / 1e6:,.0f} | {found.told.seconds:.1f} | {' | '.join(ratios)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cells", type=int, default=1_000_000, help="of the trees")
    parser.add_argument("--windows", type=int, default=730, help="of the trees")
    parser.add_argument("--long", type=int, default=100_000, help="windows of the factorisation, which has 20 cells")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)

    lines = [
        "| what | strategy | cells | windows | carry kB: first / half / end | peak MB, half | peak MB | seconds "
        "| of NumPy: time | peak |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in NAMES:
        cells, windows = (20, arguments.long) if name == "arma" else (arguments.cells, arguments.windows)
        few = (cells, windows // 10) if name == "arma" else (cells // 10, windows)
        whole = result("ours", name, cells, windows)
        ours, peer = result("ours", name, *few), result("at_once", name, *few)
        if not math.isclose(ours.told.checksum, peer.told.checksum, rel_tol=1e-6):
            raise SystemExit(f"{name}: the nodes differ from those of NumPy")
        lines += [row(whole, None), row(ours, peer), row(peer, peer)]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
