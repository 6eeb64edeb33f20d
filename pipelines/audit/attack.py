"""The process in which an audit attacks a spec: `python -m pipelines.audit.attack SPEC FOLDER EFFORT [LAYER ...]`.

It is a separate process, since some layers replace the noise by zeros: nothing else in it may publish. It writes
`result.json` into the folder and prints nothing.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from pipelines.audit.adaptive import check_adaptive
from pipelines.audit.discovery import check_discovery
from pipelines.audit.findings import LayerResult
from pipelines.audit.kills import check_kills
from pipelines.audit.membership import check_membership
from pipelines.audit.mutations import random_life
from pipelines.audit.power_losses import check_power
from pipelines.audit.prepared import Prepared, prepared
from pipelines.audit.published import check_published
from pipelines.audit.rollback import check_rollback
from pipelines.audit.scale import check_scale
from pipelines.audit.sensitivity import Search, moving, search
from pipelines.audit.streams import check_streams
from pipelines.audit.whole import check_whole
from pipelines.published.others import of_other_kind
from pipelines.spec.load import load

RESULT = "result.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much an audit tries; seconds are of processor time.

    Attributes:
        search: Seconds of the search for neighbours.
        noise: Most seconds for samples of noise.
        decisions: Seconds of the search for losses of adaptive queries, and for wrongly found keys.
        guesses: Fewest and most seconds for guesses; between them, they stop at half of the claim.
        pairs: Fewest pairs of whole runs; in every second one the unit is alone, so 2 or more have both kinds.
        kills: Releases whose runs are killed.
        losses: Releases during which power is lost.
        operations: Whether folders are restored, streams are compared with runs, and a public folder is read.
    """

    search: float
    noise: float
    decisions: float
    guesses: tuple[float, float]
    pairs: int
    kills: int
    losses: int
    operations: bool


EFFORTS = {
    name: Effort(
        search=search_,
        noise=noise,
        decisions=decisions,
        guesses=guesses,
        pairs=pairs,
        kills=kills,
        losses=losses,
        operations=name not in ("quick", "claims"),
    )
    for name, search_, noise, decisions, guesses, pairs, kills, losses in (
        ("seeded", 20, 8, 4, (4, 4), 2, 2, 2),
        ("alone", 3, 3, 2, (3, 3), 2, 1, 1),
        ("claims", 3, 0, 2, (1, 240), 0, 0, 0),
        ("quick", 20, 8, 4, (6, 6), 2, 0, 0),
        ("usual", 120, 30, 30, (30, 60), 3, 6, 2),
        ("full", 1500, 120, 200, (300, 300), 10, 50, 20),
    )
}


@dataclass(slots=True)
class Attack:
    """The layers of one audit, which share the search for the worst neighbours."""

    ready: Prepared
    effort: Effort
    seeker: Search | None = None

    def sensitivity(self) -> list[LayerResult]:
        layer, self.seeker = search(self.ready.stages, self.ready.setting, seconds=self.effort.search)
        return [layer]

    def noise(self) -> list[LayerResult]:
        return [check_scale(self.ready.stages, seconds=self.effort.noise)]

    def decisions(self) -> list[LayerResult]:
        return [*check_adaptive(self.ready.stages, seconds=self.effort.decisions, choose=Random())]

    def discovery(self) -> list[LayerResult]:
        ready, seconds = self.ready, self.effort.decisions
        return [*check_discovery(ready.stages, ready.setting, seconds=seconds, choose=Random())]

    def membership(self) -> list[LayerResult]:
        seeker = self.seeker or search(self.ready.stages, self.ready.setting, seconds=2)[1]
        return [check_membership(seeker, seconds=self.effort.guesses)]

    def kills(self) -> list[LayerResult]:
        return [check_kills(self.ready, self.effort.kills, Random())] if self.effort.kills else []

    def power(self) -> list[LayerResult]:
        return [check_power(self.ready, self.effort.losses, Random())] if self.effort.losses else []

    def rollback(self) -> list[LayerResult]:
        return [check_rollback(self.ready, Random())] if self.effort.operations else []

    def published(self) -> list[LayerResult]:
        return [check_published(self.ready, Random())] if self.effort.operations else []

    def streams(self) -> list[LayerResult]:
        return [check_streams(self.ready, Random())] if self.effort.operations else []

    def runs(self) -> list[LayerResult]:
        ready, choose = self.ready, Random()
        lives = moving(ready.stages, ready.setting, choose)
        if self.seeker is not None and self.seeker.worst is not None:
            lives.append(self.seeker.worst[0])
        lives += [random_life(ready.setting, choose) for _ in range(self.effort.pairs - len(lives))]
        return [check_whole(ready.spec, ready.stages, lives, ready.setting)]


LAYERS: dict[str, Callable[[Attack], list[LayerResult]]] = {
    "sensitivity": Attack.sensitivity,
    "noise": Attack.noise,
    "decisions": Attack.decisions,
    "discovery": Attack.discovery,
    "membership": Attack.membership,
    "kills": Attack.kills,  # these four before Beam starts threads, since they fork
    "power": Attack.power,
    "rollback": Attack.rollback,
    "published": Attack.published,
    "runs": Attack.runs,
    "streams": Attack.streams,
}

DEVICES = "devices"
"""The layer of surveys, which have no other."""


def main(arguments: Sequence[str]) -> None:
    """Run the layers, and write their results."""
    path, folder, effort, *names = arguments
    other = of_other_kind("audit", path)
    document = (
        _of_release(path, Path(folder), EFFORTS[effort], names) if other is None else other(path, effort).to_json()
    )
    Path(folder, RESULT).write_text(json.dumps(document), encoding="utf-8")


def _of_release(path: str, folder: Path, effort: Effort, names: Sequence[str]) -> dict[str, Any]:
    spec = load(path)
    ready = prepared(spec, folder / "copy", Random())
    attack = Attack(ready, effort)
    layers = [layer for name in names or LAYERS for layer in LAYERS[name](attack)]
    plan = ready.stages.job.plan
    return {
        "subject": f"release {spec.release}",
        "claim": plan.claim,
        "epsilon": plan.budget.epsilon,
        "delta": plan.budget.delta,
        "windows": ready.setting.timeline.windows,
        "layers": [layer.to_json() for layer in layers],
    }


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # threads of libraries may abort the process while it ends
