"""Populations of `benchmarks/adaptive` keep their members, and measured errors agree with computed ones."""

import numpy as np
import pytest

from benchmarks.adaptive.figures import Point, error
from benchmarks.adaptive.populations import CARS, PEOPLE, census, patients, roads


def test_people_and_cars_stay_and_patients_only_leave() -> None:
    assert (census(windows=60, attributes=2).sum(axis=1) == PEOPLE).all()
    driven = roads(windows=4)
    assert (driven.sum(axis=1) == CARS).all()
    assert (driven[0] != driven[3]).any()
    followed = patients()
    assert followed[0].sum() == 17_549
    assert (np.diff(followed.sum(axis=1)) <= 0).all()
    assert (followed >= 0).all()


def test_the_error_of_all_windows_equals_the_error_of_their_noise() -> None:
    """The mean of 40 x 50 absolute values of Laplace noise of scale 40 has the deviation 40 / sqrt(2,000) = 0.9."""
    point = Point(name="", stream=np.full((40, 50), 1000, dtype=np.int64))
    assert error(point, "fixed", 1, interval=1) == pytest.approx(40, abs=6 * 0.9)
