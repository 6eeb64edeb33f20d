"""Parts of a pipeline with invalid arguments are refused when they are made, in one line, before any work."""

from collections.abc import Callable

import pytest

from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.series import Series
from transforms.aggregation.bounded_sums import BoundedSums
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query, Timeline
from transforms.common.source import Source

BEDS = Query(name="beds", measure=Measure(kind="count"), publish=(Series(kind="level"),))
AGGREGATION = Aggregation(
    queries=(BEDS,), timeline=Timeline(start=0, every=5, windows=3), constraint=AtMost(1), owner=None
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Series(kind="levels"), "kind='levels' is not one of change, level, sliding, entered, left"),
        (lambda: Measure(kind="sum"), "a sum has no clamping bounds; give low= and high=, chosen without the data"),
        (lambda: Measure(kind="mean", low=1.0), "min=1.0 must be less than max=nan, and both finite"),
        (lambda: Timeline(start=0, every=0, windows=3), "every: expected a duration above zero, such as 1d"),
        (lambda: BoundedSums(AGGREGATION, shards=0), "shards: expected at least 1, not 0"),
        (
            lambda: Source(format="parquet", paths=(), entry="stay", time="at", before=None, after=None),
            "paths=() names no file; give one path or glob at least",
        ),
    ],
)
def test_a_part_with_invalid_arguments_is_refused_in_one_line(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        make()
    assert str(refused.value) == message
