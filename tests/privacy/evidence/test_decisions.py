"""Exact chances of decisions: they add up to 1, and their loss is that of the proof for the worst streams."""

import numpy as np
import pytest

from privacy.adaptive.ba import BaRule
from privacy.adaptive.base import Period
from privacy.adaptive.budget import scales_for
from privacy.adaptive.fixed import FixedRule
from privacy.cells.each import Each
from privacy.evidence.decisions import log_chance

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
