"""On how many examples properties are tried."""

import os

from hypothesis import settings

TIMES = int(os.environ.get("SEARCH", "1"))
"""`make search` tries more than there is time for in each run of all tests."""


def examples(number: int) -> settings:
    """For a property that takes longer, or less long, than most."""
    return settings(max_examples=number * TIMES)
