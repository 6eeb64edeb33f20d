"""Strategies over cells compared with their dense matrices: estimates, variances, norms of columns."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from privacy.cells.layers import Layers
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.planning.document import CODEC
from tests.privacy.cells.matrices import ALONE, ALONG, MIXED, PRODUCTS, dense, ranges


@pytest.mark.few(11)
@pytest.mark.parametrize("strategy", [*ALONE, *(Product(axes=(one,)) for one in MIXED), *PRODUCTS], ids=str)
def test_cells_are_the_least_squares_of_noisy_nodes_with_exact_variances(strategy):
    inverse = np.linalg.pinv(dense(strategy))
    covariance = inverse @ inverse.T
    noisy = np.random.default_rng(1).normal(size=(3, strategy.nodes))
    queries = np.random.default_rng(2).normal(size=(4, strategy.cells))
    assert strategy.gather(noisy) == pytest.approx(noisy @ inverse.T, abs=1e-9)
    assert strategy.solve(queries) == pytest.approx(queries @ covariance, abs=1e-9)
    assert strategy.variances() == pytest.approx(np.diag(covariance))
    scale = np.sqrt(strategy.least_precisions())
    assert np.linalg.eigvalsh(scale * covariance * scale[:, None]).max() <= 1 + 1e-9


@pytest.mark.parametrize("along", [*ALONG, *MIXED], ids=str)
def test_mean_variances_are_those_of_all_queries_of_a_workload(along):
    inverse = np.linalg.pinv(dense(along))
    for workload, queries in (
        ("cells", np.eye(along.cells)),
        ("prefixes", np.tri(along.cells)),
        ("ranges", ranges(along.cells)),
    ):
        assert along.average(workload) == pytest.approx(((queries @ inverse) ** 2).sum(axis=1).mean()), workload


def test_mean_variances_of_a_product_are_those_of_boxes():
    product = PRODUCTS[0]
    inverse = np.linalg.pinv(dense(product))
    boxes = np.array([np.kron(a, b) for a in ranges(5) for b in np.tri(6)])
    expected = ((boxes @ inverse) ** 2).sum(axis=1)
    product = replace(product, workload=("ranges", "prefixes"))
    assert product.average() == pytest.approx(expected.mean())
    assert [product.variance(box) for box in boxes[:40]] == pytest.approx(expected[:40])
    assert float(boxes[3] @ product.solve(boxes[50])) == pytest.approx((boxes[3] @ inverse) @ (boxes[50] @ inverse))


def test_sums_of_estimates_are_equal_in_any_order():
    for strategy in PRODUCTS:
        scales = 10.0 ** np.array([[0], [3], [6], [9], [-5]])
        noisy = np.random.default_rng(1).normal(size=(5, strategy.nodes)) * scales
        for row in strategy.gather(noisy):
            grid, total = row.reshape(strategy.shape), row.sum()
            assert total == sum(np.random.default_rng(2).permutation(row).tolist())
            for axis in range(grid.ndim):
                assert total == grid.sum(axis=axis).sum()
        assert (strategy.gather(np.zeros((1, strategy.nodes))) == 0).all()


def test_a_row_of_noise_gives_the_same_cells_to_the_last_bit_however_many_rows_there_are():
    for strategy in PRODUCTS:
        noisy = np.random.default_rng(3).normal(size=(7, strategy.nodes)) * 1e6
        together = strategy.gather(noisy)
        assert all((strategy.gather(row[None]) == own).all() for row, own in zip(noisy, together, strict=True))
        exact = np.random.default_rng(4).integers(0, 2**40, (2, strategy.cells))
        assert strategy.gather(strategy.spread(exact).astype(float)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
@pytest.mark.few(17)
@pytest.mark.parametrize("strategy", [*ALONE, *(p for p in PRODUCTS if p.blocks)], ids=str)
@pytest.mark.parametrize("power", [1, 2])
def test_corners_are_reached_and_no_two_cells_go_beyond_them(strategy, power):
    """In every direction, the largest x A + y B - z M over pairs of cells equals that of the corners."""
    columns = dense(strategy).T ** power
    pairs = [(a.sum(), b.sum(), np.minimum(a, b).sum()) for a, b in itertools.product(columns, columns)]
    directions = [(1, 1, -2), (1, 1, 0), (3, 1, -2), (1, 3, -4), (2, 2, -1), (0, 0, 1), (4, 4, -8)]
    for direction in directions:
        if strategy.cells > 1:
            most = max(np.dot(direction, corner) for corner in strategy.corners(power))
            assert most == max(np.dot(direction, pair) for pair in pairs)
    assert np.count_nonzero(columns, axis=1).max() == strategy.filled


@pytest.mark.few(13)
@pytest.mark.parametrize("along", ALONG, ids=str)
@pytest.mark.parametrize("apart", [0, 1, 3])
def test_corners_of_near_cells_cover_all_near_pairs(along, apart):
    columns = dense(along).T
    cells = range(along.cells)
    near = [(columns[a], columns[b]) for a in cells for b in cells if abs(a - b) <= apart]
    for power in (1, 2):
        farthest = max((np.abs(a - b) ** power).sum() for a, b in near)
        assert max(a + b - 2 * both for a, b, both in along.matrix.corners(power, apart)) == farthest


@pytest.mark.parametrize("apart", [0, 1, 3])
@pytest.mark.parametrize("product", [*PRODUCTS[:4], Product(axes=(Prefixes(cells=3), Prefixes(cells=4)))], ids=str)
def test_corners_of_near_cells_of_a_product_cover_pairs_near_along_every_axis(product, apart):
    columns = dense(product).T
    places = np.stack(np.unravel_index(np.arange(product.cells), [axis.cells for axis in product.axes]), axis=1)
    steps = np.arange(apart, apart + len(product.axes))
    near = np.argwhere((np.abs(places[:, None] - places) <= steps).all(axis=2))
    for power in (1, 2):
        farthest = (np.abs(columns[near[:, 0]] - columns[near[:, 1]]) ** power).sum(axis=1).max()
        corners = product.corners(power, tuple(steps.tolist()))
        assert max(a + b - 2 * both for a, b, both in corners) == farthest


def test_nodes_are_the_weighted_sums_of_their_ranges():
    for along in ALONG:
        ((begins, ends),) = along.boxes()
        cells = np.arange(along.cells)
        held = (begins[:, None] <= cells) & (cells < ends[:, None])
        assert (dense(along) == held * along.matrix.of_nodes()[:, None]).all()
        assert ends.max() == along.cells
        if isinstance(along, Layers):
            in_layers = [held[along.matrix.layer() == layer].sum(axis=0) for layer in range(len(along.sizes))]
            assert (np.array(in_layers) == 1).all()
    for product in (*PRODUCTS[:4], Product(axes=(ALONG[7], ALONG[8]))):
        assert (dense(product).max(axis=1) == product.weights()).all()


def test_documents_are_read_back():
    for product in PRODUCTS:
        asked = replace(product, workload=("ranges",) * len(product.axes))
        assert CODEC.read(Product, CODEC.write(asked)) == asked
        boxes = (((0, 1), (1, 2), None, None), ((0, 1), None, None, None))
        listed = replace(product, listed=tuple(box[: len(product.shape)] for box in boxes), shares=(1.0, 0.1, 3.0))
        assert CODEC.read(Product, CODEC.write(listed)) == listed
        assert CODEC.read(Product, CODEC.write(product)) == product


def test_nothing_is_gathered_only_if_all_axes_have_single_cells():
    each = Layers(cells=3)
    assert Product(axes=(each, each)).trivial
    assert not any(Product(axes=(each, other)).trivial for other in (ALONG[3], Prefixes(cells=3)))


def test_a_product_has_axes_and_a_workload_for_each_or_for_none():
    for axes, workload in (((), ()), ((ALONG[3],), ("cells", "ranges"))):
        with pytest.raises(ValueError, match="one"):
            Product(axes=axes, workload=workload)


def test_listed_ranges_weigh_as_much_as_single_cells():
    product = Product(axes=(Layers(cells=2), MIXED[0]), listed=((None, (0, 3)), (None, (1, 3))))
    boxes = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0, 0]], dtype=float)
    listed = np.mean([product.variance(box) for box in boxes])
    assert product.average() == pytest.approx((product.variances().mean() + listed) / 2)
    for wrong in (((None, (0, 5)),), ((None,),), ((None, (2, 2)),)):
        with pytest.raises(ValueError, match="listed="):
            replace(product, listed=wrong)
