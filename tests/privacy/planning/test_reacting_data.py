"""Data that react to the release: an adversary against a tree with noise sampled in advance, computed exactly."""

import itertools
import math

import numpy as np
import pytest

from privacy.accounting.accounting import Budget, Measurement, calibrate
from privacy.series import Series
from privacy.strategies.tree.tree import Tree
from tests.privacy.steps import Given, listed, stepped

ROOT = Tree(branching=2, height=2, refine="least_squares", windows=2, initial_level=False)
"""One of an endless row of such roots, which share no noise."""

REACH = 18
"""Larger draws are left out; their contribution is added to the tolerance."""


def told(leaves: tuple[int, int], noise: np.ndarray) -> tuple[list[tuple], list[tuple]]:
    """Return everything published at the end of the first window, and of the second, for each draw of noise."""
    draws = noise.T.astype(np.int64)
    stream = np.array([(0,), *((x,) for x in leaves)]).repeat(draws.shape[1], axis=1)
    known = Given(dict(zip(listed(ROOT.nodes(2)), draws, strict=True)), draws.shape[1])
    nodes, (levels,), _ = stepped(ROOT, stream, known, [Series(kind="level")])
    rows = [np.concatenate([nodes[ROOT.nodes(2).end == w], levels[w - 1 : w]]).T.tolist() for w in (1, 2)]
    return list(map(tuple, rows[0])), list(map(tuple, rows[1]))


def gained(scale: float, epsilon: float, roots: int) -> float:
    """Return the largest delta at epsilon for an adversary whose unit changes once: in the second window or later.

    After the first window of each root the adversary knows its publications, and decides.
    """
    noise = np.array(list(itertools.product(range(-REACH, REACH + 1), repeat=3)))
    mass = math.tanh(1 / (2 * scale)) ** 3 * np.exp(-np.abs(noise).sum(axis=1) / scale)
    first, still = told((0, 0), noise)
    _, moved = told((0, 1), noise)
    distributions: dict[tuple, dict[tuple, list[float]]] = {}
    for seen, without, with_unit, p in zip(first, still, moved, mass.tolist(), strict=True):
        second = distributions.setdefault(seen, {})
        second.setdefault(without, [0.0, 0.0])[0] += p
        second.setdefault(with_unit, [0.0, 0.0])[1] += p
    now = np.array(
        [sum(max(0.0, q - math.exp(epsilon) * p) for p, q in one.values()) for one in distributions.values()]
    )
    chance = np.array([sum(p for p, _ in one.values()) for one in distributions.values()])
    value = 0.0
    for _ in range(roots):
        value = float(np.maximum(now, chance * value).sum())
    return value


@pytest.mark.slow
def test_an_adversary_who_waits_for_the_right_moment_gains_no_more_than_claimed():
    """Two nodes move by one each: L1 = 2. Randomised response is charged: no waiting exceeds it; some reaches it."""
    part = Measurement(l1=2, l2=math.sqrt(2), nodes=2, node_l1=1, node_l2=1, coordinates=2)
    budget = Budget(epsilon=0.7, delta=0.05)
    (scale,) = calibrate([part], budget=budget, mechanism="laplace", accounting="pld", steps=1).scales
    beyond = 3 * 2 * math.exp(-(REACH + 1) / scale) / (1 + math.exp(-1 / scale))

    assert scale < 2 / budget.epsilon  # more than pure epsilon is claimed
    assert gained(scale, budget.epsilon, 1) < 0.7 * budget.delta
    assert 0.97 * budget.delta < gained(scale, budget.epsilon, 300) <= budget.delta + beyond
    assert gained(scale / 2, budget.epsilon, 1) > budget.delta + beyond
