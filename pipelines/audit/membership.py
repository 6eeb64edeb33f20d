"""Layer: what a reader learns about the worst unit that the search found, from the numbers themselves.

A coin chooses one of the two changelogs, and the release step publishes its nodes. The test that tells them apart best
compares their exact likelihoods. Its guesses give a lower bound on epsilon or mu that holds with probability
1 - `FAILURE`, whenever the trials stop (privacy.evidence.betting).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import process_time

import numpy as np
from numpy.typing import NDArray

from pipelines.audit.findings import LayerResult
from pipelines.audit.lives import neighbours
from pipelines.audit.sensitivity import Search, zero_noise
from pipelines.audit.stages import Released, scales_of
from privacy.evidence.betting import at_least, epsilon_of, mu_of
from privacy.noise.kinds import NOISE
from privacy.planning.linear_part import LinearPart
from privacy.series import Ints
from privacy.strategies.base import Floats
from transforms.aggregation.node_sums import NodeKey
from transforms.release.linear_chunk import step

Coins = NDArray[np.bool_]

FAILURE = 1e-3
TRIALS = 1_000_000
LARGEST_CALL = 2**20
CLAIM_FAILURE = 1e-6
"""Failure probability of the bound that contradicts a claim, so that a correct program passes."""


def check_membership(seeker: Search, *, seconds: float, trials: int = TRIALS) -> LayerResult:
    """Bound the privacy loss of the worst neighbours from below, by guesses.

    Args:
        seeker: Finished search.
        seconds: Processor time.
        trials: Most guesses.
    """
    assert seeker.worst is not None
    life, distance = seeker.worst
    left, right = neighbours(life, seeker.setting)
    with zero_noise():
        one, two = seeker.stages.release(left), seeker.stages.release(right)
    pure = NOISE[seeker.stages.job.plan.mechanism].pure
    keys = [key for key in one.stages.keys if one.parts(key)]
    if distance.cost == 0 or not keys:
        return LayerResult(name="membership", question=_QUESTION, tried={}, untested=("No unit moves a node here.",))
    until = process_time() + seconds
    scores = _scores(one, two, keys, until, trials)
    threshold = threshold_of(scores[: len(scores) // 5]) if pure else 0.0
    told = scores[len(scores) // 5 :]
    correct, wrong = int((told >= threshold).sum()), int((told <= -threshold).sum())
    if not pure:  # scores are of the side that the coin chose: positive ones are correct guesses
        correct, wrong = int((told > 0).sum()), int((told <= 0).sum())
    of = epsilon_of if pure else mu_of
    bound, strict = of(at_least(correct, wrong, FAILURE)), of(at_least(correct, wrong, CLAIM_FAILURE))
    name, claim = ("epsilon", distance.allowed) if pure else ("mu", distance.planned)
    faults = () if strict <= claim else (f"{name} is at least {strict:.3f}, and the claim is {claim:.3f}",)
    return LayerResult(
        name="membership",
        question=_QUESTION,
        tried={"releases": len(scores), "guesses": correct + wrong, "correct guesses": correct},
        found=(
            f"{name} is at least {bound:.3f} with confidence 99.9 %; this pair's exact loss is {distance.cost:.3f}",
        ),
        faults=faults,
        untested=(
            "A delta cannot be tested: an event of probability 1e-9 does not occur in any feasible number of trials.",
        ),
        measures={"lower": bound, "exact": distance.cost, "claim": claim},
    )


_QUESTION = "How well can a reader tell whether the worst unit took part?"


def _scores(one: Released, two: Released, keys: list[NodeKey], until: float, trials: int) -> Floats:
    """Return for each trial the log-likelihood ratio in favour of the changelog that its coin chose."""
    parts = [part for key in keys for part in _parts(one, two, key)]
    times = max(1, min([LARGEST_CALL // part.first[0].size for part in parts] + [trials]))
    found: list[Floats] = []
    while sum(map(len, found)) < trials and (process_time() < until or not found):
        coins = np.random.default_rng().random(times) < 0.5  # choices of the test, not noise
        total = np.add.reduce([part.ratios(coins) for part in parts])
        found.append(np.where(coins, total, -total))
    return np.concatenate(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfPair:
    """A part of the plan with the exact sums of both changelogs, and their exact nodes.

    Attributes:
        part: The part. Sums over cells are columns here, so that each trial can have separate columns.
        first, second: Exact sums of the changelogs, int64 [components, 1 + windows, columns].
        nodes: Exact nodes of both, by component, int64 [nodes, columns].
    """

    part: LinearPart
    first: Ints
    second: Ints
    nodes: tuple[list[Ints], list[Ints]]

    def ratios(self, coins: Coins) -> Floats:
        """Release once for each coin; return the log-likelihood ratios in favour of the first changelog.

        Args:
            coins: Whether the first changelog is released, bool [trials].
        """
        chosen = np.where(coins[:, None], self.first[:, :, None, :], self.second[:, :, None, :])
        published = step(self.part, None, chosen.reshape(*chosen.shape[:2], -1))[1]
        windows, total = self.first.shape[1] - 1, np.zeros(len(coins))
        stretch = self.part.strategy.stretch(self.part.strategy.nodes(windows // self.part.leaf, since=None))
        for component, values in enumerate(published.nodes):
            widths = np.ones(len(values)) if stretch is None else np.asarray(stretch, dtype=np.float64)
            scale = scales_of(self.part, component, widths)[:, None, None]
            told = values.reshape(len(values), len(coins), -1)
            near, far = (np.abs(told - exact[component][:, None, :]).astype(np.float64) for exact in self.nodes)
            gaussian = self.part.noise[component].stable
            ratio = (far**2 - near**2) / (2 * scale**2) if gaussian else (far - near) / scale
            total += ratio.sum(axis=(0, 2))
        return total


def _parts(one: Released, two: Released, key: NodeKey) -> Iterator[PartOfPair]:
    """Yield the parts that a chunk releases, with the exact sums and nodes of both changelogs."""
    for part in one.parts(key):
        leaves = [released.leaves(key) for released in (one, two)]
        if part.over is not None:
            leaves = [part.over.spread(of_one) for of_one in leaves]
        alone = replace(part, over=None)
        with zero_noise():
            first, second = (step(alone, None, of_one)[1].nodes for of_one in leaves)
        yield PartOfPair(part=alone, first=leaves[0], second=leaves[1], nodes=(first, second))


def threshold_of(scores: Floats) -> float:
    """Return the threshold that gives the best bound on a first fifth of the trials, which are then put aside."""
    sizes = np.unique(np.quantile(np.abs(scores), 1 - np.logspace(-4, 0, 60)))
    bounds = [at_least(int((scores >= t).sum()), int((scores <= -t).sum()), FAILURE) for t in sizes]
    return float(sizes[int(np.argmax(bounds))])
