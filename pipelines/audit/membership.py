"""Layer: what a reader learns about the worst unit that the search found, from the numbers themselves.

A coin chooses one of the two changelogs, and the release step publishes its nodes. The test that tells them apart best
compares their exact likelihoods. Its guesses give a lower bound on epsilon or mu that holds with probability
1 - `FAILURE`, whenever the trials stop (privacy.evidence.betting).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import process_time

import numpy as np
from numpy.typing import NDArray

from pipelines.audit.findings import LayerResult
from pipelines.audit.lives import neighbours
from pipelines.audit.sensitivity import Distance, Search, zero_noise
from pipelines.audit.stages import Released, scales_of
from privacy.evidence.betting import BINS, at_least, epsilon_of_tally, mu_of, tally
from privacy.planning.linear_part import LinearPart
from privacy.series import Ints
from privacy.strategies.base import Floats
from transforms.aggregation.node_sums import NodeKey
from transforms.release.linear_chunk import step

Coins = NDArray[np.bool_]

FAILURE = 1e-3
TRIALS = 50_000_000
LARGEST_CALL = 2**20
FARTHEST = 3.0
"""Standard deviations above its mean that the log-likelihood ratio of any feasible number of releases often has."""

CLAIM_FAILURE = 1e-6
"""Failure probability of the bound that contradicts a claim, so that a correct program passes."""


def check_membership(seeker: Search, *, seconds: tuple[float, float], trials: int = TRIALS) -> LayerResult:
    """Bound the privacy loss of the worst neighbours from below, by guesses.

    Args:
        seeker: Finished search.
        seconds: Fewest and most seconds of processor time; between them, guesses stop at half of the claim.
        trials: Most guesses.
    """
    assert seeker.clearest is not None
    life, distance = seeker.clearest
    left, right = neighbours(life, seeker.setting)
    with zero_noise():
        one, two = seeker.stages.release(left), seeker.stages.release(right)
        parts = [part for key in one.stages.keys if one.parts(key) for part in _parts(one, two, key)]
    if distance.cost == 0 or not parts:
        return LayerResult(name="membership", question=_QUESTION, tried={}, untested=("No unit moves a node here.",))
    name, claim = ("epsilon", distance.allowed) if distance.pure else ("mu", distance.planned)
    counts, bound, began = np.zeros((2, BINS), dtype=np.int64), 0.0, process_time()
    least, most = (began + limit for limit in seconds)
    half = claim / 2
    while not counts.any() or process_time() < (most if bound < half < distance.noticed(FARTHEST) else least):
        counts += tally(_scores(parts), distance.cost)
        bound = _bound(counts, distance, FAILURE)
        if counts.sum() >= trials:
            break
    strict = _bound(counts, distance, CLAIM_FAILURE)
    faults = () if strict <= claim else (f"{name} is at least {strict:.3f}, and the claim is {claim:.3f}",)
    correct, wrong = counts.sum(axis=1).tolist()
    return LayerResult(
        name="membership",
        question=_QUESTION,
        tried={"guesses": correct + wrong, "correct guesses": correct},
        found=(
            f"{name} is at least {bound:.3f} with confidence 99.9 %; this pair's exact loss is {distance.cost:.3f}",
        ),
        faults=faults,
        untested=(
            "A delta cannot be tested: an event of probability 1e-9 does not occur in any feasible number of trials.",
        ),
        measures={"lower": bound, "exact": distance.cost, "claim": claim},
    )


def _bound(counts: Ints, distance: Distance, failure: float) -> float:
    """Return a lower bound on epsilon or mu; for mu the sizes of ratios do not count."""
    if distance.pure:
        return epsilon_of_tally(counts, distance.cost, failure)
    correct, wrong = counts.sum(axis=1).tolist()
    return mu_of(at_least(correct, wrong, failure))


_QUESTION = "How well can a reader tell whether the worst unit took part?"


def _scores(parts: Sequence["PartOfPair"]) -> Floats:
    """Return for each trial the log-likelihood ratio in favour of the changelog that its coin chose."""
    times = max(1, LARGEST_CALL // max(part.first[0].size for part in parts))
    coins = np.random.default_rng().random(times) < 0.5  # choices of the test, not noise
    total = np.add.reduce([part.ratios(coins) for part in parts])
    return np.where(coins, total, -total)


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
    """Yield the parts that a chunk releases, with the exact sums and nodes of both changelogs.

    Each column and node has its own noise, so columns without a difference, and windows after the last node with one,
    say nothing about the coin.
    """
    for part in one.parts(key):
        leaves = [released.leaves(key) for released in (one, two)]
        if part.over is not None:
            leaves = [part.over.spread(of_one) for of_one in leaves]
        alone = replace(part, over=None)
        apart = np.stack(step(alone, None, leaves[0])[1].nodes) != np.stack(step(alone, None, leaves[1])[1].nodes)
        ends = part.strategy.nodes((leaves[0].shape[1] - 1) // part.leaf, since=None).end
        last = int(ends[apart.any(axis=(0, 2))].max(initial=-1)) * part.leaf
        columns = np.flatnonzero(apart.any(axis=(0, 1)))
        if len(columns):
            first, second = (of_one[:, : last + 1, columns] for of_one in leaves)
            nodes = step(alone, None, first)[1].nodes, step(alone, None, second)[1].nodes
            yield PartOfPair(part=alone, first=first, second=second, nodes=nodes)
