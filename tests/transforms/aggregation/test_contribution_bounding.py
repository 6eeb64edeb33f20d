"""The bounding kernel against the slow reference, for every constraint, measure and family of nodes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.constraint import AtMost, ByClass, Constraint, Within
from tests import reference
from tests.dense import dense
from tests.reference import Mutation, batch_table
from tests.searches import examples
from tests.strategies import COLUMNS, QUERIES, TIMELINE, changelogs
from transforms.aggregation.node_sums import BOUNDED, EXACT, Aggregation, NodeKey
from transforms.aggregation.projection import Projection, project
from transforms.aggregation.shard_kernel import sum_shard
from transforms.aggregation.sharding import shard_table
from transforms.common.ipc import from_bytes

CONSTRAINTS: list[Constraint] = [
    AtMost(1),
    AtMost(5),
    AtMost(6, entries=1),
    AtMost(4, entries=2),
    Within(0),
    Within(15),
    Within(30),
    ByClass("fare", (("multi", AtMost(3, entries=1)), ("pass", Within(12)))),
]
ALSO_EXACT = (CONSTRAINTS[0], CONSTRAINTS[-1])
"""Constraints for which exact sums are tested: they depend only on whether there is a column of classes."""


def kernel(
    mutations: list[Mutation],
    constraint: Constraint,
    *,
    shards: int = 1,
    seq: bool = True,
    before: bool = True,
    exact: bool = True,
) -> dict[NodeKey, np.ndarray]:
    """Return dense sums of every chunk from projection, sharding and the kernel."""
    by_class = (constraint.column, constraint.names) if isinstance(constraint, ByClass) else None
    aggregation = Aggregation(queries=QUERIES, timeline=TIMELINE, constraint=constraint, exact=exact)
    table, dead, _ = project(
        batch_table(mutations, COLUMNS, seq=seq, before=before),
        Projection(queries=QUERIES, by_class=by_class),
    )
    assert len(dead) == 0
    payloads: dict[NodeKey, list[bytes]] = {key: [] for key in aggregation.node_keys()}
    for _, part in shard_table(table, shards=shards):
        for key, payload in sum_shard(from_bytes(part), None, aggregation):
            if key in payloads:  # tests/transforms/aggregation/test_matched.py tests the counts of matched rows
                payloads[key].append(payload)
    return {key: dense(parts, aggregation, key) for key, parts in payloads.items()}


@pytest.mark.few(4)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@given(st.booleans().flatmap(lambda owners: changelogs(owners=owners)), st.integers(1, 5))
@examples(15)
def test_sums_equal_the_reference_for_any_row_order_and_number_of_shards(constraint, mutations, shards):
    """Also for owners, whose entries share their bound."""
    sums = kernel(mutations, constraint, shards=shards, exact=constraint in ALSO_EXACT)

    for (variant, number, family, _), got in sums.items():
        limit = constraint if variant == BOUNDED else None
        expected = reference.leaf_sums(mutations, QUERIES[number], family, TIMELINE, limit)
        np.testing.assert_array_equal(got, expected, err_msg=f"{variant} {QUERIES[number].name} {family}")


@given(changelogs())
@examples(10)
def test_without_a_source_order_the_sums_do_not_depend_on_the_order_of_rows(mutations):
    sums = kernel(mutations, AtMost(3), seq=False)
    again = kernel(mutations[::-1], AtMost(3), seq=False, shards=3)

    for key, expected in sums.items():
        np.testing.assert_array_equal(again[key], expected)


def walk(*wards: str | None, time: int = 5) -> list[Mutation]:
    """Return one entry that moves through the wards, all at one time."""
    states = [None if ward is None else {"ward": ward, "x": 1.0, "fare": "multi"} for ward in wards]
    return [Mutation("e", time, seq, states[seq], states[seq + 1]) for seq in range(len(states) - 1)]


@pytest.mark.parametrize("reverse", [False, True])
def test_changes_of_one_instant_are_linked_by_their_images(reverse):
    mutations = walk(None, "a", "b", "a", "c", None, "b")
    sums = kernel(mutations[::-1] if reverse else mutations, AtMost(50), seq=False)

    level = sums[(EXACT, 0, "net", 0)].sum(axis=1)[0]
    entered = sums[(EXACT, 0, "entered", 0)].sum(axis=1)[0]

    assert level.tolist() == [0, 1, 0]
    assert entered.tolist() == [1, 1, 1]  # once per entry, window and cell


def test_links_continue_from_one_instant_to_the_next():
    mutations = walk(None, "a", "b", "a", time=5) + walk("a", "b", "c", time=5 + 1)
    for rows in (mutations, mutations[::-1]):
        level = kernel(rows, AtMost(50), seq=False)[(EXACT, 0, "net", 0)].sum(axis=1)[0]
        assert level.tolist() == [0, 0, 1]


def test_links_start_from_the_preceding_row_in_source_order():
    """Order 0 inserts into b; only this distinguishes the two changes of order 1."""
    states = {ward: {"ward": ward, "x": 1.0, "fare": "multi"} for ward in "ab"}
    mutations = [
        Mutation("e", 5, 0, None, states["b"]),
        Mutation("e", 5, 1, states["a"], states["b"]),
        Mutation("e", 5, 1, states["b"], states["a"]),
    ]
    for rows in (mutations, mutations[::-1]):
        sums = kernel(rows, AtMost(2))
        assert sums[(BOUNDED, 0, "net", 0)].sum(axis=1)[0].tolist() == [1, 0, 0]
        assert sums[(EXACT, 0, "net", 0)].sum(axis=1)[0].tolist() == [0, 1, 0]


def stay(entry: str, ward: str | None, time: int, *, was: str | None = None) -> Mutation:
    states = [None if w is None else {"ward": w, "x": 1.0, "fare": "multi"} for w in (was, ward)]
    return Mutation(entry, time, 0, states[0], states[1], "p")


def levels(mutations: list[Mutation], constraint: Constraint) -> list[int]:
    """Return beds taken at the end of each window, after the initial level."""
    level, again = (
        kernel(rows, constraint)[(BOUNDED, 0, "net", 0)].sum(axis=(0, 2)).cumsum().tolist()
        for rows in (mutations, mutations[::-1])
    )
    assert level == again
    return level


def test_times_are_distinguished_although_the_first_ones_share_a_coarser_unit():
    """Times are sorted in a common unit of the first 256, if all are multiples of it."""
    tens = [replace(stay(f"e{i}", "a", 10 * (i % 3)), owner=None) for i in range(256)]
    late = [replace(stay("f", *states), owner=None) for states in (("b", 23), ("a", 21))]

    moves = kernel([*tens, *late], AtMost(9))[(BOUNDED, 0, "net", 0)][0, :, :2]

    assert moves.cumsum(axis=0)[-1].tolist() == [256, 1]


def test_no_later_change_of_an_owner_counts_after_a_second_entry_at_once():
    """The second stay begins while the first one lasts: neither it nor any later change counts."""
    mutations = [stay("e", "a", 5), stay("f", "b", 15), stay("e", None, 25, was="a"), stay("f", None, 35, was="b")]

    assert levels(mutations, AtMost(9, entries=1)) == [0, 1, 1, 1, 1, 1, 1]
    assert levels(mutations, AtMost(9, entries=2)) == [0, 1, 2, 1, 0, 0, 0]
    assert levels(mutations, AtMost(9)) == [0, 1, 2, 1, 0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("entries", ["ef", "fe"])
def test_an_entry_may_replace_another_within_an_instant(entries):
    """In either order of the two; but if the bound on changes falls between them, neither counts."""
    one, two = entries
    mutations = [stay(one, "a", 5), stay(one, None, 15, was="a"), stay(two, "b", 15), stay(two, None, 25, was="b")]

    assert levels(mutations, AtMost(9, entries=1)) == [0, 1, 1, 0, 0, 0, 0]
    # Of two allowed changes the second is the departure of the first entry, or the arrival of the second.
    assert levels(mutations, AtMost(2, entries=1)) == (
        [0, 1, 0, 0, 0, 0, 0] if entries == "ef" else [0, 1, 1, 1, 1, 1, 1]
    )


def test_an_arrival_beyond_the_bound_on_changes_does_not_crowd_others():
    """Both arrive at once: with one allowed change the second is ignored, with two it is one entry too many."""
    mutations = [stay("e", "a", 5), stay("f", "a", 5)]

    assert levels(mutations, AtMost(1, entries=1)) == [0, 1, 1, 1, 1, 1, 1]
    assert levels(mutations, AtMost(2, entries=1)) == [0] * 7


def test_an_owner_with_too_many_initial_entries_does_not_count():
    mutations = [stay("e", "b", 5, was="a"), stay("f", "b", 15, was="a")]

    assert levels(mutations, AtMost(9, entries=1)) == [0] * 7
    assert levels(mutations, AtMost(9, entries=2)) == [2] * 7


def test_a_frozen_entry_keeps_its_value():
    mutations = [Mutation("e", 10 * i, i, None if i == 0 else s(i - 1), s(i)) for i in range(5)]
    level = kernel(mutations, AtMost(2))[(BOUNDED, 0, "net", 0)].cumsum(axis=1)[0]

    assert level[:, :2].tolist() == [[0, 0], [1, 0], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1]]


def s(i: int) -> dict:
    return {"ward": "ab"[i % 2], "x": 1.0, "fare": "multi"}
