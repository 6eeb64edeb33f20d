"""Let the power go, again and again, while a release goes on from night to night, and watch what is published.

    python -m benchmarks.crash.losses --losses 200
    python -m benchmarks.crash.losses --losses 40 --ext4      # as root, with loop devices

Up to two runs are killed at random calls, a third of them right after the commit has its name, where one run leaves to
the next what only the machine's memory holds. Then the power goes, on both sides' disks: all that was not flushed is
lost, or some of it by chance, or all of it on one side and none on the other. Then runs go on with what is left. No
node and no number may ever have a second value, whoever saw the first, and no run may be refused. Ends with 1 as soon
as anything is wrong, and leaves the files.

The disks are those of `power.py`, the strictest that POSIX allows. With `--ext4` they are two real file systems, of
which the machine's memory is lost.
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
from benchmarks.crash.power import NAMES, Chance, Disk, forget
from benchmarks.crash.runs import Ended, Kill, run
from benchmarks.crash.setting import CLOSED, NOISY, Place, rows_of

SIDES = ("public", "private")
NIGHTS = 4
LOSSES_A_NIGHT = 4


def nothing() -> bool:
    return False


def everything() -> bool:
    return True


def some() -> bool:
    return random.random() < 0.5


SURVIVES: dict[str, tuple[Chance, Chance]] = {
    "public all, private nothing": (everything, nothing),
    "public nothing, private all": (nothing, everything),
    "some of both": (some, some),
    "nothing": (nothing, nothing),
}
"""What survives of all that was not flushed, on either side."""


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

    def lose_power(self, _: Chance) -> None:
        """Go on with what is on the disk at this moment; what the machine would still write comes to nothing."""
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
        """
        Raises:
            BrokenError: a node or a number has another value than it had.
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
        """
        Raises:
            BrokenError: what was seen is no longer there.
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
    """Losses after a kill that came right after the commit record got its name."""


@dataclass(slots=True)
class Losing:
    """A release that loses power night after night."""

    place: Place
    disks: tuple[Disk, Disk] | tuple[Ext4, Ext4]
    tally: Tally
    seen: Seen = field(default_factory=Seen)
    calls: list[str] = field(default_factory=lambda: ["mkdir"] * 100)
    """What the last run that was left alone called."""

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
        """Some runs are killed, and the power goes."""
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
        """After which call a run dies: any, one that has changed a name, or the one that commits."""
        named = [number for number, call in enumerate(self.calls, start=1) if call in NAMES]
        steps: list[int | str] = [random.randint(1, len(self.calls)), random.choice(named), "link"]
        return random.choice(steps)

    def finish(self, night: int) -> None:
        """A run that is left alone: everything is published, and what was seen stands."""
        demand(self.run(night).code == 0, "killed")
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
    """One release, with at most so many losses."""
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
    lines = ["| what survives unflushed | losses | kills before | of them between a commit's name and its flush |"]
    lines += ["|---|--:|--:|--:|"]
    for how, losses in sorted(tally.losses.items()):
        lines.append(f"| {how} | {losses} | {tally.kills[how]} | {tally.unflushed[how]} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--losses", type=int, default=200, help="how many in all")
    parser.add_argument("--ext4", action="store_true", help="on real file systems; needs root and loop devices")
    parser.add_argument("--folder", type=Path, default=Path("out/benchmarks/losses"), help="is emptied first")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.folder, ignore_errors=True)
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
