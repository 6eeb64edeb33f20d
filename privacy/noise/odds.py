"""Random choices whose odds are integers: exact, and without a seed.

All odds are whole multiples of `PARTS`, a power of two, so that a choice is a comparison of one uniform integer with
integers. Nothing is rejected and nothing is a float: each outcome has exactly its stated probability, and how many
bytes of randomness a choice takes does not depend on it. They come from the operating system, as in
`privacy.noise.sampling`; forked workers share none of them.
"""

import itertools
import secrets

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least

Integers = NDArray[np.int64]

BITS = 62
"""One more would not fit sums of odds into 64 bits with a sign."""

PARTS: int = 1 << BITS
"""Odds are whole numbers of this many parts."""


def uniform(size: int) -> Integers:
    """Independent integers, each of 0, ..., `PARTS` - 1 with the same probability.

    >>> bool((uniform(3) >= 0).all())
    True
    """
    at_least("size", size, 0)
    words = np.frombuffer(secrets.token_bytes(8 * size), dtype=np.uint64)
    return (words >> np.uint64(64 - BITS)).astype(np.int64)


def choose(weights: Integers, rows: Integers) -> Integers:
    """For each of `rows`, a column of that row of `weights`, by the odds that stand there.

    Args:
        weights: [rows, columns], not negative, each row adding up to `PARTS`.
        rows: which row each choice is made from.

    >>> choose(np.array([[0, PARTS], [PARTS, 0]]), np.array([0, 1, 1])).tolist()
    [1, 0, 0]
    """
    ends = np.cumsum(weights, axis=1)
    if min(weights.min(initial=0), ends.min(initial=0)) < 0 or (ends[:, -1] != PARTS).any():  # sums may have wrapped
        raise ValueError(f"each row of odds must add up to {PARTS}, of parts that are not negative")
    points = uniform(len(rows))
    chosen = np.empty(len(rows), dtype=np.int64)
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(len(weights) + 1))
    for row, (start, stop) in enumerate(itertools.pairwise(starts.tolist())):
        places = order[start:stop]
        chosen[places] = np.searchsorted(ends[row], points[places], side="right")
    return chosen
