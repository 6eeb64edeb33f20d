"""Number of examples for property tests."""

import os

from hypothesis import settings

TIMES = int(os.environ.get("SEARCH", "1"))
"""Multiple of the usual number of examples. `make search` sets it, since more examples take too long for every run."""


def examples(number: int) -> settings:
    """Return settings for a property that is slower or faster than most.

    Args:
        number: Number of examples, of which `make test` tries two thirds.
    """
    return settings(max_examples=max(3, number * 2 // 3) if TIMES == 1 else number * TIMES)
