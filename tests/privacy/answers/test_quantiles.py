"""Quantiles from noisy counts: the right cell, and intervals with their stated coverage.

Only the noise, from the operating system, is random. A correct build fails each check with probability at most
FALSE_ALARM.
"""

import math
from functools import lru_cache

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from scipy.stats import binom

from privacy.answers.quantiles import balances, quantiles, reach_of
from privacy.cells.layers import Layers
from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace, NoiseDistribution
from privacy.noise.mixed import half_width_by_spread

FALSE_ALARM = 1e-7
RUNS, CELLS = 400, 64
EDGES = np.concatenate([[0.0], np.arange(CELLS - 1.0), [CELLS - 2.0]])
LOW, HIGH = EDGES[:-1], EDGES[1:]
TREE = Layers(cells=CELLS, sizes=(1, 4, 16), weights=(1, 1, 1))


@lru_cache
def sample(noise: NoiseDistribution) -> np.ndarray:
    return noise.noise(RUNS * TREE.matrix.nodes).reshape(RUNS, -1)


def cell_of(counts: np.ndarray, share: float) -> int:
    return int(np.argmax(np.cumsum(counts) >= share * counts.sum()))


@pytest.mark.slow
@pytest.mark.parametrize("along", [None, TREE])
@pytest.mark.parametrize("noise", [DiscreteLaplace(4.0), DiscreteGaussian(20.0)])
@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_an_interval_covers_the_quantile_at_its_confidence(
    noise: NoiseDistribution, along: Layers | None, share: float
):
    """Units are spread over the cells, with gaps between them."""
    counts = np.random.default_rng(3).poisson(np.where(np.arange(CELLS) % 20 < 12, 60, 0))
    nodes = counts if along is None else along.spread(counts)
    noisy = nodes + sample(noise)[:, : len(nodes)]
    made = noisy.astype(float) if along is None else along.gather(noisy.astype(float))
    of = balances(CELLS, share, along)

    found = quantiles(made, share, low=LOW, high=HIGH, reach=reach_of(noise, 1.0, 1.0, of, 0.95))

    truth = cell_of(counts, share)
    held = (found.ci_low <= LOW[truth]) & (HIGH[truth] <= found.ci_high)
    assert (~held).sum() <= binom.isf(FALSE_ALARM, RUNS, 0.05)
    assert ((found.ci_low <= found.value) & (found.value <= found.ci_high)).all()
    assert np.median(found.ci_high - found.ci_low) < CELLS / 2


@pytest.mark.parametrize("along", [None, TREE])
def test_balances_have_the_variance_that_the_noise_has(along: Layers | None) -> None:
    matrix = np.eye(CELLS) if along is None else along.spread(np.eye(CELLS, dtype=np.int64)).T
    weights = np.tril(np.ones((CELLS, CELLS))) - 0.3
    expected = np.einsum("ij,jk,ik->i", weights, np.linalg.inv(matrix.T @ matrix), weights)

    found = balances(CELLS, 0.3, along)

    assert found.squares == pytest.approx(expected, rel=1e-9)
    for noise in (DiscreteLaplace(1000.0), DiscreteGaussian(1000.0)):
        deviation = np.sqrt(expected * noise.variance)
        reach = reach_of(noise, 4.0, 1.0, found, 0.95) / 2
        assert ((1.959 * deviation <= reach) & (reach < 2.2 * deviation)).all()
    whole = np.abs(weights @ np.linalg.pinv(matrix)) ** 2
    assert (found.largest >= whole.max(axis=1) / whole.sum(axis=1) - 1e-12).all()


