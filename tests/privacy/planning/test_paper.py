"""The paper's statements compared with counting: where they fail, and that the corrected ones hold and are reached."""

import itertools
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privacy.strategies.tree.odd_nodes import most_odd
from tests import paper


@pytest.mark.parametrize(
    ("span", "branching", "height", "claimed", "corrected", "telescoped"),
    [
        (1, 2, 3, 4.75, 6, 6),
        (1, 2, 10, 12 - 2**-9, 20, 20),
        (1, 2, 9, 11 - 2**-8, 18, 18),
        (30, 2, 9, 69 - 30 / 256, 72, 52),
    ],
)
def test_theorem_4_3_drops_a_ceiling(span, branching, height, claimed, corrected, telescoped):
    shape = {"branching": branching, "height": height}

    assert paper.time_bounded_nodes_claimed(span, 1, **shape) == pytest.approx(claimed, rel=1e-12)
    assert paper.time_bounded_nodes(span, 1, **shape) == corrected
    assert paper.time_bounded_odd_nodes(span, 1, **shape) == telescoped


SHAPES = {"branching": st.integers(2, 5), "height": st.integers(1, 4)}


@given(span=st.integers(0, 200), window=st.integers(1, 9), **SHAPES)
@example(span=8, window=2, branching=2, height=3)
def test_the_corrected_theorem_4_3_is_the_most_that_a_span_meets(span, window, branching, height):
    def nodes_met(start: int) -> int:
        lengths = [window * branching**layer for layer in range(height)]
        return sum((start + span) // length - start // length + 1 for length in lengths)

    shape = {"branching": branching, "height": height}
    corrected = paper.time_bounded_nodes(span, window, **shape)
    assert corrected == max(map(nodes_met, range(window * branching ** (height - 1))))

    claimed = paper.time_bounded_nodes_claimed(span, window, **shape)
    if math.ceil(span / window) % branching ** (height - 1) == 0:
        assert claimed == pytest.approx(corrected)
    else:
        assert claimed < corrected - 1e-6


@given(span=st.integers(0, 60), window=st.integers(1, 5), **SHAPES)
def test_telescoping_never_counts_more_and_often_less(span, window, branching, height):
    shape = {"branching": branching, "height": height}
    telescoped = paper.time_bounded_odd_nodes(span, window, **shape)

    assert telescoped <= paper.time_bounded_nodes(span, window, **shape)
    # One toggle for each window that is met is one way to bound it, and a single toggle is possible.
    met = math.ceil(span / window) + 1
    assert height <= telescoped <= most_odd(met, windows=None, **shape)[-1]


@pytest.mark.parametrize(
    ("ends", "span", "truth", "claimed"), [([1, 2, 3], 10, 3, 0), ([0, 10, 11, 12, 13], 9, 4, 2), ([12], 13, 1, 0)]
)
def test_most_span_is_correct_where_the_papers_code_is_not(ends, span, truth, claimed):
    assert paper.most_span(ends, span) == truth > claimed


@given(steps=st.lists(st.integers(1, 12), min_size=1, max_size=9), span=st.integers(0, 40))
@example(steps=[3, 1, 1], span=0)
def test_most_span_is_the_most_ranges_that_any_start_meets(steps, span):
    ends = list(itertools.accumulate(steps, initial=-7))[1:]
    begins = [-math.inf, *ends[:-1]]

    # Starts are all integers and the middles between them: the ends are integers, so there are no other cases.
    starts = [half / 2 for half in range(2 * (ends[0] - span) - 4, 2 * ends[-1] + 1)]
    met = max(
        sum(start <= end and start + span > begin for begin, end in zip(begins, ends, strict=True)) for start in starts
    )

    assert paper.most_span(ends, span) == met


@pytest.mark.parametrize(
    ("ends", "span", "message"),
    [
        ([], 3, "number of ends: expected at least 1, not 0"),
        ([1], -1, "span: expected at least 0, not -1"),
        ([1, 1], 3, "ends must increase"),
    ],
)
def test_invalid_ranges_are_refused(ends, span, message):
    with pytest.raises(ValueError, match=message):
        paper.most_span(ends, span)


def fewest_nodes(first: int, last: int, branching: int, height: int) -> int:
    """Return the length of a shortest path from `first` to `last` over nodes of the forest."""
    fewest = [0] + [last] * (last - first)
    for here in range(first, last):
        for layer in range(height):
            size = branching**layer
            if here % size == 0 and here + size <= last:
                there = here + size - first
                fewest[there] = min(fewest[there], fewest[here - first] + 1)
    return fewest[-1]


@pytest.mark.parametrize(
    ("branching", "height"), [(2, 1), (2, 2), (2, 3), (2, 4), (2, 5), (3, 1), (3, 2), (3, 3), (3, 4), (4, 3), (8, 2)]
)
def test_theorem_4_4_is_not_reached_from_two_layers_on(branching, height):
    most_windows = branching**height
    most = max(
        fewest_nodes(first, first + length, branching, height)
        for first in range(branching ** (height - 1))
        for length in range(1, most_windows + 1)
    )

    assert paper.exact_nodes(branching, height) == most
    claimed = paper.cover_nodes_claimed(branching, height)
    assert most < claimed if height > 1 else most <= claimed
    # Where the worst range lies.
    last = 5 if branching == height == 2 else most_windows - 1
    if height > 1:
        assert fewest_nodes(1, last, branching, height) == most


@pytest.mark.parametrize(
    ("branching", "height", "exact", "claimed"), [(8, 3, 34, 42), (16, 2, 44, 60), (2, 2, 3, 4), (5, 1, 5, 8)]
)
def test_known_cover_sizes(branching, height, exact, claimed):
    assert paper.exact_nodes(branching, height) == exact
    assert paper.cover_nodes_claimed(branching, height) == claimed


@given(leaves=st.integers(1, 10**18), branching=st.integers(2, 40))
@example(leaves=1, branching=2)
@example(leaves=5**20, branching=5)  # where logarithms of floats go wrong
def test_the_least_height_covers_the_window_and_is_never_0(leaves, branching):
    height = paper.least_height(leaves, branching)

    assert branching**height >= leaves
    assert height == 1 or branching ** (height - 1) < leaves
    assert paper.least_height_claimed(leaves, branching) == (0 if leaves == 1 else height)


@given(width=st.integers(1, 9), every=st.integers(1, 9), span=st.integers(0, 12), changes=st.integers(1, 3))
def test_corollaries_5_4_and_5_5_count_sliding_windows_right(width, every, span, changes):
    """Reports on sliding windows in which two people can differ: window i holds the times (i P - W, i P]."""

    def met(times):
        return {end // every for time in times for end in range(time, time + width) if end % every == 0}

    starts = range(every)
    longest = max(len(met(range(start, start + span + 1))) for start in starts)
    assert paper.sliding_windows_met(width, every, span=span) == longest  # 5.5, for one person; B includes deletion

    apart = width + every
    one = max((met([start + 2 * number * apart * every for number in range(changes)]) for start in starts), key=len)
    other = {window + apart for window in one}  # changes of another person, in windows between
    assert len(one | other) == 2 * changes * paper.sliding_windows_met(width, every)


def test_a_tree_without_layers_cannot_win():
    # W = P: one leaf, for which the paper has no layer, so no noise.
    assert paper.derived_wins_claimed(10, 10, 2)
    assert not paper.derived_wins(10, 10, 2, definition="pure")
    assert not paper.derived_wins(10, 10, 2, definition="zcdp")


def test_equation_22_rejects_a_tree_that_is_better():
    # W / P = 7, c = 2: h = 3, 2 (c - 1) h^3 = 54 > 49. The exact values are 2 x 3^2 x 4 = 72 and 2 x 7^2 = 98.
    assert paper.least_height(7, 2) == 3
    assert paper.exact_nodes(2, 3) == 4
    assert not paper.derived_wins_claimed(7, 1, 2)
    assert paper.derived_wins_claimed(8, 1, 2)
    assert paper.derived_wins(7, 1, 2, definition="pure")
    # Under zCDP 3 x 4 = 12 is not below 7.
    assert not paper.derived_wins(7, 1, 2, definition="zcdp")


@given(width=st.integers(1, 2000), every=st.integers(1, 60), branching=st.integers(2, 12))
def test_equation_22_never_accepts_a_tree_that_is_worse(width, every, branching):
    if math.gcd(width, every) < width and paper.derived_wins_claimed(width, every, branching):
        assert paper.derived_wins(width, every, branching, definition="pure")


def variance(nodes_met: int, added: int, definition: str) -> int:
    return (nodes_met**2 if definition == "pure" else nodes_met) * added


@given(
    width=st.integers(1, 40),
    every=st.integers(1, 40),
    branching=st.integers(2, 5),
    span=st.integers(0, 60),
    definition=st.sampled_from(["pure", "zcdp"]),
)
@example(width=30, every=1, branching=6, span=0, definition="zcdp")
@example(width=5, every=2, branching=5, span=0, definition="pure")
@example(width=30, every=1, branching=6, span=12, definition="zcdp")
def test_a_tree_wins_only_if_counting_says_so(width, every, branching, span, definition):
    """All covers and all places are counted; sliding windows are (j P - W, j P]."""
    leaf = math.gcd(width, every)
    leaves, step = width // leaf, every // leaf
    height = next(h for h in itertools.count(1) if branching**h >= leaves)
    top = branching ** (height - 1)
    lengths = [leaf * branching**layer for layer in range(height)]
    nodes = max(sum(-(-(t + span) // v) - -(-t // v) + 1 for v in lengths) for t in range(leaf * top))
    windows = max((t + span + width - 1) // every - -(-t // every) + 1 for t in range(every))
    added = max(fewest_nodes(first, first + leaves, branching, height) for first in range(0, step * top, step))

    # Decided by the longest cover of the tree, which these windows may not need.
    longest = paper.exact_nodes(branching, height)
    assert added <= longest
    wins = paper.derived_wins(width, every, branching, definition=definition, span=span)
    assert wins == (variance(nodes, longest, definition) < variance(windows, 1, definition))


@pytest.mark.parametrize(("width", "every", "span"), [(0, 1, 0), (1, 0, 0), (5, 1, -1)])
def test_invalid_windows_are_refused(width, every, span):
    with pytest.raises(ValueError, match="expected at least"):
        paper.derived_wins(width, every, 2, definition="pure", span=span)
