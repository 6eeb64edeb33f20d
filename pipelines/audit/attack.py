"""The process in which an audit attacks a spec: `python -m pipelines.audit.attack SPEC FOLDER EFFORT [LAYER ...]`.

It is a separate process, since some layers replace the noise by zeros: nothing else in it may publish. It writes
`result.json` into the folder and prints nothing.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pipelines.audit.adaptive import check_adaptive
from pipelines.audit.findings import LayerResult
from pipelines.audit.kills import check_kills
from pipelines.audit.membership import check_membership
from pipelines.audit.mutations import random_life
from pipelines.audit.prepared import Prepared, prepared
from pipelines.audit.scale import check_scale
from pipelines.audit.sensitivity import Search, search
from pipelines.audit.whole import check_whole
from pipelines.spec.load import load

RESULT = "result.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much an audit tries; seconds are of processor time.

    Attributes:
        search: Seconds of the search for neighbours.
        noise: Most seconds for samples of noise.
        decisions: Seconds of the search for losses of adaptive queries.
        guesses: Most seconds for guesses.
        pairs: Pairs of whole runs.
        kills: Releases whose runs are killed.
    """

    search: float
    noise: float
    decisions: float
    guesses: float
    pairs: int
    kills: int


EFFORTS = {
    "seeded": Effort(search=12, noise=8, decisions=10, guesses=4, pairs=2, kills=3),
    "quick": Effort(search=20, noise=8, decisions=6, guesses=6, pairs=1, kills=0),
    "usual": Effort(search=120, noise=30, decisions=30, guesses=30, pairs=3, kills=6),
    "full": Effort(search=1500, noise=120, decisions=200, guesses=300, pairs=10, kills=50),
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

    def membership(self) -> list[LayerResult]:
        seeker = self.seeker or search(self.ready.stages, self.ready.setting, seconds=2)[1]
        return [check_membership(seeker, seconds=self.effort.guesses)]

    def kills(self) -> list[LayerResult]:
        return [check_kills(self.ready, self.effort.kills, Random())] if self.effort.kills else []

    def runs(self) -> list[LayerResult]:
        ready, choose = self.ready, Random()
        worst = self.seeker.worst if self.seeker is not None else None
        lives = [random_life(ready.setting, choose) for _ in range(self.effort.pairs)]
        if worst is not None:
            lives[0] = worst[0]
        return [check_whole(ready.spec, ready.stages, lives, ready.setting)]


LAYERS: dict[str, Callable[[Attack], list[LayerResult]]] = {
    "sensitivity": Attack.sensitivity,
    "noise": Attack.noise,
    "decisions": Attack.decisions,
    "membership": Attack.membership,
    "kills": Attack.kills,  # before Beam starts threads, since it forks
    "runs": Attack.runs,
}


def main(arguments: Sequence[str]) -> None:
    """Run the layers, and write their results."""
    path, folder, effort, *names = arguments
    ready = prepared(load(path), Path(folder, "copy"), Random())
    attack = Attack(ready, EFFORTS[effort])
    layers = [layer for name in names or LAYERS for layer in LAYERS[name](attack)]
    plan = ready.stages.job.plan
    document = {
        "claim": plan.claim,
        "epsilon": plan.budget.epsilon,
        "delta": plan.budget.delta,
        "windows": ready.setting.timeline.windows,
        "layers": [layer.to_json() for layer in layers],
    }
    Path(folder, RESULT).write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
