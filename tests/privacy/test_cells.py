"""Strategies over cells against their dense matrices: estimates, variances, sizes of columns."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from privacy.cells.along import Along
from privacy.cells.averages import averages
from privacy.cells.layers import Layers
from privacy.cells.mixed import Mixed
from privacy.cells.mixing import fits, mixed
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.cells.quadtree import Quadtree, quadtree
from privacy.cells.wanted import Wanted
from privacy.planning.document import CODEC

ALONG: list[Along] = [
    Layers(cells=1),
    Layers(cells=7),
    Layers(cells=7, weights=(3,)),
    Layers(cells=5, sizes=(1, 2, 4), weights=(1, 1, 1)),
    Layers(cells=8, sizes=(1, 2, 4, 8), weights=(1, 1, 1, 1)),
    Layers(cells=17, sizes=(1, 4, 16), weights=(2, 1, 3)),
    Layers(cells=30, sizes=(1, 3, 9, 27, 81), weights=(1, 2, 3, 4, 5)),
    Layers(cells=12, sizes=(1, 2, 6, 12), weights=(2, 3, 1, 4)),
    Layers(cells=7, sizes=(1, 7), weights=(1, 2)),
    Prefixes(cells=1),
    Prefixes(cells=6),
]
MIXED: list[Along] = [
    Mixed(alone=bytes([3, 1, 2, 2]), rows=(bytes([0, 4, 1, 2]), bytes([1, 1, 1, 1]), bytes([5, 0, 0, 1]))),
    Mixed(alone=bytes([2]), rows=()),
    mixed(Layers(cells=9, sizes=(1, 3), weights=(1, 1)), Wanted("ranges"), 1, 4),
]
PRODUCTS = [
    Product(axes=axes)
    for axes in (
        (ALONG[3], ALONG[10]),
        (Layers(cells=3), ALONG[7]),
        (ALONG[3], Layers(cells=2), ALONG[8]),
        (ALONG[10], Prefixes(cells=3)),
        (quadtree((4, 4), (True, True)),),
        (quadtree((5, 2, 7), (True, False, True)),),
        (quadtree((1, 3), (True, True)),),
        (Layers(cells=2), MIXED[0]),
        (MIXED[0], MIXED[2]),
    )
]


def dense(strategy: Along | Product) -> np.ndarray:
    return strategy.spread(np.eye(strategy.cells, dtype=np.int64)).T.astype(float)


def ranges(cells: int) -> np.ndarray:
    return np.array([[a <= c <= b for c in range(cells)] for a in range(cells) for b in range(a, cells)], dtype=float)


@pytest.mark.parametrize("strategy", [*ALONG, *MIXED, *PRODUCTS], ids=str)
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
    assert product.covariance(boxes[3], boxes[50]) == pytest.approx((boxes[3] @ inverse) @ (boxes[50] @ inverse))


def test_a_row_of_noise_gives_the_same_cells_to_the_last_bit_however_many_rows_there_are():
    for strategy in PRODUCTS:
        noisy = np.random.default_rng(3).normal(size=(7, strategy.nodes)) * 1e6
        together = strategy.gather(noisy)
        assert all((strategy.gather(row[None]) == own).all() for row, own in zip(noisy, together, strict=True))
        exact = np.random.default_rng(4).integers(0, 2**40, (2, strategy.cells))
        assert strategy.gather(strategy.spread(exact).astype(float)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("strategy", [*ALONG, *(p for p in PRODUCTS if p.blocks)], ids=str)
@pytest.mark.parametrize("power", [1, 2])
def test_corners_are_reached_and_no_two_cells_go_beyond_them(strategy, power):
    """In every direction: the largest x A + y B - z M over pairs of cells is that of the corners."""
    columns = dense(strategy).T ** power
    pairs = [(a.sum(), b.sum(), np.minimum(a, b).sum()) for a, b in itertools.product(columns, columns)]
    directions = [(1, 1, -2), (1, 1, 0), (3, 1, -2), (1, 3, -4), (2, 2, -1), (0, 0, 1), (4, 4, -8)]
    for direction in directions:
        if strategy.cells > 1:
            most = max(np.dot(direction, corner) for corner in strategy.corners(power))
            assert most == max(np.dot(direction, pair) for pair in pairs)
    assert np.count_nonzero(columns, axis=1).max() == strategy.filled


@pytest.mark.parametrize("along", ALONG, ids=str)
@pytest.mark.parametrize("apart", [0, 1, 3])
def test_corners_of_near_cells_hold_all_pairs_that_are_near(along, apart):
    columns = dense(along).T
    cells = range(along.cells)
    near = [(columns[a], columns[b]) for a in cells for b in cells if abs(a - b) <= apart]
    for power in (1, 2):
        farthest = max((np.abs(a - b) ** power).sum() for a, b in near)
        assert max(a + b - 2 * both for a, b, both in along.corners(power, apart)) == farthest


@pytest.mark.parametrize("apart", [0, 1, 3])
@pytest.mark.parametrize("product", [*PRODUCTS[:4], Product(axes=(Prefixes(cells=3), Prefixes(cells=4)))], ids=str)
def test_corners_of_near_cells_of_a_product_hold_pairs_that_are_near_along_every_axis(product, apart):
    columns = dense(product).T
    places = np.stack(np.unravel_index(np.arange(product.cells), [axis.cells for axis in product.axes]), axis=1)
    steps = np.arange(apart, apart + len(product.axes))
    near = np.argwhere((np.abs(places[:, None] - places) <= steps).all(axis=2))
    for power in (1, 2):
        farthest = (np.abs(columns[near[:, 0]] - columns[near[:, 1]]) ** power).sum(axis=1).max()
        corners = product.corners(power, tuple(steps.tolist()))
        assert max(a + b - 2 * both for a, b, both in corners) == farthest


def test_nodes_are_the_sums_of_their_ranges_as_often_as_their_weights_say():
    for along in ALONG:
        begins, ends = along.ranges()
        cells = np.arange(along.cells)
        held = (begins[:, None] <= cells) & (cells < ends[:, None])
        assert (dense(along) == held * along.of_nodes()[:, None]).all()
        assert ends.max() == along.cells
        if isinstance(along, Layers):
            in_layers = [held[along.layer() == layer].sum(axis=0) for layer in range(len(along.sizes))]
            assert (np.array(in_layers) == 1).all()
    for product in (*PRODUCTS[:4], Product(axes=(ALONG[7], ALONG[8]))):
        assert (dense(product).max(axis=1) == product.weights()).all()


def test_a_quadtree_is_over_two_keys_and_for_no_distance():
    """Its nodes are boxes, one of each layer for each cell; the mean over boxes is near to that over all of them."""
    (tree,) = PRODUCTS[5].axes
    assert isinstance(tree, Quadtree)
    inside = np.ones((tree.nodes, *tree.shape), dtype=bool)
    for axis, (begin, end) in enumerate(tree.boxes()):
        cells = np.arange(tree.shape[axis]).reshape([-1 if place == axis else 1 for place in range(3)])
        inside &= (begin[:, None, None, None] <= cells) & (cells < end[:, None, None, None])
    assert (inside.reshape(tree.nodes, -1) * tree.of_nodes()[:, None] == dense(tree)).all()
    assert all((inside[tree.layer() == layer].sum(axis=0) == 1).all() for layer in range(tree.filled))
    inverse = np.linalg.pinv(dense(tree))
    boxes = [np.kron(np.kron(a, b), c) for a in ranges(5) for b in np.eye(2) for c in ranges(7)]
    assert tree.average("cells") == pytest.approx(tree.variances().mean())
    assert tree.average("ranges") == pytest.approx(((np.array(boxes) @ inverse) ** 2).sum(axis=1).mean(), rel=0.3)
    with pytest.raises(ValueError, match="not for a distance"):
        tree.corners(2, 1)
    for shape, ordered in (((5,), (True,)), ((5, 5, 5), (True, True, True)), ((5, 5), (True, False))):
        with pytest.raises(ValueError, match="two ordered axes"):
            quadtree(shape, ordered)
    with pytest.raises(ValueError, match="one for each of 3 layers"):
        Quadtree(shape=(4, 3), ordered=(True, True), weights=(1, 1))


def test_documents_are_read_back():
    for product in PRODUCTS:
        asked = replace(product, workload=("ranges",) * len(product.axes))
        assert CODEC.read(Product, CODEC.write(asked)) == asked
        boxes = (((0, 1), (1, 2), None), ((0, 1), None, None))
        listed = replace(product, listed=tuple(box[: len(product.shape)] for box in boxes))
        assert CODEC.read(Product, CODEC.write(listed)) == listed
        assert CODEC.read(Product, CODEC.write(product)) == product


@pytest.mark.parametrize(
    ("sizes", "weights"),
    [
        ((2,), (1,)),
        ((1, 1), (1, 1)),
        ((1, 3, 5), (1, 1, 1)),
        ((1, 2), (1,)),
        ((1, 2), (1, 0)),
        ((1, 8, 16), (1, 1, 1)),
        ((), ()),
    ],
)
def test_layers_that_are_none_are_refused(sizes, weights):
    with pytest.raises(ValueError, match=r"sizes=|weights=|weight="):
        Layers(cells=8, sizes=sizes, weights=weights)


def test_nothing_is_gathered_only_where_cells_are_by_themselves_on_all_axes():
    each = Layers(cells=3)
    assert Product(axes=(each, each)).trivial
    assert not any(Product(axes=(each, other)).trivial for other in (ALONG[3], Prefixes(cells=3)))


def test_a_product_has_axes_and_a_workload_for_each_or_for_none():
    for axes, workload in (((), ()), ((ALONG[3],), ("cells", "ranges"))):
        with pytest.raises(ValueError, match="one"):
            Product(axes=axes, workload=workload)


def test_means_of_a_million_cells_follow_from_few_numbers():
    sizes = tuple(16**layer for layer in range(5))
    found = averages(1_000_000, sizes, (1,) * 5)
    assert 0.9 < found["cells"] < 1.0
    assert found["prefixes"] < found["ranges"] < 100


def test_what_is_listed_counts_as_much_as_each_cell():
    product = Product(axes=(Layers(cells=2), MIXED[0]), listed=((None, (0, 3)), (None, (1, 3))))
    boxes = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0, 0]], dtype=float)
    listed = np.mean([product.variance(box) for box in boxes])
    assert product.average() == pytest.approx((product.variances().mean() + listed) / 2)
    for wrong in (((None, (0, 5)),), ((None,),), ((None, (2, 2)),)):
        with pytest.raises(ValueError, match="listed="):
            replace(product, listed=wrong)


@pytest.mark.parametrize("apart", [None, 0, 1])
@pytest.mark.parametrize("along", MIXED, ids=str)
def test_corners_of_mixed_strategies_hold_all_pairs_and_values_and_the_largest_column_is_reached(along, apart):
    columns, cells = dense(along).T, range(along.cells)
    far = along.cells if apart is None else apart
    for power in (1, 2):
        corners = along.corners(power, apart)
        assert max(a for a, _, _ in corners) == (columns**power).sum(axis=1).max()
        for a, b in ((columns[a], columns[b]) for a in cells for b in cells if abs(a - b) <= far):
            for x, y in ((1, 1), (1, -1), (0.5, 1), (1, -0.25), (1, 0)):
                parts = abs(x) ** power, abs(y) ** power, abs(x - y) ** power
                bound = max(np.dot(parts, (one - both, other - both, both)) for one, other, both in corners)
                assert (np.abs(x * a - y * b) ** power).sum() <= bound + 1e-9


def test_mixed_strategies_name_what_is_wrong_with_them():
    for alone, rows, error in (
        (b"", (), "cells"),
        (bytes([1, 0]), (), "alone"),
        (bytes([1, 64]), (), "at most 63"),
        (bytes([1, 1]), (bytes([1]),), "rows"),
        (bytes([1, 1]), (bytes([0, 0]),), "rows"),
        (bytes([1] * 1025), (), "at most 1,024"),
    ):
        with pytest.raises(ValueError, match=error):
            Mixed(alone=alone, rows=rows)
    with pytest.raises(ValueError, match="hexadecimal"):
        CODEC.read(Mixed, {"alone": "0g", "rows": []})


def test_mixing_makes_ranges_nearer_than_the_tree_it_begins_with_and_nears_the_lower_bound():
    """Li and Miklau's singular value bound: no strategy with columns of norm 1 has a smaller mean variance."""
    tree = Layers(cells=24, sizes=(1, 3, 9), weights=(1, 1, 1))
    singular = np.linalg.svd(ranges(24), compute_uv=False)
    bound = singular.sum() ** 2 / 24 / len(ranges(24))
    for power, near in ((1, 3.0), (2, 1.06)):
        found = mixed(tree, Wanted("ranges"), power, 1)
        cost = found.average("ranges") * found.corners(power)[0][0] ** (2 // power)
        assert bound <= cost < near * bound
        assert cost < 0.85 * tree.average("ranges") * 3 ** (2 // power)
    assert fits(tree)
    assert not fits(Layers(cells=1024, sizes=(1, 2), weights=(1, 1)))
