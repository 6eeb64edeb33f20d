"""Minimal covers and shortest walks, compared with searches that do not use layers."""

import itertools

import numpy as np
import pytest

from privacy.strategies.tree.covers import cover_runs, walk_runs
from tests.paper import cover_nodes_claimed, exact_nodes

FORESTS = list(itertools.product(range(2, 9), range(1, 7)))
WINDOWS = 600
BEGINS, ENDS = (side.astype(np.int64) for side in np.triu_indices(WINDOWS + 1))


def cover_sizes(begins: np.ndarray, ends: np.ndarray, *, branching: int, height: int) -> np.ndarray:
    return cover_runs(begins, ends, branching=branching, height=height).sizes.sum(axis=0)


def fewest(branching: int, height: int) -> np.ndarray:
    """Return, at [begin, end], the fewest complete nodes that tile (begin, end], from left to right."""
    counts = np.full((WINDOWS + 1, WINDOWS + 1), WINDOWS + 1)
    np.fill_diagonal(counts, 0)
    for end in range(1, WINDOWS + 1):
        for span in (branching**layer for layer in range(height)):
            if end % span == 0:
                counts[:, end] = np.minimum(counts[:, end], counts[:, end - span] + 1)
    return counts


@pytest.mark.slow
@pytest.mark.few(17)
@pytest.mark.parametrize(("branching", "height"), FORESTS)
def test_covers_of_every_range_are_minimal_and_the_largest_is_as_stated(branching, height):
    sizes = cover_sizes(BEGINS, ENDS, branching=branching, height=height)

    np.testing.assert_array_equal(sizes, fewest(branching, height)[BEGINS, ENDS])
    short = sizes[branching**height >= ENDS - BEGINS]
    prefixes = sizes[(BEGINS == 0) & (branching**height >= ENDS)]
    largest = exact_nodes(branching, height)
    largest_prefix = branching if height == 1 else (branching - 1) * height
    assert short.max() <= largest
    assert prefixes.max() <= largest_prefix
    if branching**height <= WINDOWS:
        assert short.max() == largest
        assert prefixes.max() == largest_prefix


@pytest.mark.slow
@pytest.mark.few(17)
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


def test_the_papers_bound_is_reached_by_two_leaves_alone():
    for forest in FORESTS:
        assert exact_nodes(*forest) <= cover_nodes_claimed(*forest)
        assert (exact_nodes(*forest) == cover_nodes_claimed(*forest)) == (forest == (2, 1))


def test_within_one_tree_only_the_smallest_has_a_smaller_largest_cover():
    for branching, height in FORESTS:
        leaves = branching**height
        if leaves > WINDOWS:
            continue
        inside = leaves >= ENDS
        largest = cover_sizes(BEGINS[inside], ENDS[inside], branching=branching, height=height).max()
        assert largest == (2 if (branching, height) == (2, 2) else exact_nodes(branching, height))


def steps(branching: int, height: int, windows: int, *, cut: bool) -> set[tuple[int, int]]:
    """Return all nodes as (begin, end)."""
    spans = [branching**layer for layer in range(height)]
    nodes = {(begin, begin + span) for span in spans for begin in range(0, windows, span)}
    return {(begin, min(end, windows)) for begin, end in nodes if cut or end <= windows}


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(
    ("branching", "height", "windows"),
    [(2, 1, 9), (2, 4, 16), (2, 5, 45), (3, 3, 50), (4, 3, 64), (5, 3, 61), (8, 2, 60), (6, 2, 35), (2, 9, 40)],
)
def test_walks_are_as_short_as_any(branching, height, windows, cut):
    """Compared with all-pairs shortest paths over the nodes, in either direction."""
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


def test_covers_refuse_an_invalid_forest():
    for wrong in ({"branching": 1, "height": 2}, {"branching": 2, "height": 0}):
        with pytest.raises(ValueError, match="expected at least"):
            cover_runs(BEGINS, ENDS, **wrong)
