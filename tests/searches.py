"""Number of examples for property tests."""

import os

from hypothesis import settings

TIMES = int(os.environ.get("SEARCH", "1"))
"""Multiple of the usual number of examples. `make search` sets it, since more examples take too long for every run."""


def examples(number: int) -> settings:
    """Return settings with a number of examples, for a property that is slower or faster than most."""
    return settings(max_examples=number * TIMES)
