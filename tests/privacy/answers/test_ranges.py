"""Half widths of sums over ranges, compared with the exact distribution of their noise."""

from functools import reduce

import numpy as np
import pytest

from privacy.answers.ranges import InTime, half_widths
from privacy.cells.boxes import Boxes, of_boxes, queries_of
from privacy.cells.layers import Layers
from privacy.cells.product import Product
from privacy.cells.quadtree import quadtree
from privacy.noise.distributions import DiscreteLaplace
from privacy.noise.mixed import half_width_by_spread


def laplace(scale: float, weight: int, reach: int = 400) -> np.ndarray:
    """Return the probabilities of a weighted sample, from -reach to reach."""
    sizes = np.abs(np.arange(-reach, reach + 1))
    found = np.where(sizes % weight == 0, np.exp(-(sizes // weight) / scale), 0.0)
    return found / found.sum()


@pytest.mark.parametrize("scale", [0.5, 4.0, 11.0])
@pytest.mark.parametrize("weights", [(1,), (1, 1), (1, 2), (3, 1, 1)])
def test_intervals_cover_95_percent_and_are_no_wider_than_stated(scale: float, weights: tuple[int, ...]) -> None:
    of = of_boxes([[(0, 1)], [(0, 3)], [(1, 6)]], None)
    squares = float(np.square(weights).sum())
    in_time = InTime(
        squares=squares, largest=max(weights) ** 2 / squares, weight=float(weights[0]) if len({*weights}) == 1 else None
    )
    found = half_widths(DiscreteLaplace(scale), in_time, of, 0.95)
    for cells, half in zip((1, 3, 5), found, strict=True):
        exact = reduce(np.convolve, [laplace(scale, weight) for weight in weights] * cells)
        sums = np.abs(np.arange(len(exact)) - len(exact) // 2)
        assert exact[sums <= half].sum() >= 0.95 - 1e-9, cells
        if in_time.weight is not None:  # for equal weights no smaller multiple of the weight suffices
            assert exact[sums <= half - 2 * weights[0] * max(1, cells**0.5)].sum() < 0.95, cells


def test_under_a_strategy_over_cells_variances_are_those_of_boxes() -> None:
    over = Product(axes=(Layers(cells=3), Layers(cells=12, sizes=(1, 2, 6, 12), weights=(2, 3, 1, 4))))
    inverse = np.linalg.pinv(over.axes[1].spread(np.eye(12, dtype=np.int64)).T.astype(float))
    asked = [(0, 12), (3, 4), (2, 11), (3, 4)]
    weights = (queries_of(asked, 12) @ inverse) ** 2
    found = of_boxes([(None, one) for one in asked], over.axes)
    assert found.squares == pytest.approx(weights.sum(axis=1))
    assert found.largest == pytest.approx(weights.max(axis=1) / weights.sum(axis=1))


def test_under_a_quadtree_variances_are_those_of_boxes() -> None:
    tree = quadtree((5, 2, 6), (True, False, True))
    inverse = np.linalg.pinv(tree.spread(np.eye(tree.cells, dtype=np.int64)).T.astype(float))
    boxes = [[(0, 5), None, (0, 6)], [(1, 4), None, (2, 3)], [(4, 5), None, (0, 1)]]
    query = np.zeros((3, 5, 2, 6))
    for place, ((a, b), _, (c, d)) in enumerate(boxes):
        query[place, a:b, 1, c:d] = 1.0  # any value of the key without an order
    weights = (query.reshape(3, -1) @ inverse) ** 2
    found = of_boxes(boxes, (tree,))
    assert found.squares == pytest.approx(weights.sum(axis=1))
    assert found.largest == pytest.approx(weights.max(axis=1) / weights.sum(axis=1))


@pytest.mark.parametrize(
    ("in_time", "over_cells", "nodes"), [(1.0, 1.0, 1), (0.5, 1.0, 2), (1.0, 0.5, 2), (0.5, 0.25, 8)]
)
def test_weights_are_taken_for_no_more_nodes_than_the_largest_allows(
    in_time: float, over_cells: float, nodes: int
) -> None:
    noise = DiscreteLaplace(1000.0)
    of = Boxes(squares=np.array([4.0]), largest=np.array([over_cells]))
    (half,) = half_widths(noise, InTime(squares=9.0, largest=in_time, weight=None), of, 0.95)
    assert half == pytest.approx(6 * half_width_by_spread(noise, nodes, 0.95))
