"""Layers of sums: which sizes and weights are invalid."""

import pytest

from privacy.cells.layers import Layers


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
def test_invalid_layers_are_refused(sizes, weights):
    with pytest.raises(ValueError, match=r"sizes=|weights=|weights: expected"):
        Layers(cells=8, sizes=sizes, weights=weights)
