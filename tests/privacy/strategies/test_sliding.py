"""Sliding windows as nodes, compared with sums of slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.series import KINDS, Series
from privacy.strategies.sliding import Sliding
from privacy.strategies.tree.tree import Tree
from tests.privacy.steps import Given, Recorded, exact_nodes, publish, stepped

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))


def slices(sliding: Sliding, windows: int) -> list[slice]:
    """Return the rows of each sliding window, row 0 being the initial level, by counting from the first."""
    found, begin = [], 0
    while begin + sliding.width <= windows:
        found.append(slice(begin + 1, begin + sliding.width + 1))
        begin += sliding.every
    return found


@given(SHAPES, st.integers(0, 30))
def test_nodes_are_the_sliding_windows_in_order(shape, windows):
    sliding = Sliding(width=shape[0], every=shape[1], windows=None)

    nodes = sliding.nodes(windows)

    rows = slices(sliding, windows)
    assert nodes.begin.tolist() == [r.start - 1 for r in rows]
    assert nodes.end.tolist() == [r.stop - 1 for r in rows]
    assert not nodes.layer.any()


@pytest.mark.parametrize(("width", "every"), [(7, 1), (7, 7), (3, 5)])
def test_a_published_number_is_one_noisy_node(width, every):
    sliding = Sliding(width=width, every=every, windows=20)
    series = Series(kind="sliding", width=width, every=every)
    leaves = np.random.default_rng(1).integers(-(1 << 50), 1 << 50, (21, 3))

    nodes, (numbers,), _ = stepped(sliding, leaves, Recorded(3, bits=45), [series], [5, 14])

    np.testing.assert_array_equal(numbers, nodes.astype(float))
    assert sliding.variances(series, 20, since=3).tolist() == [1.0] * len(series.ends(20)[len(series.ends(3)) :])
    assert [w.tolist() for w in sliding.weights(series, 20)] == [[1.0]] * len(numbers)


@pytest.mark.parametrize("width", [7, 30, 90, 365])
def test_a_toggle_touches_as_many_nodes_as_overlap(width):
    """The known figures at rho = 1/2: width for direct windows, less for the best tree from 14 on."""
    sliding = Sliding(width=width, every=1, windows=None)
    nodes = sliding.nodes(3 * width)

    touched = [int(((nodes.begin < window) & (window <= nodes.end)).sum()) for window in range(width, 2 * width)]

    assert set(touched) == {width}
    series = Series(kind="sliding", width=width)
    trees = [Tree(branching=c, height=2, refine="none", windows=None, initial_level=False) for c in range(2, 33)]
    best = min(2 * tree.variances(series, 4 * width).max() for tree in trees)
    assert (best < width) == (width >= 14)


def test_direct_and_derived_sliding_windows_are_the_same_numbers_but_for_noise():
    series = Series(kind="sliding", width=6, every=2)
    leaves = np.random.default_rng(2).integers(-1000, 1000, (31, 4))
    sliding = Sliding(width=6, every=2, windows=30)
    tree = Tree(branching=3, height=3, refine="least_squares", windows=30, initial_level=False)

    both = [publish(s, series, leaves, Given({}, 4)) for s in (sliding, tree)]

    np.testing.assert_array_equal(both[0], both[1])
    assert both[0][3].tolist() == leaves[7:13].sum(axis=0).tolist()


def test_only_its_own_series_is_published():
    sliding = Sliding(width=7, every=2, windows=30)
    others = [Series(kind=kind) for kind in KINDS] + [
        Series(kind="sliding", width=7),
        Series(kind="sliding", width=6, every=2),
    ]
    leaves = np.zeros((31, 1), dtype=np.int64)
    for series in others:
        for ask in (
            lambda s: publish(sliding, s, leaves, Given({}, 1)),
            lambda s: sliding.variances(s, 30),
            lambda s: sliding.weights(s, 30),
        ):
            with pytest.raises(ValueError, match="sliding windows of 7 every 2"):
                ask(series)


def test_impossible_arguments_are_refused():
    sliding = Sliding(width=7, every=2, windows=30)
    assert (sliding.name, sliding.parameters) == ("sliding", {"width": 7, "every": 2})
    with pytest.raises(ValueError, match="31 windows are more than the horizon of 30"):
        sliding.nodes(31)
    with pytest.raises(ValueError, match="31 windows are more than the horizon of 30"):
        exact_nodes(sliding, np.zeros((32, 1), dtype=np.int64))
    for name, wrong in (("width", 0), ("every", 0), ("windows", 6)):
        with pytest.raises(ValueError, match=f"{name}: expected at least"):
            Sliding(**{"width": 7, "every": 2, "windows": 30} | {name: wrong})
