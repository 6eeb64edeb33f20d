"""Simulate repeated power losses during a release of several nights, and check the published files.

    python -m benchmarks.crash.losses --losses 200
    python -m benchmarks.crash.losses --losses 40 --ext4      # as root, with loop devices

Up to two runs are killed at random calls, a third of them right after the commit record got its name, when only the
machine's memory holds that name. Then both sides' disks lose power: everything that was not flushed is lost, or a
random part of it, or all of it on one side and nothing on the other. Later runs continue from the remaining files. No
node and no number may ever have a second value that a reader could have seen, and no run may be refused. The program
ends with exit code 1 at the first failure, and keeps the files.

The disks are those of `power.py`, the strictest that POSIX allows. With `--ext4` they are two real file systems that
lose the contents of the machine's memory.
"""

import argparse
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.crash.checks import ESTIMATE, NODE, Files, Told, Watch, demand
from benchmarks.crash.runs import Ended, Kill, run
from benchmarks.crash.setting import CLOSED, NOISY, Place, rows_of
from benchmarks.emptied import emptied
from pipelines.audit.power import NAMES, Disk, Survives, forget

SIDES = ("public", "private")
NIGHTS = 4
LOSSES_A_NIGHT = 4


def nothing() -> bool:
    return False


def everything() -> bool:
    return True


def some() -> bool:
    return random.random() < 0.5


SURVIVES: dict[str, tuple[Survives, Survives]] = {
    "public all, private nothing": (everything, nothing),
    "public nothing, private all": (nothing, everything),
    "some of both": (some, some),
    "nothing": (nothing, nothing),
}
"""Survival of writes that were not flushed, on the public and the private side."""


@dataclass(frozen=True, slots=True)
class Ext4:
    """A real file system in a file."""

    root: Path

    @property
    def image(self) -> Path:
        return self.root.with_name(f"{self.root.name}.image")

    def make(self) -> None:
        with self.image.open("wb") as file:
            file.truncate(24 * 2**20)
        subprocess.run(["mkfs.ext4", "-q", self.image], check=True)
        self.mount()

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", self.image, self.root], check=True)

    def unmount(self) -> None:
        subprocess.run(["umount", self.root], check=True)

    def lose_power(self, _: Survives) -> None:
        """Continue with the present contents of the disk, and drop writes that are only in memory."""
        left = self.image.with_suffix(".left")
        shutil.copyfile(self.image, left)
        self.unmount()
        left.replace(self.image)
        self.mount()


@dataclass(slots=True)
class Seen:
    """All values that a reader of the public side has ever seen."""

    files: dict[str, bytes] = field(default_factory=dict)
    values: dict[Told, tuple[str, float]] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)

    def look(self, public: Files) -> None:
        """Read the published files.

        Raises:
            BrokenError: a node or a number has a different value than before.
        """
        for name, content in public.items():
            if not name.startswith(("nodes/", "estimates/")) or self.files.get(name) == content:
                continue
            key, value = (NODE, "noisy_value") if name.startswith("nodes/") else (ESTIMATE, "value")
            for row in rows_of(content):
                told = (value, *(row[column] for column in key))
                where, known = self.values.setdefault(told, (name, row[value]))
                demand(
                    where == name and known == row[value], f"{name}: a second sample of noise; {where} was seen before"
                )
            self.files[name] = content

    def look_at_end(self, public: Files) -> None:
        """Read the published files after a successful run.

        Raises:
            BrokenError: as `look`; or a file that was seen is missing.
        """
        self.look(public)
        demand(self.files.items() <= public.items(), f"lost: {sorted(self.files.keys() - public.keys())}")


@dataclass(slots=True)
class Tally:
    releases: int = 0
    runs: int = 0
    losses: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    unflushed: Counter[str] = field(default_factory=Counter)
    """Losses after a kill right after the commit record got its name."""


