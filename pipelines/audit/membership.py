"""Layer: what a reader learns about the worst unit that the search found, from the numbers themselves.

A coin chooses one of the two changelogs, and the release step publishes its nodes. The test that tells them apart best
compares their exact likelihoods. Its guesses give a lower bound on epsilon or mu that holds with probability
1 - `FAILURE`, whenever the trials stop (privacy.evidence.betting).
"""

from collections.abc import Iterator
from random import Random
from time import process_time

import numpy as np

from pipelines.audit.findings import LayerResult
from pipelines.audit.lives import neighbours
from pipelines.audit.sensitivity import Search, zero_noise
from pipelines.audit.stages import Released, scales_of
from privacy.evidence.betting import at_least, epsilon_of, mu_of
from privacy.series import Ints
from privacy.strategies.base import Floats
from transforms.aggregation.node_sums import NodeKey
from transforms.release.linear_chunk import LinearChunk
from transforms.release.protected import protected_from_bytes

FAILURE = 1e-3
TRIALS = 20_000
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
    gaussian = seeker.stages.job.plan.mechanism == "gaussian"
    keys = [key for key in one.stages.keys if one.parts(key)]
    if distance.cost == 0 or not keys:
        return LayerResult(name="membership", question=_QUESTION, tried={}, untested=("No unit moves a node here.",))
    until = process_time() + seconds
    scores = _scores(one, two, keys, until, trials)
    threshold = 0.0 if gaussian else _threshold(scores[: len(scores) // 5])
    told = scores[len(scores) // 5 :]
    correct, wrong = int((told >= threshold).sum()), int((told <= -threshold).sum())
    if gaussian:  # scores are of the side that the coin chose: positive ones are correct guesses
        correct, wrong = int((told > 0).sum()), int((told <= 0).sum())
    of = mu_of if gaussian else epsilon_of
    bound, strict = of(at_least(correct, wrong, FAILURE)), of(at_least(correct, wrong, CLAIM_FAILURE))
    name, claim = ("mu", distance.planned) if gaussian else ("epsilon", distance.allowed)
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
    """Return for each trial the log-likelihood ratio in favour of the changelog that the coin chose."""
    found: list[Floats] = []
    choose = Random()
    while sum(map(len, found)) < trials and (process_time() < until or not found):
        times = max(1, min([_at_once(one, key) for key in keys] + [trials]))
        side = choose.random() < 0.5
        total: Floats = np.zeros(times)
        for key in keys:
            total += _ratio(one, two, key, times, first=side)
        found.append(total if side else -total)
    return np.concatenate(found)


def _at_once(released: Released, key: NodeKey) -> int:
    """Return the number of trials in one call: cells are independent, so each trial can have cells of its own."""
    if any(part.over is not None for part in released.parts(key)):
        return 1
    _, rows, cells = released.leaves(key).shape
    return max(1, LARGEST_CALL // (rows * cells))


def _ratio(one: Released, two: Released, key: NodeKey, times: int, *, first: bool) -> Floats:
    """Return the log-likelihood ratio of the nodes of a chunk in some releases, in favour of the first changelog."""
    parts = one.parts(key)
    leaves = (one if first else two).leaves(key)
    cells = leaves.shape[2]
    _, content = LinearChunk(parts, cells * times).step(None, np.tile(leaves, (1, 1, times)))
    total: Floats = np.zeros(times)
    protected = protected_from_bytes(content, parts, cells * times)
    sides = zip(parts, protected, _in_one(one, key), _in_one(two, key), strict=True)
    for part, published, x, y in sides:
        windows = leaves.shape[1] - 1
        stretch = part.strategy.stretch(part.strategy.nodes(windows // part.leaf, since=None))
        for component, values in enumerate(published.nodes):
            widths = np.ones(len(values)) if stretch is None else np.asarray(stretch, dtype=np.float64)
            scale = scales_of(part, component, widths)[:, None, None]
            told = values.reshape(len(values), times, -1)
            far, near = (np.abs(told - side[component][:, None, :]) for side in (y, x))
            if part.noise[component].stable:
                total += ((far.astype(np.float64) ** 2 - near.astype(np.float64) ** 2) / (2 * scale**2)).sum(
                    axis=(0, 2)
                )
            else:
                total += ((far - near) / scale).sum(axis=(0, 2))
    return total


def _in_one(released: Released, key: NodeKey) -> Iterator[list[Ints]]:
    """Yield the exact nodes of each part, in the order of a release in one step."""
    parts, leaves = released.parts(key), released.leaves(key)
    with zero_noise():
        _, content = LinearChunk(parts, leaves.shape[2]).step(None, leaves)
    for protected in protected_from_bytes(content, parts, leaves.shape[2]):
        yield protected.nodes


def _threshold(scores: Floats) -> float:
    """Return the threshold that gives the best bound on a first fifth of the trials, which are then put aside."""
    sizes = np.unique(np.quantile(np.abs(scores), np.linspace(0, 1, 60)))
    bounds = [at_least(int((scores >= t).sum()), int((scores <= -t).sum()), FAILURE) for t in sizes]
    return float(sizes[int(np.argmax(bounds))])
