"""Probabilities of private choices, compared with all orders of permute and flip."""

import math

import numpy as np
import pytest

from privacy.evidence.chances import log_pick
from privacy.noise.choices import PrivateChoice
from tests.privacy.adaptive.runs import chances


@pytest.mark.parametrize("scores", [[0], [-3, -3], [-90, 0, -7, -7, -2], [-5, -1000, -4, 0, 0, -40]])
def test_chances_of_a_private_choice_are_those_of_all_orders(scores):
    choice = PrivateChoice(np.array(scores), 3.0)
    found = [log_pick(choice, place) for place in range(len(scores))]

    assert np.exp(found).sum() == pytest.approx(1)
    assert [math.exp(each) for each in found] == pytest.approx(chances(scores, 3.0), rel=1e-9, abs=0)