@dataclass(slots=True)
class Losing:
    """A release that loses power every night."""

    place: Place
    disks: tuple[Disk, Disk] | tuple[Ext4, Ext4]
    tally: Tally
    seen: Seen = field(default_factory=Seen)
    calls: list[str] = field(default_factory=lambda: ["mkdir"] * 100)
    """Calls of the last complete run, in order."""

    def run(self, night: int, dies_after: int | str | None = None) -> Ended:
        self.tally.runs += 1
        told = self.place.folder / "told.txt"
        told.write_text("")
        ours = [disk for disk in self.disks if isinstance(disk, Disk)]
        ended = run(
            self.place.folder,
            ["run", "spec.yaml", f"--until={self.place.until(night).isoformat()}"],
            kill=None if dies_after is None else Kill(since="its own hand", seconds=0),
            fault=partial(forget, ours, dies_after=dies_after, told=told, flushes=not ours),
        )
        demand(ended.code in (0, None), ended.err)
        self.seen.look(self.public())
        if ended.code == 0 and "link" in told.read_text():
            self.calls = told.read_text().split()
        return ended

    def public(self) -> Files:
        return {name: c for name, c in self.place.read("public").items() if not Path(name).name.startswith(".")}

    def lose(self, night: int) -> None:
        """Kill up to two runs, then lose power."""
        last = []
        for _ in range(random.randint(1, 2)):
            if self.run(night, self._step()).code is None:
                last.append((self.place.folder / "told.txt").read_text().split()[-1])
        how = random.choice(list(SURVIVES)) if isinstance(self.disks[0], Disk) else "as ext4 does"
        chances = SURVIVES.get(how, (some, some))
        for number, chance in enumerate(chances):
            self.disks[number].lose_power(chance)
        self.seen.look(self.public())
        self.tally.losses[how] += 1
        self.tally.kills[how] += len(last)
        self.tally.unflushed[how] += "link" in last

    def _step(self) -> int | str:
        """Return the call after which a run dies: any, one that changes a name, or the one that commits."""
        named = [number for number, call in enumerate(self.calls, start=1) if call in NAMES]
        steps: list[int | str] = [random.randint(1, len(self.calls)), random.choice(named), "link"]
        return random.choice(steps)

    def finish(self, night: int) -> None:
        """Complete a night: check that everything is published and nothing that was seen has changed."""
        demand(self.run(night).code == 0, "the run was killed")
        self.seen.look_at_end(self.public())
        Watch().look_at_end(self.public(), self.place.read("private"), windows=CLOSED[night])


@contextmanager
def disks(folder: Path, *, ext4: bool) -> Iterator[tuple[Disk, Disk] | tuple[Ext4, Ext4]]:
    roots = [folder / "disks" / side for side in SIDES]
    for root in roots:
        root.mkdir(parents=True)
    if not ext4:
        made = [Disk(root, folder / "memory" / root.name) for root in roots]
        for disk in made:
            disk.all_flushed()
        yield made[0], made[1]
        return
    real = [Ext4(root) for root in roots]
    for one in real:
        one.make()
    try:
        yield real[0], real[1]
    finally:
        for one in real:
            one.unmount()


def release(place: Place, tally: Tally, losses: int, *, ext4: bool) -> None:
    """Run one release with power losses.

    Args:
        place: of the release.
        tally: counts to add to.
        losses: largest number of losses.
        ext4: whether its disks are real file systems.
    """
    place.prepare(NOISY)
    tally.releases += 1
    with disks(place.folder, ext4=ext4) as both:
        losing = Losing(place, both, tally)
        left = losses
        for night in range(place.nights):
            place.deliver(night)
            for _ in range(min(left, random.randint(1, LOSSES_A_NIGHT))):
                losing.lose(night)
                left -= 1
            losing.finish(night)


def table(tally: Tally) -> str:
    lines = ["| surviving unflushed writes | losses | kills before | of them between a commit's name and its flush |"]
    lines += ["|---|--:|--:|--:|"]
    for how, losses in sorted(tally.losses.items()):
        lines.append(f"| {how} | {losses} | {tally.kills[how]} | {tally.unflushed[how]} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--losses", type=int, default=200, help="total number of losses")
    parser.add_argument("--ext4", action="store_true", help="on real file systems; needs root and loop devices")
    parser.add_argument(
        "--folder", type=Path, default=Path("out/benchmarks/losses"), help="folder of the releases; it is emptied first"
    )
    arguments = parser.parse_args()
    emptied(arguments.folder)
    began, tally = time.monotonic(), Tally()
    try:
        while (left := arguments.losses - tally.losses.total()) > 0:
            print(f"{tally.losses.total()} of {arguments.losses} losses ...", file=sys.stderr, flush=True)
            folder = (arguments.folder / str(tally.releases)).absolute()
            release(Place(folder=folder, nights=NIGHTS, apart=True), tally, left, ext4=arguments.ext4)
    finally:
        print(table(tally))
    print(f"{tally.releases} releases, {tally.runs} runs, {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
