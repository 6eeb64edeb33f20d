"""Minimal covers and shortest walks against searches that know nothing of layers."""

import itertools

import numpy as np
import pytest

from privacy.covers import cover, cover_runs, cover_sizes, largest_cover, largest_prefix_cover, walk_runs

FORESTS = list(itertools.product(range(2, 9), range(1, 7)))
WINDOWS = 600
BEGINS, ENDS = (side.astype(np.int64) for side in np.triu_indices(WINDOWS + 1))


def fewest(branching: int, height: int) -> np.ndarray:
    """[begin, end]: fewest complete nodes that tile (begin, end], from left to right."""
    counts = np.full((WINDOWS + 1, WINDOWS + 1), WINDOWS + 1)
    np.fill_diagonal(counts, 0)
    for end in range(1, WINDOWS + 1):
        for span in (branching**layer for layer in range(height)):
            if end % span == 0:
                counts[:, end] = np.minimum(counts[:, end], counts[:, end - span] + 1)
    return counts


@pytest.mark.parametrize(("branching", "height"), FORESTS)
def test_covers_of_every_range_are_minimal_and_the_largest_is_as_stated(branching, height):
    sizes = cover_sizes(BEGINS, ENDS, branching=branching, height=height)

    np.testing.assert_array_equal(sizes, fewest(branching, height)[BEGINS, ENDS])
    short = sizes[branching**height >= ENDS - BEGINS]
    prefixes = sizes[(BEGINS == 0) & (branching**height >= ENDS)]
    assert short.max() <= largest_cover(branching, height)
    assert prefixes.max() <= largest_prefix_cover(branching, height)
    if branching**height <= WINDOWS:
        assert short.max() == largest_cover(branching, height)
        assert prefixes.max() == largest_prefix_cover(branching, height)


@pytest.mark.parametrize(("branching", "height"), FORESTS)
def test_covers_of_every_range_are_exact_and_disjoint(branching, height):
    """From left to right each run begins where the one before it ended."""
    runs = cover_runs(BEGINS, ENDS, branching=branching, height=height)

    at = BEGINS
    for layer, side in [(i, 0) for i in range(height)] + [(i, 1) for i in reversed(range(height))]:
        first, last = runs.first[layer, side], runs.last[layer, side]
        assert (first <= last).all()
        some = first < last
        np.testing.assert_array_equal(at[some], first[some] * branching**layer)
        at = np.where(some, last * branching**layer, at)
    np.testing.assert_array_equal(at, ENDS)


@pytest.mark.parametrize(("branching", "height"), [(2, 1), (2, 4), (3, 3), (5, 2)])
def test_the_list_of_nodes_is_that_of_the_runs(branching, height):
    for begin, end in itertools.combinations_with_replacement(range(70), 2):
        nodes = cover(begin, end, branching=branching, height=height)

        windows = [w for i, j in nodes for w in range(j * branching**i, (j + 1) * branching**i)]
        assert windows == list(range(begin, end))
        assert [len(nodes)] == cover_sizes(np.array([begin]), np.array([end]), branching=branching, height=height)


def test_the_papers_bound_is_reached_by_two_leaves_alone():
    for branching, height in FORESTS:
        paper = 2 * (branching - 1) * height
        assert largest_cover(branching, height) <= paper
        assert (largest_cover(branching, height) == paper) == ((branching, height) == (2, 1))
    assert [largest_cover(*forest) for forest in ((8, 3), (16, 2), (2, 2), (2, 9))] == [34, 44, 3, 16]


def test_within_one_tree_only_the_smallest_has_a_smaller_largest_cover():
    for branching, height in FORESTS:
        leaves = branching**height
        if leaves > WINDOWS:
            continue
        inside = leaves >= ENDS
        largest = cover_sizes(BEGINS[inside], ENDS[inside], branching=branching, height=height).max()
        assert largest == (2 if (branching, height) == (2, 2) else largest_cover(branching, height))


def steps(branching: int, height: int, windows: int, *, cut: bool) -> set[tuple[int, int]]:
    """All nodes as (begin, end)."""
    spans = [branching**layer for layer in range(height)]
    nodes = {(begin, begin + span) for span in spans for begin in range(0, windows, span)}
    return {(begin, min(end, windows)) for begin, end in nodes if cut or end <= windows}


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(
    ("branching", "height", "windows"),
    [(2, 1, 9), (2, 4, 16), (2, 5, 45), (3, 3, 50), (4, 3, 64), (5, 3, 61), (8, 2, 60), (6, 2, 35), (2, 9, 40)],
)
def test_walks_are_as_short_as_any(branching, height, windows, cut):
    """Against all-pairs shortest paths over the nodes, taken either way."""
    distance = np.full((windows + 1, windows + 1), 10**6)
    np.fill_diagonal(distance, 0)
    nodes = steps(branching, height, windows, cut=cut)
    for begin, end in nodes:
        distance[begin, end] = distance[end, begin] = 1
    for via in range(windows + 1):
        distance = np.minimum(distance, distance[:, [via]] + distance[[via]])
    begins, ends = np.triu_indices(windows + 1)
    counts = [-(-windows // branching**i) if cut else windows // branching**i for i in range(height)]

    runs = walk_runs(begins, ends, branching=branching, nodes=counts)

    np.testing.assert_array_equal(runs.sizes.sum(axis=0), distance[begins, ends])
    total = np.zeros((len(begins), windows), dtype=int)
    for layer, side in itertools.product(range(height), (0, 1)):
        boundaries = [np.minimum(end[layer, side] * branching**layer, windows) for end in (runs.first, runs.last)]
        for sign, at in zip((-1, 1), boundaries, strict=True):
            total += sign * (np.arange(windows) < at[:, None])
        assert (np.maximum(runs.first, runs.last)[layer] <= counts[layer]).all()
    window = np.arange(windows)
    np.testing.assert_array_equal(total, (begins[:, None] <= window) & (window < ends[:, None]))


def test_covers_refuse_what_is_no_range():
    with pytest.raises(ValueError, match="end=2 must be at least 3"):
        cover(3, 2, branching=2, height=2)
    with pytest.raises(ValueError, match="branching=1"):
        cover(0, 2, branching=1, height=2)
    with pytest.raises(ValueError, match="height=0"):
        largest_cover(2, 0)
