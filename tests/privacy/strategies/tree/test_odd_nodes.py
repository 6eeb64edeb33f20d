"""The most odd nodes, compared with every set of toggles of small forests and with a search in large ones."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.strategies.tree import odd_nodes
from privacy.strategies.tree.odd_nodes import layer_sizes, most_odd, most_odd_within
from tests.searches import examples


def count_odd(toggled: np.ndarray, *, branching: int, height: int) -> np.ndarray:
    """Return the number of odd nodes of each set of toggles, [sets]; `toggled` is [sets, windows] of 0 and 1."""
    odd = np.zeros(len(toggled), dtype=np.int64)
    for layer in range(height):
        size = branching**layer
        for start in range(0, toggled.shape[1] - size + 1, size):
            odd += toggled[:, start : start + size].sum(axis=1) % 2
    return odd


def all_sets(windows: int) -> np.ndarray:
    return (np.arange(1 << windows)[:, None] >> np.arange(windows)) & 1


FORESTS = [(c, h, n) for c, h in [(2, 1), (2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (4, 2), (5, 2)] for n in range(1, 13)]


@pytest.mark.few(27)
@pytest.mark.parametrize(("branching", "height", "windows"), [*FORESTS, (2, 4, 16), (2, 5, 15), (3, 3, 14), (4, 2, 15)])
def test_every_set_of_toggles_of_a_small_forest(branching, height, windows):
    shape = {"branching": branching, "height": height, "windows": windows}
    sets = all_sets(windows)
    odd = count_odd(sets, branching=branching, height=height)
    toggles = sets.sum(axis=1)

    # As many changes as windows, and more.
    found = most_odd(windows + 3, **shape)
    assert list(found) == [odd[toggles <= j].max() for j in range(windows + 1)]
    for k in range(windows):
        assert list(most_odd(k, **shape)) == list(found[: k + 1])

    between = np.where(toggles > 0, windows - np.argmax(sets[:, ::-1], axis=1) - np.argmax(sets, axis=1), 0)
    for span in range(1, windows + 2):
        assert most_odd_within(span, **shape) == odd[between <= span].max()


@pytest.mark.parametrize(("branching", "height", "windows"), [(2, 3, 7), (3, 2, 7), (2, 2, 6)])
def test_no_trajectory_between_0_and_1_has_larger_norms(branching, height, windows):
    """Every path over the levels 0, 1/2 and 1: half-way levels never help."""
    levels = np.array(list(itertools.product((0, 1, 2), repeat=windows)))
    changes = np.diff(levels, axis=1, prepend=0)
    l1, l2 = np.zeros(len(levels)), np.zeros(len(levels))
    for layer in range(height):
        size = branching**layer
        for start in range(0, windows - size + 1, size):
            node = np.abs(changes[:, start : start + size].sum(axis=1)) / 2
            l1, l2 = l1 + node, l2 + node**2
    used = np.count_nonzero(changes, axis=1)

    bound = most_odd(windows, branching=branching, height=height, windows=windows)
    for k in range(windows + 1):
        assert l1[used <= k].max() == l2[used <= k].max() == bound[k]


def search_at_places(span: int, places: range, *, branching: int, height: int) -> int:
    """Return every set of toggles in `span` leaves that begin at one of `places`, in a forest without end."""
    sets = all_sets(span)
    best = 0
    for start in places:
        odd = np.zeros(len(sets), dtype=np.int64)
        for layer in range(height):
            node = (start + np.arange(span)) // branching**layer
            for which in np.unique(node):
                odd += sets[:, node == which].sum(axis=1) % 2
        best = max(best, int(odd.max()))
    return best


@pytest.mark.slow
@pytest.mark.parametrize(
    ("branching", "height"), [(2, 1), (2, 2), (2, 3), (2, 4), (2, 5), (2, 6), (3, 2), (3, 3), (3, 4), (4, 3), (7, 2)]
)
def test_every_set_of_toggles_of_a_span_without_end(branching, height):
    top = branching ** (height - 1)
    for span in range(1, 10):
        expected = search_at_places(span, range(top), branching=branching, height=height)

        assert most_odd_within(span, branching=branching, height=height, windows=None) == expected
        # Two whole top nodes on either side of a border are equivalent to a forest without end.
        if span <= top:
            assert most_odd_within(span, branching=branching, height=height, windows=2 * top) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("branching", "height", "windows"), [(2, 3, 11), (2, 4, 15), (3, 3, 13), (4, 2, 7), (5, 1, 4)])
def test_every_set_of_toggles_at_each_place_of_a_span(branching, height, windows):
    sets = all_sets(windows)
    odd = count_odd(sets, branching=branching, height=height)
    layers = len([i for i in range(height) if branching**i <= windows])
    for span in range(1, windows + 1):
        for start in range(windows - span + 1):
            inside = ~sets[:, [i for i in range(windows) if not start <= i < start + span]].any(axis=1)

            found = odd_nodes._at_best(span, range(start, start + 1), branching, layers, windows)
            assert found == odd[inside].max()


@given(
    branching=st.integers(2, 6),
    height=st.integers(1, 5),
    windows=st.integers(1, 400),
    span=st.integers(1, 450),
)
@examples(38)
def test_a_span_is_a_maximum_over_all_its_places(branching, height, windows, span):
    """The places that are left out never matter: shifted ones, and those under one node."""
    layers = [i for i in range(height) if branching**i <= windows]
    span = min(span, windows)
    everywhere = odd_nodes._at_best(span, range(windows - span + 1), branching, len(layers), windows)

    assert most_odd_within(span, branching=branching, height=height, windows=windows) == everywhere


@pytest.mark.parametrize(("branching", "height", "windows"), [(2, 9, 365), (3, 6, 365), (10, 3, 1024), (16, 3, 700)])
def test_a_span_of_all_windows_is_no_bound_on_time(branching, height, windows):
    """Two programmes for one number: all toggles, by count and by place."""
    shape = {"branching": branching, "height": height, "windows": windows}

    assert most_odd_within(windows, **shape) == most_odd(windows, **shape)[-1]


# Windows, branching: M(1), M(2), M(4), M(8) of the tree whose h = ceil(log_c(windows)) layers hold all prefixes.
TABLE = {
    (365, 2): (9, 16, 30, 53),
    (365, 4): (5, 9, 17, 29),
    (365, 8): (3, 6, 12, 21),
    (365, 16): (3, 5, 9, 17),
    (1024, 2): (10, 20, 36, 66),
    (1024, 4): (5, 10, 20, 36),
    (1024, 8): (4, 8, 14, 26),
    (1024, 16): (3, 6, 12, 20),
    (4096, 2): (12, 24, 44, 82),
    (4096, 4): (6, 12, 24, 44),
    (4096, 8): (4, 8, 16, 32),
    (4096, 16): (3, 6, 12, 24),
}


def layers_for(windows: int, branching: int) -> int:
    return next(h for h in itertools.count(1) if branching**h >= windows)


@pytest.mark.parametrize(("windows", "branching"), TABLE)
def test_the_known_numbers_are_reproduced(windows, branching):
    found = most_odd(8, branching=branching, height=layers_for(windows, branching), windows=windows)

    assert tuple(found[k] for k in (1, 2, 4, 8)) == TABLE[windows, branching]


def test_the_known_number_for_time_bounded_entries_comes_out():
    # 30 windows of time meet 31 leaves; of the 72 nodes that they meet, 52 can be odd.
    assert most_odd_within(31, branching=2, height=9, windows=None) == 52
    assert most_odd_within(31, branching=2, height=9, windows=1 << 9) == 52


def local_search(k: int, *, branching: int, height: int, windows: int, seed: int) -> int:
    """Return a set of k toggles that no move of one toggle improves, from a random start."""
    shape = {"branching": branching, "height": height}
    leaves = np.random.default_rng(seed).choice(windows, k, replace=False).tolist()
    best = 0
    while True:
        start = best
        for which in range(k):
            rest = leaves[:which] + leaves[which + 1 :]
            odd = np.zeros(windows, dtype=np.int64)
            for layer in range(height):
                node = np.arange(windows) // branching**layer
                parity = np.zeros(node[-1] + 1, dtype=np.int64)
                for leaf in rest:
                    parity[leaf // branching**layer] ^= 1
                whole = np.arange(node[-1] + 1) < windows // branching**layer
                # One more toggle turns the parity of the node that contains it.
                odd += parity[whole].sum() + whole[node] * (1 - 2 * parity[node])
            odd[rest] = 0  # a second toggle of a leaf does not count
            leaves[which] = int(odd.argmax())
            best = max(best, int(odd.max()))
        if best == start:
            toggled = np.zeros((1, windows), dtype=np.int64)
            toggled[0, leaves] = 1
            assert count_odd(toggled, **shape)[0] == best
            return best


@pytest.mark.slow
@pytest.mark.few(7)
@pytest.mark.parametrize(("branching", "height"), [(2, 10), (4, 5), (5, 4), (16, 3)])
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_a_search_at_1024_windows_never_exceeds_and_reaches(branching, height, k):
    bound = most_odd(k, branching=branching, height=height, windows=1024)[-1]
    found = [local_search(k, branching=branching, height=height, windows=1024, seed=seed) for seed in range(8)]

    assert max(found) <= bound
    if k <= 4:
        assert max(found) == bound


@pytest.mark.parametrize("height", [1, 7])
def test_without_end_every_change_costs_a_node_of_each_layer(height):
    found = most_odd(10**9, branching=3, height=height, windows=None)

    assert (len(found), found[0], found[1], found[-1]) == (10**9 + 1, 0, height, height * 10**9)
    # The same holds with as many top nodes as changes.
    assert list(most_odd(5, branching=3, height=height, windows=5 * 3 ** (height - 1))) == list(found[:6])


@pytest.mark.parametrize(("branching", "height", "windows"), [(2, 12, 4096), (2, 5, 4100), (3, 6, 3000), (8, 4, 2500)])
def test_more_changes_than_can_be_computed_are_bounded_from_above(branching, height, windows):
    shape = {"branching": branching, "height": height, "windows": windows}
    bound = most_odd(10**9, **shape)

    assert len(bound) == windows + 1
    assert list(bound) == sorted(bound)
    exact = most_odd(odd_nodes.MOST_EXACT, **shape)
    assert all(b >= e for b, e in zip(bound, exact, strict=False))
    # At the end it is within one node of a pair of layers of what all toggles reach.
    most = most_odd_within(windows, **shape)
    assert most <= bound[-1] <= 1.01 * most


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("branching", "height", "windows", "span"),
    [(2, 18, 200_000, 300), (2, 18, 200_000, 70_000), (2, 18, None, 70_000), (2, 19, 300_000, 132_000)],
)
def test_more_places_than_can_be_tried_are_bounded_from_above(monkeypatch, branching, height, windows, span):
    shape = {"branching": branching, "height": height, "windows": windows}
    bound = most_odd_within.__wrapped__(span, **shape)
    monkeypatch.setattr(odd_nodes, "MOST_STARTS", 1 << 20)
    exact = most_odd_within.__wrapped__(span, **shape)

    generic = sum(-(-(span - 1) // branching**i) + 1 for i in range(height))
    assert exact <= bound <= generic
    assert bound < 2 * exact


def test_tall_trees_and_long_spans_do_not_overflow():
    assert most_odd_within(1, branching=32, height=60, windows=None) == 60
    assert most_odd_within(2, branching=32, height=60, windows=None) == 120
    assert most_odd_within(10**9, branching=32, height=60, windows=10) == 10


@pytest.mark.parametrize(
    ("windows", "branching", "height", "k", "expected"), [(1024, 2, 10, 8, 130), (12, 2, 3, 3, 15)]
)
def test_a_histograms_moves_touch_every_layer_apart(windows, branching, height, k, expected):
    """2 min(k, N_i) - 1 per layer: the first touched node holds the insertion. Reached by moves to new bins."""
    sizes = layer_sizes(branching, height, windows)
    assert sum(2 * min(k, size) - 1 for size in sizes) == expected

    # One leaf under each top node, then under each node of the next layer, and so on: k leaves in the end.
    leaves: list[int] = []
    for layer in reversed(range(height)):
        size = branching**layer
        taken = {leaf // size for leaf in leaves}
        leaves += [node * size for node in range(windows // size) if node not in taken][: k - len(leaves)]
    bins = np.zeros((windows + 1, k + 1))
    for number, leaf in enumerate(sorted(leaves)):
        bins[leaf + 1 :] = 0
        bins[leaf + 1 :, number] = 1
    reached = sum(
        np.abs(bins[(node + 1) * branching**i] - bins[node * branching**i]).sum()
        for i in range(height)
        for node in range(windows // branching**i)
    )
    assert reached == expected


def test_layers_that_do_not_fit_have_no_nodes():
    assert layer_sizes(2, 5, 13) == [13, 6, 3, 1, 0]
    assert layer_sizes(3, 2, None) == [math.inf, math.inf]
    assert most_odd(4, branching=2, height=40, windows=13) == most_odd(4, branching=2, height=4, windows=13)
    assert most_odd_within(7, branching=2, height=40, windows=13) == most_odd_within(
        7, branching=2, height=4, windows=13
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"branching": 1}, "branching: expected at least 2, not 1"),
        ({"height": 0}, "height: expected at least 1, not 0"),
        ({"windows": 0}, "windows: expected at least 1, not 0"),
    ],
)
def test_an_invalid_forest_is_refused(wrong, message):
    shape = {"branching": 2, "height": 3, "windows": 10} | wrong
    with pytest.raises(ValueError, match=message):
        most_odd(1, **shape)
    with pytest.raises(ValueError, match=message):
        most_odd_within(1, **shape)


def test_spans_below_one_and_negative_numbers_of_changes_are_refused():
    with pytest.raises(ValueError, match="k: expected at least 0, not -1"):
        most_odd(-1, branching=2, height=3, windows=None)
    with pytest.raises(ValueError, match="span: expected at least 1, not 0"):
        most_odd_within(0, branching=2, height=3, windows=None)
