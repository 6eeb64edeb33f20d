"""Layer: sensitivity, exactly and without samples.

Synthetic neighbours go through the stages of a release with noise of zero, so that the difference of two releases is
exactly what the noise must hide. It is compared with the norms of the plan, part by part, and with the budget for all
parts together: with Laplace noise of scale b_i at node i, a difference d has a privacy loss of at most
sum |d_i| / b_i; with Gaussian noise, its mu is the root of sum (d_i / sigma_i)^2.

A correct program never exceeds a bound, so no probability is involved. A search without a find proves nothing.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from random import Random
from time import process_time

import numpy as np

from pipelines.audit.findings import LayerResult
from pipelines.audit.lives import Life, Surroundings, neighbours
from pipelines.audit.mutations import always, changed, corpus
from pipelines.audit.stages import Epochs, Released, Stages, scales_of
from pipelines.audit.whole_bounds import halves
from privacy.discovery.budget import of_noise
from privacy.evidence.betting import mu_at
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.kinds import NOISE
from privacy.planning.adaptive_part import at_once
from privacy.series import Ints
from privacy.strategies.base import Nodes
from transforms.aggregation.node_sums import NodeKey
from transforms.release import noise

TOLERANCE = 1e-9
"""Relative rounding of sums of floating-point numbers."""

NUMERICAL = 1e-3
"""Relative difference allowed between the accounting of discrete and of continuous Gaussian noise."""


DEVIATIONS = 2.3
"""Standard deviations above its mean that the log-likelihood ratio of a million releases often has."""

MOST_LIVES = 30
"""Lives among which `moving` chooses."""


@contextmanager
def zero_noise() -> Iterator[None]:
    """Let all nodes have a noise of zero. Only a process that publishes nothing may do this."""
    kept = noise.sample_noise

    def zeros(distribution: NoiseDistribution, nodes: Nodes, *, component: int, cells: int) -> Ints:
        return np.zeros((len(nodes.end), cells), dtype=np.int64)

    noise.sample_noise = zeros  # type: ignore[assignment]
    try:
        yield
    finally:
        noise.sample_noise = kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How far two releases are apart, as shares of what the plan allows.

    Attributes:
        norms: For each part, by name, the largest of its norms and counts, as a share of the plan's.
        cost: Epsilon, or mu, of the difference.
        planned: The same for the norms of the plan.
        allowed: Largest epsilon, or mu, that the claim allows; infinite for Laplace noise with a delta.
        pure: Whether the noise is Laplace's.
        squares: Sum of the squares of the losses at single values.
        other: What differs besides the values of nodes.
    """

    norms: dict[str, float]
    cost: float
    planned: float
    allowed: float
    pure: bool
    squares: float
    other: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The cost as a share of that of the plan's norms."""
        return self.cost / self.planned if self.planned else 0.0

    def noticed(self, deviations: float) -> float:
        """Return the loss that a reader notices in releases whose log-likelihood ratio is far above its mean.

        A loss that many values share rarely adds up: the mean of the ratio is half of `squares`, and its variance is
        about `squares`.

        Args:
            deviations: Number of standard deviations above the mean; 2.3 are common among a million releases.
        """
        return min(self.cost, self.squares / 2 + deviations * self.squares**0.5) if self.pure else self.cost

    def faults(self, times: int) -> list[str]:
        """Return what exceeds a bound, for neighbours that are `times` as far apart as the plan protects."""
        most = times * (1 + TOLERANCE)
        found = [f"{name}: {share:.3f} of its bound" for name, share in self.norms.items() if share > most]
        if self.cost > self.allowed * most:
            found.append(f"all parts together: {self.cost:.4g}, and the claim is {self.allowed:.4g}")
        return [*found, *self.other]


