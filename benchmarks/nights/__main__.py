"""Cost of a nightly run after two years of nights, compared with one after a month.

    python -m benchmarks.nights              # about six minutes

A night is one `slackwater run` with the new day's file, in a separate process, measured from its start to its end.
Nights of both releases take turns; the table gives medians. Processor seconds count the whole process too, and depend
less on the machine's other work.
"""

import argparse
import resource
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.nights.setting import COMING, STAY, until, write_day
from benchmarks.throughput.process import measure
from pipelines.store.store import Store
from transforms.aggregation.shard_state import state_from_bytes

OUT = Path("out/benchmarks/nights")


@dataclass(slots=True)
class Release:
    """A release with a history of `days` days, and the cost of its nights so far."""

    folder: Path
    days: int
    wards: int
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    peak: int = 0

    def night(self) -> None:
        """Write a new day's file and run; then run again with nothing due, which measures the start alone."""
        day = self.days + len(self.seconds)
        write_day(self.folder, day, self.wards)
        command = [sys.executable, "-m", "pipelines", "run", str(self.folder / "spec.yaml"), until(day + 1)]
        before = processor_seconds()
        cost = measure(command, OUT / f"night-{self.days}.log")
        self.processor.append(processor_seconds() - before)
        self.seconds.append(cost.seconds)
        self.peak = max(self.peak, cost.peak)
        self.idle.append(measure(command, OUT / f"idle-{self.days}.log").seconds)

    def row(self) -> str:
        """Return a line of the table."""
        store = Store(str(self.folder / "public"), str(self.folder / "private"))
        *_, last = commits = store.commits()
        paths = {name: Path(path) for name, path in store.attempts.state_paths(last).items()}
        shards = [state_from_bytes(path.read_bytes()) for name, path in paths.items() if name.startswith("units-")]
        nodes = sum(path.stat().st_size for name, path in paths.items() if name.startswith("release-"))
        units = sum(path.stat().st_size for name, path in paths.items() if name.startswith("units-"))
        live, frozen = (sum(getattr(s, name).num_rows for s in shards) for name in ("units", "frozen"))
        return (
            f"| {self.days} | {len(commits)} | {live:,} | {frozen:,} | {3 * COMING:,} | {units / 1e6:.1f} "
            f"| {nodes / 1e6:.2f} | {(self.folder / 'public/manifest.json').stat().st_size / 1e6:.2f} "
            f"| {self.peak / 1e6:,.0f} | {median(self.idle):.2f} | {median(self.seconds):.2f} "
            f"| {median(self.processor):.2f} |"
        )


def processor_seconds() -> float:
    """Return the processor seconds of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--days", type=int, nargs=2, default=[30, 730], help="lengths of both histories")
    parser.add_argument("--nights", type=int, default=5, help="number of measured nights of each release")
    parser.add_argument("--wards", type=int, default=20, help="number of cells of both queries")
    parser.add_argument("--strategy", default="auto", help="strategy, as in a spec")
    arguments = parser.parse_args()
    if min(arguments.days) < 2 * STAY:
        parser.error(f"--days: must be at least {2 * STAY}; before that nobody leaves, so nights differ")
    OUT.mkdir(parents=True, exist_ok=True)
    releases = [Release((OUT / f"days-{days}").resolve(), days, arguments.wards) for days in arguments.days]
    for release in releases:
        print(f"making a history of {release.days} days ...", file=sys.stderr, flush=True)
        history = [sys.executable, "-m", "benchmarks.nights.history", str(release.folder), str(release.days)]
        history += [str(arguments.wards), arguments.strategy]
        measure(history, OUT / f"history-{release.days}.log")
    for night in range(arguments.nights):
        for release in releases:
            print(f"night {night + 1} of {arguments.nights} after {release.days} days", file=sys.stderr, flush=True)
            release.night()
    print(
        "| days before | epochs | units alive | units done | new mutations | state of units MB | of nodes MB "
        "| manifest MB | peak MB | seconds, nothing due | seconds | processor |\n"
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    for release in releases:
        print(release.row())
    short, long = releases
    ratio = median(long.seconds) / median(short.seconds)
    of_processor = median(long.processor) / median(short.processor)
    print(
        f"\nA night after {long.days} days takes {ratio:.2f} times as long as one after {short.days}, "
        f"and {of_processor:.2f} times the processor."
    )


if __name__ == "__main__":
    main()
