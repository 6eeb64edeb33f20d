"""Weighted marginals: their blocks. Estimates and sums of them: test_product.py."""

import itertools

import numpy as np
import pytest

from privacy.cells.intersections import intersections
from privacy.cells.marginals import Marginals
from tests.privacy.cells.matrices import dense

TABLE = Marginals(shape=(3, 4, 2), kept=((0, 1, 2), (0, 1), (1, 2), ()), weights=(2, 3, 1, 4))


def test_each_block_is_a_partition_and_its_nodes_are_boxes():
    inside = np.ones((TABLE.matrix.nodes, *TABLE.shape), dtype=bool)
    for axis, (begin, end) in enumerate(TABLE.boxes()):
        cells = np.arange(TABLE.shape[axis]).reshape([-1 if place == axis else 1 for place in range(3)])
        inside &= (begin[:, None, None, None] <= cells) & (cells < end[:, None, None, None])
    assert (inside.reshape(TABLE.matrix.nodes, -1) * TABLE.matrix.of_nodes()[:, None] == dense(TABLE)).all()
    assert all((inside[TABLE.matrix.layer() == block].sum(axis=0) == 1).all() for block in range(len(TABLE.kept)))


def test_intersections_are_those_of_all_subsets_of_blocks():
    blocks = [(0, 1, 2, 3), (0, 1, 2), (1, 2, 3), (0, 3), (2,)]
    expected = {
        tuple(sorted(set.intersection(*map(set, some))))
        for size in range(1, 6)
        for some in itertools.combinations(blocks, size)
    }
    assert set(intersections(blocks)) == expected
    assert len(intersections(blocks)) == len(expected)


@pytest.mark.parametrize(
    ("kept", "weights", "message"),
    [
        (((0,), (0, 1)), (1, 1), "all axes first"),
        (((0, 1), (0,), (0,)), (1, 1, 1), "each block once"),
        (((0, 1), (2,)), (1, 1), "numbers of axes below 2"),
        (((0, 1), (0,)), (1, 0), "one above 0"),
        (((0, 1), (0,)), (1,), "each of 2 blocks"),
    ],
)
def test_blocks_that_are_no_marginals_are_refused(kept, weights, message):
    with pytest.raises(ValueError, match=message):
        Marginals(shape=(2, 3), kept=kept, weights=weights)


def test_marginals_have_no_order():
    with pytest.raises(ValueError, match="no order"):
        TABLE.average("ranges")