def test_a_median_of_ten_thousand_is_within_a_cell() -> None:
    """The noise of a median's balance has a deviation below 12; the cell has 300 units, far above 10 deviations."""
    counts = np.full(32, 312.0)
    noisy = counts + DiscreteLaplace(1.0).noise(32 * 50).reshape(50, 32)
    edges = np.arange(33.0)

    found = quantiles(
        noisy,
        0.5,
        low=edges[:-1],
        high=edges[1:],
        reach=reach_of(DiscreteLaplace(1.0), 1.0, 1.0, balances(32, 0.5, None), 0.95),
    )

    assert (np.abs(found.value - 16) < 1).all()
    assert (found.ci_high - found.ci_low <= 2).all()


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([0, 8, 0, 0], (2.5, 0, 5)),
        ([8, 0, 0, 0], (0, 0, 0)),
        ([0, 0, 0, 8], (10, 10, 10)),
        ([0, 4, 4, 0], (5, 0, 10)),
        ([1, 1, 1, -5], (math.nan, 0, 10)),
        ([0, 0, 0, 0], (math.nan, 0, 10)),
    ],
)
def test_with_negligible_noise_a_median_is_exact(counts: list[int], expected: tuple[float, ...]) -> None:
    edges = np.array([0.0, 0.0, 5.0, 10.0, 10.0])

    found = quantiles(np.array(counts, float), 0.5, low=edges[:-1], high=edges[1:], reach=np.full(4, 1e-9))

    assert (float(found.value), float(found.ci_low), float(found.ci_high)) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("reach", "expected"),
    [([0, 0, 0, 0], (1, 2)), ([0, 0, 11, 0], (1, 4)), ([0, 11, 0, 0], (1, 3)), ([10, 0, 0, 0], (0, 2))],
)
def test_only_the_noise_at_its_own_ends_excludes_a_cell(reach: list[float], expected: tuple[int, int]) -> None:
    """The median's balances are -10, 0, 10 and 10: each is compared with its own width, and no other."""
    edges = np.arange(5.0)
    counts = np.array([0.0, 10.0, 10.0, 0.0])

    found = quantiles(counts, 0.5, low=edges[:-1], high=edges[1:], reach=np.array(reach, float))

    assert (float(found.ci_low), float(found.ci_high)) == expected


def test_weights_are_taken_for_no_more_evenly_spread_than_they_are() -> None:
    """Three equal weights count as two: spreads are rounded down to powers of two, in time and over cells together."""
    noise, of = DiscreteLaplace(1000.0), balances(3, 0.5, None)

    for largest, spread in ((1.0, 2), (0.5, 4), (0.3, 8)):
        expected = np.sqrt(of.squares) * half_width_by_spread(noise, spread, 0.95)
        assert reach_of(noise, 1.0, largest, of, 0.95) == pytest.approx(expected)


def test_of_several_crossings_it_is_that_of_the_isotonic_regression() -> None:
    random = np.random.default_rng(5)
    counts = random.normal(0.4, 3, (200, 12))
    edges = np.arange(13.0)

    found = quantiles(counts, 0.3, low=edges[:-1], high=edges[1:], reach=np.full(12, np.inf))

    for value, row in zip(found.value, counts, strict=True):
        if row.sum() > 0:
            balance = np.cumsum(row) - 0.3 * row.sum()
            fitted = isotonic_regression(np.append(-0.3 * row.sum(), balance)).x
            assert np.ceil(value) == np.argmax(fitted >= 0)


def test_noise_of_empty_cells_does_not_move_the_quantile() -> None:
    """A hundred units are in the last of 1,000 cells: before them T is -10, and its noise has a deviation of 7.4.

    No value of 900 or less occurred in 30,000 trials; at a rate of 1 in 100, 50 of 100 have probability below 1e-70.
    The middle of the first and the last crossing is at 495.
    """
    counts = np.zeros(1000)
    counts[-20:] = 5.0
    noisy = np.diff(np.cumsum(counts) + DiscreteLaplace(5.0).noise(1000 * 100).reshape(100, -1), prepend=0.0)
    edges = np.arange(1001.0)

    found = quantiles(noisy, 0.1, low=edges[:-1], high=edges[1:], reach=np.full(1000, np.inf))

    assert np.median(found.value) > 900
