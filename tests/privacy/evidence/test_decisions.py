"""Exact chances of decisions: they add up to 1, and their loss is that of the proof for the worst streams."""

import numpy as np
import pytest

from privacy.adaptive import step
from privacy.adaptive.ba import BaRule
from privacy.adaptive.base import Period
from privacy.adaptive.budget import scales_for
from privacy.adaptive.dsft import DsftRule
from privacy.adaptive.fixed import FixedRule
from privacy.cells.each import Each
from privacy.cells.kdtree import kdtree as kd
from privacy.cells.kdtree.kdtree import kdtree
from privacy.evidence.chances import MOVED
from privacy.evidence.decisions import log_chance, wrong_decisions

OVER = Each(cells=2)
RULE = BaRule(period=Period(span=3), decisions=0.5)


def chance(rule, levels, flags, values):
    scales = scales_for(rule, budget=1.0, sensitivity=1, over=OVER)
    return log_chance(rule, scales, OVER, np.array(levels), flags, np.array(values))


@pytest.mark.parametrize("level", [[0, 0], [5, 40], [-200, 3]])
def test_chances_of_both_decisions_add_up_to_one(level):
    """The sample's density, which depends on the level alone, is that of a window that the rule always samples."""
    levels, values = [[0, 0], level], [[1, 2], level]
    sampled, repeated = (chance(RULE, levels, (True, flag), values) for flag in (True, False))
    first = chance(RULE, levels[:1], (True,), values[:1])
    density = 2 * np.log(np.tanh(1 / (2 * scales_for(RULE, budget=1.0, sensitivity=1, over=OVER).sample(1).scale)))

    assert np.exp(sampled - first - density) + np.exp(repeated - first) == pytest.approx(1)


def test_the_loss_of_a_sample_is_the_whole_budget():
    rule = FixedRule(period=Period(windows=1), interval=1)
    losses = [chance(rule, [level], (True,), [[1000, 1000]]) for level in ([0, 0], [1, 0])]

    assert losses[1] - losses[0] == pytest.approx(1.0)


def test_what_the_rule_never_publishes_has_no_chance():
    assert chance(RULE, [[0, 0]], (False,), [[0, 0]]) == -np.inf


@pytest.mark.parametrize(("far", "known"), [(100, True), (100_000, False)])
def test_a_chance_that_needs_more_of_a_threshold_than_is_added_up_is_unknown(far, known):
    """A repeated window that is far from the published values; added up to an end, losses would be too large."""
    levels = [[0, 0], *([[0, far]] * 2)]

    assert np.isnan(chance(DECIDING[1], levels, (True, False, False), np.zeros((3, 2)))) != known


def wrong(rule, *, noise="laplace"):
    """Return what is wrong with the decisions of two neighbours, whose second distance is a sensitivity larger."""
    scales = scales_for(rule, budget=1.0, sensitivity=3, over=OVER, noise=noise)
    one, two = (np.array([[0, 0], [first, 0], [first, 0]]) for first in (0, 3))
    return {*wrong_decisions(rule, scales, OVER, (one, two), (True, True, False), np.zeros((3, 2), dtype=np.int64))}


DECIDING = (RULE, DsftRule(period=Period(windows=9), decisions=0.5, samples=3, threshold=4))


@pytest.mark.parametrize("rule", DECIDING, ids=["ba", "dsft"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_decisions_of_the_program_are_right(rule, noise):
    assert wrong(rule, noise=noise) == set()


def test_a_distance_that_moves_by_more_than_the_sensitivity_is_seen(monkeypatch):
    monkeypatch.setattr(step, "distance", lambda level, published: 2 * int(np.abs(level - published).sum()))

    assert "a decision moves by 6 between neighbours, and the plan allows 3" in wrong(RULE)


@pytest.mark.parametrize(
    ("factor", "said"), [(0.0, "a decision does not depend on its own noise"), (0.5, "the noise of a distance is")]
)
def test_missing_and_narrow_noise_of_a_decision_is_seen(monkeypatch, factor, said):
    one = step._one
    narrow = (
        (lambda sample, scale: one(sample, scale * factor))
        if factor
        else (lambda sample, scale: 0 * one(sample, scale))
    )
    monkeypatch.setattr(step, "_one", narrow)

    assert any(said in text for text in wrong(RULE))


def test_a_threshold_that_does_not_count_is_seen(monkeypatch):
    one = step._one
    monkeypatch.setattr(step, "_one", lambda sample, scale: found if (found := one(sample, scale)) != MOVED else 0)

    assert "a decision does not move with the noise of its threshold" in wrong(DECIDING[1])


TREE = kdtree((6,), (True,), height=1, share=0.3)
ONCE = FixedRule(period=Period(windows=1), interval=1)
UNEVEN = np.array([[0, 400, 0, 0, 0, 1600]])


def chances_of_trees(level):
    """Return the logarithm of the chance of each split, with the exact counts of the uneven histogram."""
    scales, found = scales_for(ONCE, budget=1.0, sensitivity=1, over=TREE), []
    for cut in range(5):
        sketch = TREE.sketch(UNEVEN[0], lambda _, cut=cut: cut, lambda size: np.zeros(size, dtype=np.int64))
        found.append(log_chance(ONCE, scales, TREE, level, [True], [sketch]))
    return np.array(found), scales


def test_chances_of_all_splits_add_up_to_one():
    found, scales = chances_of_trees(UNEVEN)
    density = 3 * np.log(np.tanh(1 / (2 * scales.sample(1).scale)))

    assert np.exp(found - density).sum() == pytest.approx(1)


def test_the_loss_of_a_kdtree_is_the_whole_budget_and_more_if_scores_move_twice(monkeypatch):
    other = UNEVEN + np.array([0, 1, 0, 0, 0, 0])
    losses = np.abs(chances_of_trees(other)[0] - chances_of_trees(UNEVEN)[0])
    once = kd.scores
    monkeypatch.setattr(kd, "scores", lambda *arguments: 2 * once(*arguments))
    twice = np.abs(chances_of_trees(other)[0] - chances_of_trees(UNEVEN)[0])

    assert 0.999 < losses.max() <= 1 + 1e-9
    assert twice.max() == pytest.approx(losses.max() + 0.3, rel=1e-3)
