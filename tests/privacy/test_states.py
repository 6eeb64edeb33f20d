"""Sizes of sets of states, compared with all pairs of their ends."""

from itertools import product

import numpy as np
import pytest

from privacy.cells.layers import Layers
from privacy.cells.prefixes import Prefixes
from privacy.cells.product import Product
from privacy.measure import Component
from privacy.states import apart_in_l1, apart_in_l2_squared, in_l1, in_l2_squared, near_in_l1, near_in_l2_squared


def component(low: int, high: int) -> Component:
    return Component(name="sum", grid=1.0, low=low, high=high)


COMPONENTS = [(component(low, high),) for low, high in ((1, 1), (-4, 4), (-1, 4), (2, 4), (-4, -2))]
COMPONENTS += [(component(1, 1), component(-3, 3)), (component(-2, 4), component(0, 8), component(1, 1))]
OVER = [None, Product(axes=(Layers(cells=3, sizes=(1, 3), weights=(1, 2)),)), Product(axes=(Prefixes(cells=3),))]


def states(components: tuple[Component, ...], columns: np.ndarray) -> np.ndarray:
    """Return all states whose values are ends, [states, components x nodes]."""
    ends = [[end / c.largest for end in (c.low, c.high)] for c in components]
    return np.array([np.outer(values, column).ravel() for column in columns for values in product(*ends)])


@pytest.mark.few(17)
@pytest.mark.parametrize("over", OVER, ids=str)
@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize("components", COMPONENTS, ids=str)
def test_sizes_are_those_of_the_farthest_states(components, cells, over):
    if over is not None and cells != over.cells:
        return
    columns = np.eye(cells) if over is None else over.spread(np.eye(cells, dtype=np.int64))
    each = states(components, columns)
    for power, sizes in ((1, in_l1), (2, in_l2_squared)):
        found = sizes(components, cells, () if over is None else over.corners(power))
        radius = (np.abs(each) ** power).sum(axis=1).max()
        apart = (np.abs(each[:, None] - each) ** power).sum(axis=2).max()
        assert (float(found.radius), float(found.diameter)) == pytest.approx((radius, max(radius, apart)))
        hulls = [(max(0, c.high) - min(0, c.low)) / c.largest for c in components] if cells == 1 else []
        assert [float(hull) for hull in found.hulls] == pytest.approx([hull**power for hull in hulls])
        assert found.squared == (power == 2)


@pytest.mark.few(17)
@pytest.mark.parametrize("entries", [1, 3])
@pytest.mark.parametrize("over", OVER, ids=str)
@pytest.mark.parametrize("components", COMPONENTS, ids=str)
def test_differences_of_courses_change_their_sign(components, over, entries):
    """All entries that are present at once, of one course, or each moved to a near cell."""
    cells = 3
    columns = np.eye(cells) if over is None else over.spread(np.eye(cells, dtype=np.int64))
    moved = [columns[a] - columns[b] for a in range(cells) for b in range(cells) if abs(a - b) <= 1]
    for power, apart, near in ((1, apart_in_l1, near_in_l1), (2, apart_in_l2_squared, near_in_l2_squared)):
        corners = () if over is None else over.corners(power)
        there = apart_in_l1(components, cells, entries, corners) if power == 1 else apart(components, entries, corners)
        found = [(there, columns)]
        if over is not None:
            found.append((near(components, entries, over.corners(power, (1,))), np.array(moved)))
        for sizes, of in found:
            radius = (np.abs(entries * states(components, of)) ** power).sum(axis=1).max()
            assert (float(sizes.radius), float(sizes.diameter)) == pytest.approx((radius, 2**power * radius))
            assert set(map(float, sizes.hulls)) <= {float(sizes.diameter)}
            assert sizes.squared == (power == 2)
