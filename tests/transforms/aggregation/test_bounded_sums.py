"""A runner may repeat the step that writes a shard's state, with the rows in another order each time."""

from itertools import permutations

import pytest

from privacy.constraint import AtMost
from tests.strategies import QUERIES, TIMELINE
from tests.transforms.aggregation.test_contribution_bounding import stay
from tests.transforms.aggregation.test_shard_kernel import table_of
from transforms.aggregation.bounded_sums import advance
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.shard_state import STATE
from transforms.aggregation.sharding import shard_table


@pytest.mark.slow
def test_a_repeated_step_leaves_the_same_state_for_any_order_of_rows() -> None:
    aggregation = Aggregation(queries=QUERIES, timeline=TIMELINE, constraint=AtMost(9))
    tables = [table_of([stay(entry, "a", 5), stay(entry, "b", 100)], AtMost(9)) for entry in "abc"]
    payloads = [payload for table in tables for _, payload in shard_table(table, shards=1)]

    made = {
        content
        for order in permutations(payloads)
        for (variant, *_), content in advance((0, order), aggregation, past=None, keep=True, exchange=None)
        if variant == STATE
    }

    assert len(made) == 1
