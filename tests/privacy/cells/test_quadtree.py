"""Quadtrees: their nodes are boxes, and which settings are refused."""

import numpy as np
import pytest

from privacy.cells.quadtree import Quadtree, quadtree
from tests.privacy.cells.matrices import PRODUCTS, dense, ranges


def test_a_quadtree_is_over_two_keys():
    """Nodes are boxes, one of each layer for each cell; the mean over some boxes is near that over all of them."""
    (tree,) = PRODUCTS[5].axes
    assert isinstance(tree, Quadtree)
    inside = np.ones((tree.matrix.nodes, *tree.shape), dtype=bool)
    for axis, (begin, end) in enumerate(tree.boxes()):
        cells = np.arange(tree.shape[axis]).reshape([-1 if place == axis else 1 for place in range(3)])
        inside &= (begin[:, None, None, None] <= cells) & (cells < end[:, None, None, None])
    assert (inside.reshape(tree.matrix.nodes, -1) * tree.matrix.of_nodes()[:, None] == dense(tree)).all()
    assert all((inside[tree.matrix.layer() == layer].sum(axis=0) == 1).all() for layer in range(tree.matrix.filled))
    inverse = np.linalg.pinv(dense(tree))
    boxes = [np.kron(np.kron(a, b), c) for a in ranges(5) for b in np.eye(2) for c in ranges(7)]
    assert tree.average("cells") == pytest.approx(tree.variances().mean())
    assert tree.average("ranges") == pytest.approx(((np.array(boxes) @ inverse) ** 2).sum(axis=1).mean(), rel=0.3)
    for shape, ordered in (((5,), (True,)), ((5, 5, 5), (True, True, True)), ((5, 5), (True, False))):
        with pytest.raises(ValueError, match="two ordered axes"):
            quadtree(shape, ordered)
    with pytest.raises(ValueError, match="one for each of 3 layers"):
        Quadtree(shape=(4, 3), ordered=(True, True), weights=(1, 1))
