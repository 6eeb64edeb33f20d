"""Mutations of one instant, ordered as they can have happened."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transforms.aggregation.linking import UNKNOWN, link
from transforms.common.images import NONE

WALKS = st.lists(st.integers(0, 5), min_size=2, max_size=9)


def linked(edges: list[tuple[int, int]], start: int) -> list[tuple[int, int]]:
    """Return the linked edges of one instant, sorted by content first, as the caller does."""
    edges = sorted(set(edges))
    before, after = (np.array(side) for side in zip(*edges, strict=True))
    zeros = np.zeros(len(edges), dtype=np.int64)
    order = link(zeros, before, after, np.full(len(edges), start), zeros.astype(bool))
    return [edges[row] for row in order.tolist()]


def is_path(edges: list[tuple[int, int]]) -> bool:
    return all(left[1] == right[0] for left, right in pairwise(edges))


@given(st.permutations(range(6)), st.integers(1, 5), st.data())
def test_a_walk_without_repeats_is_found_from_any_order(states: list[int], length: int, data: st.DataObject) -> None:
    walk = list(pairwise(states[: length + 1]))

    assert linked(data.draw(st.permutations(walk)), states[0]) == walk
    assert linked(data.draw(st.permutations(walk)), UNKNOWN) == walk  # only one beginning is possible


@given(WALKS, st.data())
def test_a_walk_without_repeated_steps_gives_a_path_between_its_ends(states: list[int], data: st.DataObject) -> None:
    walk = list(dict.fromkeys(pairwise(states)))
    if not is_path(walk):  # a repeated step was dropped, which broke the path
        walk = walk[: next(place for place in range(1, len(walk) + 1) if not is_path(walk[: place + 1]))]

    found = linked(data.draw(st.permutations(walk)), walk[0][0])

    assert is_path(found)
    assert sorted(found) == sorted(walk)
    assert (found[0][0], found[-1][1]) == (walk[0][0], walk[-1][1])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8), st.integers(0, 4))
def test_mutations_that_no_path_links_are_kept(edges: list[tuple[int, int]], start: int) -> None:
    found = linked(edges, start)

    assert sorted(found) == sorted(set(edges))


def test_unreachable_mutations_come_last() -> None:
    assert linked([(5, 6), (6, 4), (1, 2), (2, 3)], 1) == [(1, 2), (2, 3), (5, 6), (6, 4)]  # also a path


def test_a_circle_without_a_known_state_begins_at_the_absent_state() -> None:
    assert linked([(2, NONE), (NONE, 2)], UNKNOWN) == [(NONE, 2), (2, NONE)]


def test_a_circle_begins_at_the_state_before_the_instant() -> None:
    assert linked([(2, NONE), (NONE, 2)], 2) == [(2, NONE), (NONE, 2)]


def test_a_group_begins_where_the_group_above_it_ended() -> None:
    """Two instants of one chain: the circle 1-2-1 and, then the circle 1-3-1, in which 3-1 sorts first."""
    group = np.array([0, 0, 1, 1])
    before, after = np.array([1, 2, 3, 1]), np.array([2, 1, 1, 3])
    start = np.array([1, 1, UNKNOWN, UNKNOWN])

    order = link(group, before, after, start, np.array([False, True, True, True]))

    assert order.tolist() == [0, 1, 3, 2]


def test_groups_of_one_stay_where_they_are() -> None:
    before, after, start = np.array([3, 2, 1]), np.array([1, 3, 2]), np.zeros(3, dtype=np.int64)

    order = link(np.arange(3), before, after, start, start.astype(bool))

    assert order.tolist() == [0, 1, 2]