def distance(one: Released, two: Released) -> Distance:
    """Return how far two releases of one spec are apart."""
    job = one.stages.job
    plan, kind = job.plan, NOISE[job.plan.mechanism]
    norms: dict[str, float] = {}
    cost = planned = squared = 0.0
    for key in one.stages.keys:
        _, number, family, _ = key
        name = f"{job.aggregation.queries[number].name}, {family}"
        parts = one.parts(key)
        if not parts:
            norms[name] = _of_levels(one, two, key)
        pairs = zip(parts, one.nodes(key), two.nodes(key), one.stretches(key), strict=True)
        for place, (part, left, right, stretch) in enumerate(pairs):
            bound, total, squares, touched, coordinates = part.sensitivity, 0.0, 0.0, 0, 0
            moved = np.zeros(len(stretch), dtype=bool)
            for component, (x, y) in enumerate(zip(left, right, strict=True)):
                apart = np.abs((x - y).astype(np.float64))
                sizes = apart / (
                    job.aggregation.queries[number].measure.components[component].largest * stretch[:, None]
                )
                total, squares = total + sizes.sum(), squares + (sizes**2).sum()
                moved |= (apart != 0).any(axis=1)
                coordinates += int(np.count_nonzero(apart))
                losses = apart / scales_of(part, component, stretch)[:, None]
                cost += float((losses**kind.power).sum())
                squared += float((losses**2).sum())
            touched = int(moved.sum())
            shares = [total / bound.l1, np.sqrt(squares) / bound.l2, coordinates / bound.coordinates]
            shares += [touched / bound.nodes] if part.strategy.sparse else []
            norms[f"{name}, part {place + 1}"] = float(max(shares))
            largest = job.aggregation.queries[number].measure.components[0].largest
            planned += (kind.of_norms(bound.l1, bound.l2) * largest / part.noise[0].scale) ** kind.power
    found = math.fsum(part.delta for part in plan.parts)
    added = plan.budget.delta == 0 or (found and plan.accounting == "naive")  # then all of delta is for discovery
    allowed = plan.budget.epsilon if added else np.inf
    if not kind.pure:
        allowed = mu_at(plan.budget.epsilon, of_noise(plan.budget.delta, found)) * (1 + NUMERICAL)
    return Distance(
        norms=norms,
        cost=cost ** (1 / kind.power),
        planned=planned ** (1 / kind.power),
        allowed=allowed,
        pure=kind.pure,
        squares=squared,
    )


def _of_levels(one: Released, two: Released, key: NodeKey) -> float:
    """Return the largest distance of two levels of an adaptive query at one time, as a share of the plan's."""
    job = one.stages.job
    demand = job.plan.demands[key[1]]
    apart = np.abs(np.cumsum(one.leaves(key)[0] - two.leaves(key)[0], axis=0)).sum(axis=1)
    found = float(apart.max(initial=0)) / at_once(demand.measure, job.plan.promise, demand.cells)
    boundaries = job.plan.promise.boundaries
    return found if boundaries is None else max(found, np.count_nonzero(apart) / boundaries)


@dataclass(slots=True)
class Search:
    """A search for the worst neighbours.

    Attributes:
        stages: Stages of the copy.
        setting: Facts about the spec.
        choose: Source of random choices.
        tried: Number of pairs that were compared.
        worst: The worst life so far, with its distance.
        clearest: The life so far that a reader notices best, with its distance.
        faults: What exceeded a bound, with the number of times.
        reached: The largest share of each part's bound.
        kinds: Number of lives of each kind.
    """

    stages: Stages
    setting: Surroundings
    choose: Random
    tried: int = 0
    worst: tuple[Life, Distance] | None = None
    clearest: tuple[Life, Distance] | None = None
    faults: Counter[str] = field(default_factory=Counter)
    reached: dict[str, float] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    known: dict[str, Released] = field(default_factory=dict)

    def compare(self, life: Life, kind: str) -> Distance:
        """Compare the two versions of a life."""
        left, right = neighbours(life, self.setting)
        found = distance(self.stages.release(left), self._without(right))
        self.tried += 1
        self.kinds[kind] += 1
        for name, share in found.norms.items():
            self.reached[name] = max(self.reached.get(name, 0.0), share / life.times)
        self.faults.update(found.faults(life.times))
        if life.times == 1 and (self.worst is None or found.cost > self.worst[1].cost):
            self.worst = life, found
        if life.times == 1 and (
            self.clearest is None or found.noticed(DEVIATIONS) > self.clearest[1].noticed(DEVIATIONS)
        ):
            self.clearest = life, found
        return found

    def _without(self, epochs: Epochs) -> Released:
        """Return the release without the unit, which often is the same."""
        name = repr(epochs)
        if name not in self.known:
            if len(self.known) > 8:
                self.known.clear()
            self.known[name] = self.stages.release(epochs)
        return self.known[name]


