"""Rows that a query matches, and changes that contribution bounding cuts off, against a count by hand."""

from privacy.constraint import AtMost, AtOnce, Constraint
from tests.reference import Mutation, batch_table
from tests.strategies import COLUMNS, QUERIES, TIMELINE
from transforms.aggregation.matched import Matched, all_matched
from transforms.aggregation.node_sums import MATCHED, Aggregation
from transforms.aggregation.projection import Projection, project
from transforms.aggregation.shard_kernel import sum_shard
from transforms.aggregation.sharding import shard_table
from transforms.common.ipc import from_bytes

START, END = TIMELINE.start, TIMELINE.until


def state(ward: str | None) -> dict[str, object] | None:
    return None if ward is None else {"ward": ward, "x": 1.0, "fare": "multi"}


def mutation(entry: str, time: int, was: str | None, now: str | None, seq: int = 0) -> Mutation:
    return Mutation(entry, time, seq, state(was), state(now))


def matched(mutations: list[Mutation], constraint: Constraint, shards: int = 3) -> Matched:
    """Return the counts of the first query, which counts all wards."""
    aggregation = Aggregation(queries=QUERIES, timeline=TIMELINE, constraint=constraint, exact=True)
    table, _, _ = project(batch_table(mutations, COLUMNS, seq=True, before=True), Projection(queries=QUERIES))
    found = [
        payload
        for _, part in shard_table(table, shards=shards)
        for key, payload in sum_shard(from_bytes(part), None, aggregation)
        if key[:2] == (MATCHED, 0)
    ]
    return all_matched(found, QUERIES[0].cells)


MUTATIONS = [
    mutation("early", START - 5, None, "a"),
    mutation("mover", START + 1, None, "a"),
    mutation("mover", START + 2, "a", "b"),
    mutation("mover", START + 3, "b", None),
    mutation("there", START + 4, "b", None),  # existed before the changelog
    mutation("late", END + 1, None, "a"),
]


def test_rows_units_and_changes_equal_a_count_by_hand():
    found = matched(MUTATIONS, AtMost(2))

    assert found.counts == {
        "rows": 6,
        "rows_before": 1,
        "rows_after": 1,
        "rows_matched": 3,  # early, and mover's first two
        "units": 3,
        "units_matched": 3,  # `there` is in it by its before image
        "changes": 6,  # two of `there`: it was in it, and left
        "changes_cut": 1,  # mover's third
        "units_cut": 1,
    }
    assert found.cells.sum() == 3
    assert sorted(found.cells[found.cells > 0].tolist()) == [1, 2]  # two rows in a, one in b


def test_counts_do_not_depend_on_shards_and_at_once_cuts_nothing_off():
    counts = matched(MUTATIONS, AtMost(2)).counts
    all_there = matched(MUTATIONS, AtOnce(1)).counts

    assert matched(MUTATIONS, AtMost(2), shards=1).counts == counts
    assert all_there == {**counts, "changes_cut": 0, "units_cut": 0}


def test_a_changelog_without_rows_has_no_counts():
    assert set(all_matched([], 4).counts.values()) == {0}
