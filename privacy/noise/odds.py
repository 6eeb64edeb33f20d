"""Random choices with integer odds: exact, and without a seed.

All odds are integers, in parts of `PARTS`, a power of two, so that a choice compares one uniform integer with integers.
Nothing is rejected and nothing is a float: each outcome has exactly its stated probability, and the number of random
bytes of a choice does not depend on the outcome. The random words are those of `privacy.noise.exact.words`.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from privacy.checks import at_least
from privacy.noise.exact.words import system_words

Integers = NDArray[np.int64]

BITS = 62
"""Number of random bits of a choice; with one more, sums of odds would not fit into 64 bits with a sign."""

PARTS: int = 1 << BITS
"""Sum of the odds of one choice."""


def uniform(size: int) -> Integers:
    """Return independent uniform integers, int64 [size], in 0, ..., `PARTS` - 1.

    >>> bool((uniform(3) >= 0).all())
    True
    """
    at_least("size", size, 0)
    return system_words(BITS, size).astype(np.int64)


def choose(weights: Integers, rows: Integers) -> Integers:
    """Return, for each of `rows`, a column of that row of `weights`, with its odds; int64 [choices].

    Args:
        weights: int64 [rows, columns], not negative, each row adding up to `PARTS`.
        rows: int64 [choices], the row from which each choice is made.

    Raises:
        ValueError: odds that do not add up to `PARTS`, or a row that `weights` lacks.

    >>> choose(np.array([[0, PARTS], [PARTS, 0]]), np.array([0, 1, 1])).tolist()
    [1, 0, 0]
    """
    ends = np.cumsum(weights, axis=1)
    if min(weights.min(initial=0), ends.min(initial=0)) < 0 or (ends[:, -1] != PARTS).any():  # sums may have wrapped
        raise ValueError(f"each row of odds must add up to {PARTS}, of parts that are not negative")
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(weights):
        raise ValueError(f"rows of odds must lie between 0 and {len(weights) - 1}")
    points = uniform(len(rows))
    chosen = np.empty(len(rows), dtype=np.int64)
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(len(weights) + 1))
    for row, (start, stop) in enumerate(itertools.pairwise(starts.tolist())):
        places = order[start:stop]
        chosen[places] = np.searchsorted(ends[row], points[places], side="right")
    return chosen
