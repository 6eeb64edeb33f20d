"""Counting under `AtOnce`, against a slow reference; a unit's activity in one span changes no other window."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.constraint import AtOnce
from privacy.protection import Span
from tests import reference
from tests.reference import Mutation, Runs, State
from tests.searches import examples
from tests.strategies import ALONE, COUNT, QUERIES, STATES, TIMELINE, changelogs
from tests.transforms.aggregation.test_contribution_bounding import kernel, stay
from tests.transforms.aggregation.test_shard_kernel import FINE, Sums, in_one_run, in_runs, runs
from tests.transforms.aggregation.test_truncates import arrivals_with_truncates, with_deletions
from transforms.aggregation.node_sums import BOUNDED, EXACT
from transforms.aggregation.queries import Timeline

History = list[tuple[int, str | None, State]]
"""Owner and state of an entry from certain times on, in order."""


@st.composite
def histories(draw: st.DrawFn) -> dict[str, History]:
    """Return entries that arrive, change, move to another owner, leave and return."""
    steps = st.tuples(st.integers(-15, 70), st.sampled_from("ppq"), STATES)
    entries = st.sampled_from(["e1", "e10", "e2", "e3", "é"])
    return draw(st.dictionaries(entries, st.lists(steps, max_size=6, unique_by=lambda s: s[0]).map(sorted_by_time)))


def sorted_by_time(steps: History) -> History:
    return sorted(steps, key=lambda step: step[0])


def mutations_of(entries: dict[str, History]) -> list[Mutation]:
    """Return their rows: a change of owner is a deletion for one and an insertion for the other."""
    rows: list[Mutation] = []
    for entry, history in entries.items():
        for (_, owner_before, before), (time, owner, after) in pairwise([(0, None, None), *history]):
            if owner_before not in (None, owner):
                rows.append(Mutation(entry, time, 0, before, None, owner_before))
                before = None
            rows.append(Mutation(entry, time, 1, before, after, owner))
    return rows


def check(got: Sums, arrivals: Runs, constraint: AtOnce) -> None:
    for (_, number, family, _), found in got.items():
        expected = reference.leaf_sums_of_runs(arrivals, QUERIES[number], family, FINE, constraint)
        np.testing.assert_array_equal(found, expected, err_msg=f"{QUERIES[number].name} {family}")


@pytest.mark.parametrize("constraint", [AtOnce(1), AtOnce(2)], ids=str)
@given(st.data(), st.booleans(), st.integers(1, 3))
@examples(4)
def test_late_and_repeated_rows_and_truncates_give_the_sums_of_the_reference(constraint, data, owners, shards):
    arrivals = data.draw(arrivals_with_truncates(owners=owners, on_time=False))

    sums, _ = in_runs(arrivals, constraint, FINE, shards=shards, owned=owners)

    check(sums, with_deletions(arrivals), constraint)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("constraint", "owners"),
    [
        *((AtOnce(changes=2, block=8), False), (AtOnce(changes=3, block=14), False)),
        *((AtOnce(changes=3, block=8), True), (AtOnce(2, changes=2, block=14), True)),
    ],
    ids=str,
)
@given(st.data(), st.integers(1, 3), st.booleans())
@examples(4)
def test_deferred_changes_become_due_at_the_end_of_a_block_in_any_number_of_runs(
    constraint, owners, data, shards, on_time
):
    arrivals = data.draw(arrivals_with_truncates(owners=owners, on_time=on_time))

    sums, _ = in_runs(arrivals, constraint, FINE, shards=shards, owned=owners)

    check(sums, with_deletions(arrivals), constraint)


@pytest.mark.parametrize("constraint", [AtOnce(1), AtOnce(2)], ids=str)
@given(st.data(), histories())
@examples(5)
def test_on_time_any_number_of_runs_gives_the_sums_of_one_and_of_the_reference(constraint, data, entries):
    mutations = mutations_of(entries)
    by_chain = [replace(m, entry=f"{m.entry} {m.owner}") for m in mutations]
    arrivals = [
        ([replace(m, entry=m.entry.split()[0]) for m in rows], windows)
        for rows, windows in data.draw(runs(by_chain, FINE, on_time=True))
    ]

    sums, _ = in_runs(arrivals, constraint, FINE)

    check(sums, [(mutations, FINE.windows)], constraint)
    for key, expected in in_one_run(mutations, constraint, FINE).items():
        np.testing.assert_array_equal(sums[key], expected, err_msg=str(key))


@given(st.booleans().flatmap(lambda owners: changelogs(owners=owners)))
@examples(5)
def test_exact_sums_are_those_of_all_changes(mutations):
    for (variant, number, family, _), got in kernel(mutations, AtOnce(1)).items():
        constraint = AtOnce(1) if variant == BOUNDED else None
        expected = reference.leaf_sums(mutations, QUERIES[number], family, TIMELINE, constraint)
        np.testing.assert_array_equal(got, expected, err_msg=f"{variant} {QUERIES[number].name} {family}")


def within(history: History, begin: int, end: int, other: History) -> History:
    """Return another history of the entry from `begin` until `end`, empty outside, with the states of the first."""
    before = [step for step in history if step[0] < begin]
    after = [step for step in history if step[0] >= end]
    back = [step for step in history if step[0] <= end][-1:] or [(end, "p", None)]
    return [
        *before,
        *(step for step in other if begin <= step[0] < end),
        *([] if after and after[0][0] == end else [(end, *back[0][1:])]),
        *after,
    ]


@pytest.mark.parametrize("constraint", [AtOnce(1), AtOnce(2)], ids=str)
@given(histories(), histories(), histories(), st.integers(-15, 65), st.integers(1, 30))
@examples(6)
def test_a_units_activity_in_a_span_changes_no_leaf_outside_it(constraint, one, other, rest, begin, length):
    """A unit's entries have two histories that differ only in the span, together with those of another unit."""
    end = begin + length
    one, other = of_owner("p", one), of_owner("p", other)
    changed = {entry: within(one.get(entry, []), begin, end, other.get(entry, [])) for entry in {**one, **other}}
    others = mutations_of({f"q's {entry}": history for entry, history in of_owner("q", rest).items()})

    before, after = (in_one_run(mutations_of(told) + others, constraint, TIMELINE) for told in (one, changed))

    first, last = (max(0, time // TIMELINE.every + 1) for time in (begin, end - 1))
    for key, sums in before.items():
        moved = np.flatnonzero((after[key] - sums).any(axis=(0, 2)))
        assert set(moved.tolist()) <= set(range(first, last + 2)), key
        assert len(moved) <= Span(length).boundaries(TIMELINE.every) + 1, key
        if key[1:3] == (QUERIES.index(ALONE), "net"):
            assert set(np.cumsum(sums[0, :, 0])) <= set(range(2 * constraint.entries + 1))


def of_owner(owner: str, entries: dict[str, History]) -> dict[str, History]:
    return {entry: [(time, owner, state) for time, _, state in history] for entry, history in entries.items()}


def levels(mutations: list[Mutation], *closing: int, constraint: AtOnce | None = None, **form: bool) -> list[list[int]]:
    """Return beds taken in wards a and b at the start and at the end of each window; runs have their rows."""
    ends = [-(10**9), *(10 * windows for windows in closing)]
    arrivals = [([m for m in mutations if a <= m.time < b], b // 10) for a, b in pairwise(ends)]
    sums, _ = in_runs(arrivals, constraint or AtOnce(1), TIMELINE, (COUNT,), **form)
    return sums[BOUNDED, 0, "net", 0][0, :, :2].cumsum(axis=0).tolist()


A, B, NONE = [1, 0], [0, 1], [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("closing", [(6,), (1, 2, 3, 4, 5, 6), (2, 6)], ids=str)
@pytest.mark.parametrize("first", ["e", "f"])
def test_the_order_of_arrival_does_not_decide_which_entries_count(first, closing):
    """From window 2 on both are present, and e counts as the first by key. When it leaves, f counts without a row."""
    second = "f" if first == "e" else "e"
    came = [stay(first, "ab"[first == "f"], 5), stay(second, "ab"[second == "f"], 15)]
    left = [stay("e", None, 35, was="a"), stay("f", None, 45, was="b")]

    assert levels(came + left, *closing) == [NONE, B if first == "f" else A, A, A, B, NONE, NONE]


@pytest.mark.parametrize("closing", [(6,), (1, 2, 3, 4, 5, 6), (2, 6), (3, 4, 5, 6)], ids=str)
def test_a_deferred_change_counts_at_the_end_of_the_block_without_a_new_row(closing):
    """In blocks of three days one change counts before the last day: f moves twice in block one, e in block two."""
    came = [stay("e", "a", 5), stay("f", "b", 5), stay("f", "a", 15, was="b"), stay("f", "b", 25, was="a")]
    moved = [stay("e", "b", 31, was="a"), stay("e", None, 41, was="b")]

    entries = [replace(row, owner=None) for row in came + moved]
    found = levels(entries, *closing, constraint=AtOnce(changes=2, block=30))

    assert found == [NONE, [1, 1], [1, 1], [1, 1], [0, 2], [0, 2], B]
    # A row that changes nothing does not restore the used change.
    same = [replace(stay("e", after, at, was=was), owner=None) for after, at, was in (("a", 15, "a"), ("b", 25, "a"))]
    assert levels([entries[0], *same], *closing, constraint=AtOnce(changes=2, block=40)) == [NONE, A, A, A, B, B, B]


@pytest.mark.parametrize("closing", [(6,), (2, 4, 5, 6)], ids=str)
def test_a_change_of_an_earlier_block_is_not_used_in_a_later_one(closing):
    """The entry has no row in the run in which the second block of three days begins."""
    rows = [replace(row, owner=None) for row in (stay("e", "a", 5), stay("e", "b", 45, was="a"))]

    assert levels(rows, *closing, constraint=AtOnce(changes=2, block=30)) == [NONE, A, A, A, A, B, B]


@pytest.mark.slow
@pytest.mark.parametrize("closing", [(6,), (1, 2, 3, 4, 5, 6), (2, 6), (3, 4, 5, 6)], ids=str)
def test_an_owners_entries_are_deferred_together_and_the_first_by_key_count(closing):
    """In blocks of three days one change of the owner counts before the last day: that of e and f together.

    In the second block f leaves, so that g counts in its place, which is the one change; the departure of e is
    deferred.
    """
    came = [stay("e", "a", 5), stay("f", "b", 6), stay("g", "a", 7), stay("e", "b", 15, was="a")]
    moved = [stay("f", None, 31, was="b"), stay("e", None, 41, was="b")]

    found = levels(came + moved, *closing, constraint=AtOnce(2, changes=2, block=30))

    assert found == [NONE, [1, 1], [1, 1], [0, 2], [1, 1], [1, 1], A]
    # If one entry counts, f still counts when e arrives, which precedes it by key, until the end of the block.
    one = levels([came[1], stay("e", "a", 15)], *closing, constraint=AtOnce(1, changes=2, block=30))
    assert one == [NONE, B, B, A, A, A, A]


def test_integer_keys_are_ordered_as_texts():
    mutations = [stay("\t", "a", 5), stay("\n", "b", 5)]  # 9 and 10

    assert levels(mutations, 3, 6, whole_keys=True)[1:] == [B] * 6


@pytest.mark.slow
def test_visits_within_a_window_count_the_first_arrivals_and_the_last_departures():
    """In the third window e moves to b and to a; without an owner's bound of two, one event of each kind counts."""
    visits = [stay("e", "a", 11), stay("e", None, 19, was="a"), stay("e", "b", 21), stay("e", "a", 29, was="b")]
    both = [*visits, stay("f", "a", 22), stay("f", None, 23, was="a")]

    def windows(mutations: list[Mutation], entries: int, variant: str, family: str) -> list[list[int]]:
        return kernel(mutations, AtOnce(entries))[variant, 0, family, 0][0, 2:4, :2].tolist()

    assert windows(visits, 1, BOUNDED, "entered") == [A, B]
    assert windows(visits, 1, EXACT, "entered") == [A, [1, 1]]
    assert windows(visits, 1, BOUNDED, "left") == windows(visits, 1, EXACT, "left") == [A, B]
    assert windows(both, 1, BOUNDED, "left") == [A, B]
    assert windows(both, 2, BOUNDED, "entered") == windows(both, 2, BOUNDED, "left") == [A, [1, 1]]


def test_every_arrival_of_a_clinic_counts_up_to_the_bound_on_entries():
    """Stays of an hour to 60 days, in windows of a week, by patients who return."""
    random = np.random.default_rng(4)
    week = Timeline(start=0, every=168, windows=20)
    came = random.integers(0, 20 * 168, 400).tolist()
    stays = (1440 ** random.random(400)).tolist()
    patients = random.integers(0, 60, 400).tolist()
    rows, arrivals = [], np.zeros((60, 21), dtype=int)
    for number, (at, length, patient) in enumerate(zip(came, stays, patients, strict=True)):
        rows += [stay(f"{number}", "a", at), stay(f"{number}", None, at + max(1, round(length)), was="a")]
        rows[-2:] = [replace(row, owner=f"p{patient}") for row in rows[-2:]]
        arrivals[patient, 1 + at // 168] += 1

    for most in (1, 2, 400):
        sums, _ = in_runs([(rows, 20)], AtOnce(most), week, (COUNT,), owned=True)
        found = sums[BOUNDED, 0, "entered", 0][0, :, 0]
        np.testing.assert_array_equal(found, np.minimum(arrivals, most).sum(axis=0))


def test_a_state_holds_true_last_states_and_no_usage():
    """For any number of changes and of entries."""
    rows = [stay(entry, "ab"[i % 2], 5 + i) for entry in "efg" for i in range(9)]

    _, states = in_runs([(rows, 2)], AtOnce(1), TIMELINE, (COUNT,))

    state = states[0]
    assert state.units.to_pylist() == [{"key": "p"}]
    assert state.frozen.num_rows == 0
    assert sorted(zip(*(state.entries[name].to_pylist() for name in ("entry", "after.0.cell")), strict=True)) == [
        *[("e", 0), ("f", 0), ("g", 0)]
    ]
