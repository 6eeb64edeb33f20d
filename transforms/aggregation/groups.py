"""Runs of equal values in a sorted column."""

import numpy as np

Ints = np.ndarray


def starts(groups: Ints) -> Ints:
    """Return where runs of equal values begin, bool [n].

    >>> starts(np.array([3, 3, 7])).tolist()
    [True, False, True]
    """
    found = np.ones(len(groups), dtype=bool)
    np.not_equal(groups[1:], groups[:-1], out=found[1:])
    return found


def count_up(groups: Ints) -> Ints:
    """Return 0, 1, 2, ... within each run of equal values, int64 [n].

    >>> count_up(np.array([3, 3, 7])).tolist()
    [0, 1, 0]
    """
    begins = np.flatnonzero(starts(groups))
    place = np.arange(len(groups))
    place -= np.repeat(begins, np.diff(begins, append=len(groups)))
    return place


def sums_within(groups: Ints, values: Ints) -> Ints:
    """Return cumulative sums of the values within each run of equal groups, [n].

    >>> sums_within(np.array([3, 3, 7]), np.array([1, 2, 4])).tolist()
    [1, 3, 4]
    """
    begins = starts(groups)
    so_far = np.cumsum(values)
    return so_far - (so_far - values)[begins][np.cumsum(begins) - 1]