def search(
    stages: Stages, setting: Surroundings, *, seconds: float, enough: float = 0.999
) -> tuple[LayerResult, Search]:
    """Search for neighbours that are further apart than the plan allows.

    Args:
        stages: Stages of the copy.
        setting: Facts about the spec.
        seconds: Processor time.
        enough: Share of the plan's cost at which the climb stops.

    Returns:
        The result, and the search with the worst neighbours.
    """
    began, seeker = process_time(), Search(stages, setting, Random())
    with zero_noise():
        first, lives = [*always(setting, seeker.choose)], [*corpus(setting, seeker.choose)]
        for number, (kind, life) in enumerate([*first, *lives]):
            if seeker.faults or (process_time() - began > seconds * 0.7 and number >= len(first)):
                break
            seeker.compare(life, kind)
        objectives: list[Callable[[Distance], float]] = [lambda found: found.cost]
        objectives += [lambda found, name=name: found.norms[name] for name in seeker.reached]  # type: ignore[misc]
        turn = 0
        while process_time() - began < seconds and not seeker.faults:
            _climb(seeker, objectives[turn % len(objectives)], [*first, *lives], began + seconds, enough)
            turn += 1
    return _layer(seeker), seeker


def _climb(
    seeker: Search, objective: Callable[[Distance], float], lives: list[tuple[str, Life]], until: float, enough: float
) -> None:
    """Change a life as long as that moves it further, from the worst one or from any."""
    life = (
        seeker.worst[0] if seeker.worst is not None and seeker.choose.random() < 0.5 else seeker.choose.choice(lives)[1]
    )
    best, failed = objective(seeker.compare(life, "climb")), 0
    while failed < 15 and process_time() < until:
        tried = changed(life, seeker.setting, seeker.choose)
        found = objective(seeker.compare(tried, "climb"))
        if found >= best:
            failed = failed + 1 if found == best else 0
            life, best = tried, found
        else:
            failed += 1


def _layer(seeker: Search) -> LayerResult:
    worst = seeker.worst
    assert worst is not None
    reached = ", ".join(f"{name} {share:.2f}" for name, share in sorted(seeker.reached.items()))
    return LayerResult(
        name="sensitivity",
        question="Do neighbouring changelogs move the released nodes further than the plan allows?",
        tried={"pairs of changelogs": seeker.tried, **{f"of these: {k}": n for k, n in sorted(seeker.kinds.items())}},
        found=(f"worst pair: {worst[1].share:.3f} of the cost that the plan allows; shares of each bound: {reached}",),
        faults=tuple(f"{text} ({number} times)" for text, number in seeker.faults.most_common(5)),
        measures={"cost": worst[1].cost, "planned": worst[1].planned},
    )


def moving(stages: Stages, setting: Surroundings, choose: Random) -> list[Life]:
    """Return lives whose versions differ in nodes of each part of the plan, as far as hard lives do, in at least one.

    Numbers that are made from exact sums instead of noisy nodes differ with certainty in one of them.
    """
    seeker, moved, chosen = Search(stages, setting, choose), set[str](), list[Life]()
    with zero_noise():
        for kind, life in islice(chain(always(setting, choose), corpus(setting, choose)), MOST_LIVES):
            found = seeker.compare(replace(life, cuts=halves(setting)), kind)
            new = {name for name, share in found.norms.items() if share} - moved
            if new:
                chosen.append(life)
            moved |= new
            if len(moved) == len(found.norms):
                break
    return chosen
