"""Positions of numbers on the line of windows, compared with written lists."""

import numpy as np
import pytest

from privacy.series import BEFORE_ALL, KINDS, Series, totals


def test_sliding_windows_start_at_the_start_and_lie_whole_within_the_closed_ones():
    series = Series(kind="sliding", width=3, every=2)

    for windows, ends in ((0, []), (2, []), (3, [3]), (4, [3]), (5, [3, 5]), (8, [3, 5, 7])):
        assert series.ends(windows).tolist() == ends
        assert series.begins(windows).tolist() == [end - 3 for end in ends]


def test_levels_begin_before_everything_and_other_numbers_at_their_window():
    assert Series(kind="level").begins(3).tolist() == [BEFORE_ALL] * 3
    for kind in ("change", "entered", "left"):
        assert Series(kind=kind).begins(3).tolist() == [0, 1, 2]
        assert Series(kind=kind).ends(3).tolist() == [1, 2, 3]


def test_totals_add_up_the_leaves_between_the_boundaries():
    rng = np.random.default_rng(5)
    leaves = rng.integers(-9, 9, (11, 3))

    for series in (*(Series(kind=kind) for kind in KINDS), Series(kind="sliding", width=4, every=3)):
        for begin, end, number in zip(series.begins(10), series.ends(10), totals(series, leaves), strict=True):
            assert number.tolist() == leaves[begin + 1 : end + 1].sum(axis=0).tolist()


def test_families():
    assert [Series(kind=kind).family for kind in KINDS] == ["net", "net", "net", "entered", "left"]


def test_only_sliding_numbers_have_a_width():
    with pytest.raises(ValueError, match="only sliding"):
        Series(kind="level", width=2)
    with pytest.raises(ValueError, match="at least 1"):
        Series(kind="sliding", width=0)
    with pytest.raises(ValueError, match="do not fit"):
        Series(kind="sliding", width=7).merged(2)
