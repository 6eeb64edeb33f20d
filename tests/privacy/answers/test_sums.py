"""Errors of sums over cells, compared with the whole matrix of their noise."""

import numpy as np
import pytest

from privacy.answers.sums import over_cells, spread, weights_of
from privacy.cells.layers import Layers
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace
from privacy.noise.mixed import half_width_by_spread
from privacy.noise.weighted import half_width
from privacy.series import Series
from privacy.smoothing.noise_covariance import noise_weights
from privacy.strategies.base import Strategy
from privacy.strategies.direct.direct import Direct
from privacy.strategies.factorised.coefficient_kernel import Coefficients
from privacy.strategies.factorised.factorised import Factorised
from privacy.strategies.tree.tree import Tree
from tests.privacy.steps import noise_matrix, sampled

LEVEL, WEEK = Series(kind="level"), Series(kind="sliding", width=3, every=2)
TREE = Layers(cells=5, sizes=(1, 2, 4), weights=(1, 1, 2))
CELLS = [None, Product(axes=(TREE,)), Product(axes=(Prefixes(cells=2), TREE))]
STRATEGIES: list[tuple[Strategy, Series]] = [
    (Tree(windows=11, initial_level=True, branching=2, height=3, refine="bottom_up"), LEVEL),
    (Tree(windows=11, initial_level=True, branching=2, height=4, refine="least_squares"), WEEK),
    (Direct(windows=11), LEVEL),
    (Factorised(kernel=Coefficients(), windows=11, initial_level=True), LEVEL),
]


@pytest.mark.parametrize(("strategy", "series"), STRATEGIES)
def test_weights_of_some_numbers_are_rows_of_the_whole_matrix(strategy: Strategy, series: Series) -> None:
    whole = noise_matrix(strategy, series, 11, sampled(strategy, 11), scale=2**20)

    found = noise_weights(strategy, series, [3, 1])

    assert np.allclose((found @ found.T), whole[[3, 1]] @ whole[[3, 1]].T, rtol=1e-5)


@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("distribution", [DiscreteLaplace(30.0), DiscreteGaussian(30.0)])
def test_an_answer_has_the_noise_of_all_nodes_in_time_times_all_of_cells(cells: Product | None, distribution) -> None:
    size = 5 if cells is None else cells.cells
    query = np.random.default_rng(1).integers(-1, 2, size).astype(float)
    in_time = np.array([1.0, -0.5, 0.25, 0.0, 1.0])
    matrix = np.eye(size) if cells is None else cells.spread(np.eye(size, dtype=np.int64)).T
    whole = np.outer(in_time, query @ np.linalg.pinv(matrix)).ravel()

    deviation, width = spread(distribution, weights_of(in_time), over_cells(query, cells), 0.95)

    assert np.isclose(deviation**2, distribution.variance * (whole @ whole), rtol=1e-9)
    sizes = np.abs(whole[np.abs(whole) > 1e-12])
    assert np.isclose(width, half_width(distribution, sizes, 0.95), rtol=2e-3)


def test_many_equal_weights_of_a_large_range_are_fast() -> None:
    million = weights_of(np.ones(10**6))

    deviation, width = spread(DiscreteLaplace(2.0), weights_of(np.ones(3)), million, 0.95)

    assert deviation == pytest.approx((3 * 10**6 * DiscreteLaplace(2.0).variance) ** 0.5, rel=1e-9)
    assert 1.959 < width / deviation < 2.1


@pytest.mark.slow
def test_of_very_many_sizes_the_largest_determines_the_interval() -> None:
    noise, in_time = DiscreteLaplace(1000.0), weights_of(np.append(np.linspace(1, 2, 40), 30))
    of_cells = weights_of(np.linspace(1, 2, 40))

    deviation, width = spread(noise, in_time, of_cells, 0.95)

    squares = in_time.squares * of_cells.squares
    assert deviation**2 == pytest.approx(squares * noise.variance)
    assert width == pytest.approx(half_width_by_spread(noise, int(squares / 60**2), 0.95) * squares**0.5)
    assert in_time.sizes[-1] >= 30 - 1e-9
    assert weights_of(np.array([1.0, 2.0**-39 * 1.4])).sizes[0] >= 2.0**-39 * 1.4
