"""Hierarchies: nodes, variances and weights, compared with dense matrices. Least squares: test_product.py."""

import numpy as np
import pytest

from privacy.cells.hierarchy import hierarchy
from privacy.cells.nested import Nested, error
from tests.privacy.cells.matrices import dense

CHILDREN = ((2, 1, 3), (1, 2), (2,))
TREE = Nested(children=CHILDREN, weights=(2, 3, 0, 1))


def sums_of_layers(tree: Nested) -> list[np.ndarray]:
    """Return the matrix [nodes, cells] of each layer of a hierarchy."""
    return [np.eye(len(sizes)).repeat(sizes, axis=1) for sizes in tree.sizes()]


def test_nodes_are_the_weighted_sums_of_the_layers_with_a_weight():
    ((begins, ends),) = TREE.boxes()
    cells = np.arange(TREE.cells)
    inside = (begins[:, None] <= cells) & (cells < ends[:, None])
    assert (dense(TREE) == inside * TREE.matrix.of_nodes()[:, None]).all()
    weighted = [w * m for w, m in zip(TREE.weights, sums_of_layers(TREE), strict=True) if w]
    assert (dense(TREE) == np.concatenate(weighted)).all()
    assert TREE.matrix.layer().tolist() == [0] * 6 + [1] * 3 + [3]


def test_variances_of_all_layers_are_exact_also_of_those_without_noise():
    matrix = dense(TREE)
    covariance = np.linalg.inv(matrix.T @ matrix)
    expected = [np.diag(sums @ covariance @ sums.T) for sums in sums_of_layers(TREE)]
    for layer in range(4):
        assert TREE.of_layer(layer) == pytest.approx(expected[layer])
    means = [each.mean() for each in expected]
    assert TREE.average("cells") == pytest.approx((means[0] + np.mean(means[1:])) / 2)


@pytest.mark.slow
@pytest.mark.parametrize(("power", "changes"), [(1, 5), (2, 5)])
def test_no_random_weights_are_much_better(power, changes):
    """At most 1 %, for 1,000 random weights, some of them almost 0."""
    counts = np.array([6, 3, 2, 1])
    charge = 1 + 2 * (changes - 1) * (counts > 1)

    def cost(weights: np.ndarray) -> float:
        moved = max(float(charge @ weights**power), changes * float((weights**power).sum()))
        return moved ** (2 // power) * error(CHILDREN, tuple((weights**2).tolist()))

    found = cost(np.array(hierarchy(CHILDREN, power, changes).weights, dtype=float))
    random = np.exp(np.random.default_rng(2).normal(scale=1.5, size=(1000, 4)))
    assert found <= 1.01 * min(map(cost, random))


@pytest.mark.parametrize(
    ("children", "weights", "message"),
    [
        ((), (1,), "at least one layer"),
        (((2, 0),), (1, 1), "at least one node below each"),
        (((2, 1), (3,)), (1, 1, 1), "3 nodes below instead of 2"),
        (((2, 1), (2,)), (0, 1, 1), "cells above 0"),
        (((2, 1), (2,)), (1, 1), "each of 3 layers"),
    ],
)
def test_partitions_that_are_not_nested_are_refused(children, weights, message):
    with pytest.raises(ValueError, match=message):
        Nested(children=children, weights=weights)


def test_a_hierarchy_has_no_order():
    with pytest.raises(ValueError, match="no order"):
        TREE.average("ranges")
