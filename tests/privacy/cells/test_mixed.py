"""Mixed strategies: their corners cover all pairs of columns, and which of them are refused."""

import numpy as np
import pytest

from privacy.cells.mixed import Mixed
from privacy.planning.document import CODEC
from tests.privacy.cells.matrices import MIXED, dense


@pytest.mark.parametrize("apart", [None, 0, 1])
@pytest.mark.parametrize("along", MIXED, ids=str)
def test_corners_of_mixed_strategies_cover_all_pairs_and_the_largest_column_is_reached(along, apart):
    columns, cells = dense(along).T, range(along.cells)
    far = along.cells if apart is None else apart
    for power in (1, 2):
        corners = along.matrix.corners(power, apart)
        assert max(a for a, _, _ in corners) == (columns**power).sum(axis=1).max()
        for a, b in ((columns[a], columns[b]) for a in cells for b in cells if abs(a - b) <= far):
            for x, y in ((1, 1), (1, -1), (0.5, 1), (1, -0.25), (1, 0)):
                parts = abs(x) ** power, abs(y) ** power, abs(x - y) ** power
                bound = max(np.dot(parts, (one - both, other - both, both)) for one, other, both in corners)
                assert (np.abs(x * a - y * b) ** power).sum() <= bound + 1e-9


def test_invalid_mixed_strategies_are_refused_with_the_reason():
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
