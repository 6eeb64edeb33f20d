"""Exact chances of groups of windows: they add up to 1, and faults of single decisions are seen."""

import numpy as np
import pytest

from privacy.adaptive import pegasus
from privacy.adaptive.base import Period
from privacy.adaptive.budget import scales_for
from privacy.adaptive.pegasus import PegasusRule
from privacy.cells.each import Each
from privacy.evidence.groups import log_chance, wrong_groups
from privacy.noise.distributions import DiscreteLaplace

OVER = Each(cells=2)
RULE = PegasusRule(period=Period(span=2), decisions=0.5, threshold=4)
SCALES = scales_for(RULE, budget=1.0, sensitivity=3)

LEVELS = np.array([[0, 5], [40, 6], [41, 0], [3, 0]])


def chance(left):
    return log_chance(RULE, SCALES, OVER, LEVELS[: len(left)], np.array(left), LEVELS[: len(left)])


def test_chances_of_all_groups_add_up_to_one():
    """Numbers have the same density in all of them."""
    density = -len(LEVELS[:3].ravel()) * np.log(1 / np.tanh(1 / (2 * SCALES.sample(1).scale)))
    paths = [(False, False, False), (False, False, True), (False, True, False)]
    found = [np.exp(chance(np.array([one, two]).T) - density) for one in paths for two in paths]

    assert min(found) > 0
    assert sum(found) == pytest.approx(1)
    assert chance([(False, False), (True, False), (True, False)]) == -np.inf


def wrong():
    two = LEVELS.copy()
    two[1:3, 0] += 3
    left = np.array([[False, False], [False, True], [False, False], [True, False]])
    return {*wrong_groups(RULE, SCALES, OVER, (LEVELS, two), left, two)}


def test_decisions_of_the_program_are_right():
    assert wrong() == set()


def test_a_deviation_that_moves_by_more_than_twice_the_windows_is_seen(monkeypatch):
    once = pegasus.deviation
    monkeypatch.setattr(pegasus, "deviation", lambda exact, length: 4 * once(exact, length))

    assert any("a decision moves by" in text for text in wrong())


def test_narrow_noise_of_decisions_is_seen(monkeypatch):
    monkeypatch.setattr(pegasus, "DiscreteLaplace", lambda scale: DiscreteLaplace(scale / 2))

    assert "the noise of numbers, thresholds and distances is not that of the plan, or not separate" in wrong()


def test_a_smoothed_number_instead_of_a_noisy_one_is_seen(monkeypatch):
    once = pegasus.smoothed
    monkeypatch.setattr(pegasus, "smoothed", lambda *arguments: once(*arguments) + 1)

    assert "a number that is not smoothed is not its noisy number" in wrong()
