"""Errors of sums over cells of samples: errors of samples add up, and that of a repeated window is unknown."""

import numpy as np
import pytest

from privacy.adaptive.bd import Bd
from privacy.adaptive.fixed import Fixed
from privacy.answers.sums import over_cells, spread, weights_of
from privacy.series import Series
from tests.privacy.planning.test_adaptive_part import planned

LEVEL = Series(kind="level")


def test_a_difference_has_the_noise_of_both_samples_and_a_repeated_window_no_interval() -> None:
    (part,) = planned(Fixed(interval=2)).parts
    sampled, of_four = [True, False, True, False, True], np.array([1.0] * 4 + [0.0] * 5)

    alone = part.sum_errors(LEVEL, of_four, np.arange(5), None, sampled)
    apart = part.sum_errors(LEVEL, of_four, np.array([4, 4]), np.array([0, 1]), sampled)

    noise = part.scales.sample(1)
    assert np.isnan(alone).all(axis=0).tolist() == [False, True, False, True, False]
    assert alone[0, 0] == pytest.approx(np.sqrt(4 * noise.variance))
    assert apart[0, 0] == pytest.approx(np.sqrt(8 * noise.variance))
    # Both are within their own with 97.5 %, so with 95 % together (Bonferroni).
    assert apart[1, 0] == pytest.approx(2 * spread(noise, weights_of(np.ones(1)), over_cells(of_four, None), 0.975)[1])
    assert np.isnan(apart[:, 1]).all()


def test_each_sample_has_the_noise_of_the_units_that_it_took() -> None:
    """bd gives each sample half of the remaining budget."""
    (part,) = planned(Bd()).parts
    one = np.array([1.0] + [0.0] * 8)

    deviations, _ = part.sum_errors(LEVEL, one, np.arange(3), None, [True, True, True])

    units = [part.scales.units >> halvings for halvings in (1, 2, 3)]
    assert deviations == pytest.approx([part.scales.sample(each).variance ** 0.5 for each in units])
