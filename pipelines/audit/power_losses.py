"""Layer: losses of power, after which only flushed writes are there.

Runs work on a simulated disk that forgets what was not flushed, as strictly as POSIX allows (pipelines.audit.power).
Runs are killed, power is lost on one side or on both, and the next run completes the release. Files that a reader has
seen before the loss must not change, since their noise would be sampled twice, and none may be lost.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from pipelines.audit.findings import LayerResult
from pipelines.audit.forked import Access, forked
from pipelines.audit.kills import COMMIT, MANIFEST, begun, changed, public, repeated, rows_of_life, run_until
from pipelines.audit.power import Disk, Survives, forget
from pipelines.audit.prepared import Prepared
from pipelines.audit.whole_bounds import halves


def _all() -> bool:
    return True


def _nothing() -> bool:
    return False


def _some() -> bool:
    return random.random() < 0.5


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """A loss of power after some runs.

    Attributes:
        kills: Where these runs are killed, one after the other; None: a run ends by itself.
        public, private: Which unflushed writes of each side survive.
    """

    kills: tuple[Access | None, ...]
    public: Survives = _all
    private: Survives = _all


LOSSES = (
    PowerLoss((None,), private=_nothing),
    PowerLoss((Access(1, COMMIT), Access(0, MANIFEST)), private=_nothing),
    PowerLoss((None,), public=_nothing),
    PowerLoss((Access(1, COMMIT), None), private=_nothing),
)
"""Losses that come first: after a run, and after a run that publishes what a killed run had committed."""


def check_power(ready: Prepared, losses: int, choose: Random) -> LayerResult:
    """Lose power after runs that were killed, and compare everything that was ever public.

    Args:
        ready: The copy of a spec.
        losses: Number of releases, with a loss in each of two epochs.
        choose: Source of random choices.
    """
    rows, faults, done = rows_of_life(ready, choose), dict[str, None](), 0
    first, untested = iter(LOSSES), tuple[str, ...]()
    try:
        for _ in range(losses):
            if faults:
                break
            begun(ready, rows)
            for windows in halves(ready.setting):
                found = _lost(ready, windows, next(first, None) or _any(choose))
                faults |= dict.fromkeys(found)
                done += 1
    except RuntimeError as error:
        untested = (f"Losses of power: {error}.",)
    return LayerResult(
        name="power",
        question="Can a loss of power cause a second sample of a node, or lose one?",
        tried={"losses of power": done},
        faults=(*faults,),
        untested=untested,
    )


def _any(choose: Random) -> PowerLoss:
    kills = tuple(Access(choose.randrange(60), choose.choice(["", COMMIT, MANIFEST])) for _ in range(2))
    return PowerLoss(kills, public=_some, private=_some)


def _lost(ready: Prepared, windows: int, loss: PowerLoss) -> Sequence[str]:
    disks = tuple(_disk(Path(folder)) for folder in (ready.spec.output.public, ready.spec.output.private))
    seen: dict[str, str] = {}
    for kill in loss.kills:
        forked(ready.spec.base, partial(_on_disks, disks, partial(run_until, ready, windows)), kill)
        seen |= public(ready)
    for disk, survives in zip(disks, (loss.public, loss.private), strict=True):
        disk.lose_power(survives)
    if not forked(ready.spec.base, partial(run_until, ready, windows)).done:
        return ["a run cannot be completed after a loss of power"]
    lost = changed(seen, public(ready))
    return [*(text.replace("a run that was killed", "a loss of power") for text in lost), *repeated(ready)]


def _disk(folder: Path) -> Disk:
    folder.mkdir(mode=0o700, exist_ok=True)
    disk = Disk(folder, folder.with_name(f"{folder.name} on disk"))
    disk.all_flushed()
    return disk


def _on_disks(disks: Sequence[Disk], work: Any) -> None:
    forget(disks)
    work()
