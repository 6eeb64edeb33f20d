"""Weights of mixed strategies, compared with a lower bound."""

import numpy as np

from privacy.cells.layers import Layers
from privacy.cells.mixing import fits, mixed
from privacy.cells.wanted import Wanted
from tests.privacy.cells.matrices import ranges


def test_mixing_has_less_error_than_its_tree_and_approaches_the_lower_bound():
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
