"""Kill runs of a release with SIGKILL at random moments, run again each time, and check the published files.

    python -m benchmarks.crash --kills 300 --gcs

A run passes four moments: it begins an attempt, samples its noise, commits it and shows it. A kill comes at a random
time between two of them, nine of ten after the attempt has begun. The next run is killed too, up to nine times in a
night; the last run of a night is not killed. Every second release has hardly any noise, and its numbers are compared
with the exact ones. With `--gcs`, half of the kills are of runs on a server on loopback that implements GCS and honours
preconditions. After each kill and each run, `checks.py` compares the files with everything that was seen before. At the
end come faults of storage (`faults.py`). The program ends with exit code 1 at the first failure, and keeps the files.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.crash.checks import ESTIMATE, Standing, Told, Watch, compare, demand
from benchmarks.crash.faults import READS, WRITES, damaged, failed_write, full_disk, slow_read
from benchmarks.crash.runs import MOMENTS, Ended, Kill, run
from benchmarks.crash.server import strict_gcs
from benchmarks.crash.setting import CLEAR, CLOSED, NOISY, Place, rows_of
from benchmarks.emptied import emptied

PHASES = ("nothing to do", "before its attempt", "at work", "sampled", "committed", "shown")
"""Progress of a run when it was killed. In the first phase, an earlier run had committed the night's epoch. In the last
phase, the noise of this or an earlier run is published, and files without use may not be removed yet."""

TURNS = ("begun", "committed", "begun", "sampled", "started", "begun", "committed", "shown", "sampled", "begun")
"""Moments after which runs are killed, in this order, repeatedly."""

TORN = ("torn manifest", "torn record", "torn state", "stale state")
PLANTS = {"full disk": (full_disk, WRITES), "write fails": (failed_write, WRITES), "read times out": (slow_read, READS)}
FAULTS = (*PLANTS, *TORN)

ROUNDS = 3
"""Releases with faults on each kind of store."""

KILLS_A_NIGHT = 9
"""Largest number of kills in a night; once its epoch is committed, only one more run is killed."""


@dataclass(slots=True)
class Tally:
    """Counts of one kind of store."""

    releases: int = 0
    runs: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    turn: int = 0
    """Number of attempted kills."""
    stretches: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MOMENTS, 0.3))
    """Seconds from each moment to the next, in the last complete run that released something."""
    idle: float = 0.5
    """Seconds of the last complete run that had nothing to do."""


@dataclass(slots=True)
class Nightly:
    """A release with a run each night, and checks after each run."""

    place: Place
    tally: Tally
    watch: Watch = field(default_factory=Watch)
    standing: Standing = field(default_factory=lambda: Standing(committed=0, shown=0, epochs=(), attempts={}))

    def start(self, epsilon: float) -> None:
        self.place.prepare(epsilon)
        self.tally.releases += 1

    def run(self, night: int, **how: Any) -> Ended:
        self.tally.runs += 1
        return run(self.place.folder, ["run", "spec.yaml", f"--until={self.place.until(night).isoformat()}"], **how)

    def look(self) -> None:
        committed = self.standing.committed
        self.standing = self.watch.look(self.place.read("public"), self.place.read("private"))
        if self.standing.committed != committed:
            self.look_at_ledger()

    def look_at_ledger(self) -> None:
        said = run(self.place.folder, ["ledger", "spec.yaml", "--json"])
        demand(said.code == 0, said.err)
        self.watch.look_at_ledger(json.loads(said.out))

    def kill(self, night: int) -> None:
        """Start a run and kill it, unless it ends first."""
        before = self.standing
        nothing_to_do = before.committed > night
        if nothing_to_do:
            since, longest = "started", self.tally.idle
        else:
            since = TURNS[self.tally.turn % len(TURNS)]
            self.tally.turn += 1
            longest = self.tally.stretches[since]
        ended = self.run(night, kill=Kill(since=since, seconds=random.uniform(0, longest)))
        self.look()
        if ended.code is None:
            phase = _phase(before, self.standing, sampled="sampled" in ended.passed, nothing_to_do=nothing_to_do)
            self.tally.kills[phase] += 1
        else:
            demand(ended.code == 0, ended.err)

    def finish(self, night: int) -> None:
        """Complete a night with a run that is not killed."""
        ended = self.run(night)
        demand(ended.code == 0, ended.err)
        if len(ended.passed) == len(MOMENTS):
            times = [*ended.passed.values(), ended.seconds]
            self.tally.stretches = {m: end - at for m, (at, end) in zip(MOMENTS, pairwise(times), strict=True)}
        else:
            self.tally.idle = ended.seconds
        self.look()
        self.standing = self.watch.look_at_end(
            self.place.read("public"), self.place.read("private"), windows=CLOSED[night]
        )
        # Beam leaves an empty folder of a killed run.
        left = [path for path in (self.place.folder / "tmp").rglob("*") if not path.is_dir()]
        demand(not left, f"left among temporary files: {left}")


def _phase(before: Standing, after: Standing, *, sampled: bool, nothing_to_do: bool) -> str:
    """Return the phase of a killed run, from the files that it left."""
    if after.shown > before.shown:
        return "shown"
    if after.committed > before.committed:
        return "committed"
    if sampled:
        return "sampled"
    if nothing_to_do:
        return "nothing to do"
    return "at work" if after.attempts.keys() - before.attempts.keys() else "before its attempt"


def crash(nightly: Nightly, kills: int) -> None:
    """Kill zero or more runs of each night, until `kills` are reached, and complete each night."""
    for night in range(nightly.place.nights):
        nightly.place.deliver(night)
        for _ in range(random.randint(0, KILLS_A_NIGHT)):
            nothing_to_do = nightly.standing.committed > night
            if nightly.tally.kills.total() < kills:
                nightly.kill(night)
            if nothing_to_do:
                break
        nightly.finish(night)


def suffer(nightly: Nightly, turn: int) -> None:
    """Cause one fault each night, in turns, and complete the night with a run without faults."""
    earlier: dict[str, bytes] = {}
    for night in range(nightly.place.nights):
        nightly.place.deliver(night)
        faults = FAULTS if night > 1 else tuple(PLANTS)  # earlier nights have no state of a previous epoch
        fault = faults[(night + turn) % len(faults)]
        if fault in PLANTS:
            plant, most = PLANTS[fault]
            number = random.randint(1, most)
            ended = nightly.run(night, fault=partial(plant, number))
            told = any(line.startswith("slackwater: ") for line in ended.err.splitlines())
            demand(ended.code in (0, 1, 3, 4), f"{fault} {number}: {ended.err}")
            demand(ended.code == 0 or told, f"{fault} {number}: there is no message")
            nightly.tally.faults[fault] += told  # otherwise the run ended before the fault
        else:
            nightly.tally.faults[fault] += damaged(nightly.place, fault, earlier, partial(nightly.run, night))
        nightly.look()
        earlier = nightly.place.read("private")
        nightly.finish(night)


def whole_release(folder: Path, nights: int) -> tuple[Watch, dict[Told, float]]:
    """Make the release in one run; return what was seen of it, and its exact bounded numbers."""
    nightly = Nightly(Place(folder=folder, nights=nights), Tally())
    nightly.start(CLEAR)
    for night in range(nights):
        nightly.place.deliver(night)
    nightly.finish(nights - 1)
    said = run(folder, ["evaluate", "spec.yaml", "--runs=1", "--truth=truth.parquet"])
    demand(said.code == 0, said.err)
    rows = rows_of((folder / "truth.parquet").read_bytes())
    return nightly.watch, {tuple(row[name] for name in ESTIMATE): row["bounded"] for row in rows}


def table(tallies: dict[str, Tally]) -> str:
    lines = [
        f"| store | releases | runs | kills | {' | '.join(PHASES)} |",
        f"|---|{'--:|' * (3 + len(PHASES))}",
    ]
    for name, tally in tallies.items():
        counts = " | ".join(f"{tally.kills[phase]:,}" for phase in PHASES)
        lines.append(f"| {name} | {tally.releases} | {tally.runs} | {tally.kills.total()} | {counts} |")
    if any(tally.faults for tally in tallies.values()):
        lines += ["", f"| store | {' | '.join(FAULTS)} |", f"|---|{'--:|' * len(FAULTS)}"]
        for name, tally in tallies.items():
            lines.append(f"| {name} | {' | '.join(str(tally.faults[fault]) for fault in FAULTS)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=300, help="total number of kills")
    parser.add_argument("--gcs", action="store_true", help="half of the kills with a release in gs://")
    parser.add_argument(
        "--nights", type=int, default=len(CLOSED), choices=range(3, len(CLOSED) + 1), help="of each release"
    )
    parser.add_argument("--no-faults", action="store_true", help="only kills, no faults of storage")
    parser.add_argument(
        "--folder", type=Path, default=Path("out/benchmarks/crash"), help="folder of the releases; it is emptied first"
    )
    arguments = parser.parse_args()
    emptied(arguments.folder)
    began = time.monotonic()
    whole, truth = whole_release(arguments.folder / "whole", arguments.nights)

    def test(name: str, bucket: Any, tally: Tally, kills: int) -> None:
        def release(subject: str, epsilon: float, test: Callable[[Nightly], None]) -> None:
            prefix = f"{name}-{tally.releases}"
            print(f"{prefix}: {subject} ...", file=sys.stderr, flush=True)
            place = Place(folder=arguments.folder / prefix, bucket=bucket, prefix=prefix, nights=arguments.nights)
            nightly = Nightly(place, tally)
            nightly.start(epsilon)
            test(nightly)
            compare(nightly.watch, whole, truth if epsilon == CLEAR else None)

        while tally.kills.total() < kills:
            epsilon = (NOISY, CLEAR)[tally.releases % 2]
            release(f"{tally.kills.total()} of {kills} kills", epsilon, partial(crash, kills=kills))
        for turn in range(0 if arguments.no_faults else ROUNDS):
            release("faults of storage", CLEAR, partial(suffer, turn=turn * ROUNDS))

    tallies = {"local": Tally()}
    try:
        test("local", None, tallies["local"], arguments.kills - arguments.kills // 2 * arguments.gcs)
        if arguments.gcs:
            with strict_gcs() as client:
                tallies["gs"] = Tally()
                test("gs", client.create_bucket("crash"), tallies["gs"], arguments.kills // 2)
    finally:
        print(table(tallies))
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
