"""Bounds of a filter for trajectories that differ at consecutive boundaries, against finer searches."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from privacy.strategies.factorised import apart
from privacy.strategies.factorised.coefficients import leaky, window

ONE = Fraction(1)


def charged(c: np.ndarray, boundaries: int, **others) -> float:
    return apart.of_filter(
        c, **{"leaves": len(c), "initial_level": False, "boundaries": boundaries, "radius": ONE} | others
    )


@pytest.mark.parametrize("initial_level", [False, True])
@pytest.mark.parametrize("c", [window(4, 0.0), leaky(4, 0.3), np.ones(4), np.array([1.0, 0.5])], ids=str)
def test_no_signs_at_all_boundaries_exceed_the_charge(c, initial_level):
    """Also at the start, which is a boundary without a separate leaf if the initial level is not released."""
    signs = np.array([*itertools.product([-1.0, 1.0], repeat=4 + int(not initial_level))])
    leaves = np.diff(signs, axis=1) if not initial_level else np.diff(signs, axis=1, prepend=0.0)
    nodes = np.array([np.convolve(c, row)[:4] for row in leaves])

    assert (nodes**2).sum(axis=1).max() <= charged(c, 9, leaves=4, initial_level=initial_level)


def test_a_span_costs_more_until_it_has_all_boundaries_and_a_larger_state_more_in_proportion():
    inside, all_of_them, longer = (charged(window(6, 0.0), boundaries) for boundaries in (6, 7, 20))

    assert inside < all_of_them == longer
    assert charged(window(6, 0.0), 3, radius=Fraction(9)) == pytest.approx(9 * charged(window(6, 0.0), 3))


@pytest.mark.parametrize("longest", [8, 1 << 14])
def test_the_supremum_is_not_below_that_of_a_finer_grid(longest, monkeypatch):
    """Also where only the first differences are transformed and the others are added up."""
    monkeypatch.setattr(apart, "LONGEST", longest)
    generator = np.random.default_rng(3)
    for count in (2, 3, 5, 8, 13, 40):
        for _ in range(20):
            c = np.sort(generator.random(count))[::-1]
            d = np.diff(c, prepend=0.0, append=[0.0])
            finer = float((np.abs(np.fft.rfft(d, 1 << 14)) ** 2).max())

            assert finer <= apart._supremum(d) * (1 + 1e-12)


def test_states_that_are_not_on_a_line_are_charged_by_the_supremum():
    """Of disjoint windows it is 4 for each boundary; on a line the first and the last one add less."""
    line, elsewhere = (
        charged(np.ones(1), 3, leaves=None, initial_level=True, on_a_line=on_a_line) for on_a_line in (True, False)
    )

    assert (line, elsewhere) == (pytest.approx(10), pytest.approx(12, rel=2e-3))
