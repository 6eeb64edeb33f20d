"""The paper's bound k for state machines, compared with counting every path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.automaton import longest_changes

FLIGHT = {
    "none": ["scheduled"],
    "scheduled": ["delayed", "airborne", "cancelled"],
    "delayed": ["airborne", "cancelled"],
    "airborne": ["landed"],
    "landed": ["none"],
    "cancelled": ["none"],
}


def test_a_flight_changes_at_most_five_times():
    bound = longest_changes(FLIGHT)

    # inserted, delayed, airborne, landed, purged
    assert bound.k == 5
    assert [names for (names,) in bound.path] == [
        "none", "scheduled", "delayed", "airborne", "landed", "none",
    ]  # fmt: skip
    assert bound.merged == ()


def test_a_life_without_deletion_ends_in_its_last_state():
    bound = longest_changes({"none": ["open"], "open": ["closed"], "closed": []})

    assert bound.k == 2
    assert bound.path == (("none",), ("open",), ("closed",))


def test_a_cycle_counts_as_one_composite_state():
    bound = longest_changes(
        {
            "none": ["ward a"],
            "ward a": ["ward b", "home"],
            "ward b": ["surgery"],
            "surgery": ["ward a"],
            "home": ["none"],
        }
    )

    # inserted into the hospital, sent home, deleted
    assert bound.k == 3
    assert bound.merged == (("surgery", "ward a", "ward b"),)
    assert bound.path[1] == ("surgery", "ward a", "ward b")


def test_several_cycles_are_distinguished():
    bound = longest_changes({"none": ["a"], "a": ["b"], "b": ["a", "c"], "c": ["d"], "d": ["c"]})

    assert bound.merged == (("a", "b"), ("c", "d"))
    assert bound.k == 2


def test_a_state_that_follows_itself_is_no_change_and_merges_nothing():
    bound = longest_changes({"none": ["open"], "open": ["open", "none"]})

    assert (bound.k, bound.merged) == (2, ())


def test_deletion_does_not_begin_a_new_life():
    assert longest_changes({"none": ["a"], "a": ["none"]}).k == 2


@pytest.mark.parametrize(
    ("transitions", "message"),
    [
        ({}, "no state to begin with; add `none"),
        ({"a": ["b"], "b": []}, "no state to begin with; add `none"),
        ({"none": [], "a": []}, "no state to begin with; add `none"),
        ({"none": ["a"], "a": ["b"]}, "'b' follows 'a' but has no line"),
        ({"none": ["a"], "a": [], "b": ["a"]}, "no life reaches 'b'"),
    ],
)
def test_a_machine_that_is_not_whole_is_refused(transitions, message):
    with pytest.raises(ValueError, match=message):
        longest_changes(transitions)


def longest_by_walking(transitions: dict[str, list[str]]) -> int:
    """Return the most changes between classes of states that reach each other, over all simple paths."""

    def reach(start: str) -> set[str]:
        seen, todo = {start}, [start]
        while todo:
            for follower in transitions.get(todo.pop(), []):
                if follower != "none" and follower not in seen:
                    seen.add(follower)
                    todo.append(follower)
        return seen

    reached = {state: reach(state) for state in transitions if state != "none"}

    def same(a: str, b: str) -> bool:
        return b in reached.get(a, ()) and a in reached.get(b, ())

    def walk(state: str, seen: frozenset[str]) -> int:
        best = 0
        for follower in transitions[state]:
            if follower == "none":
                best = max(best, 1)
            elif follower not in seen:
                best = max(best, (not same(state, follower)) + walk(follower, seen | {follower}))
        return best

    return walk("none", frozenset())


@st.composite
def machines(draw: st.DrawFn) -> dict[str, list[str]]:
    size = draw(st.integers(1, 5))
    names = [f"s{index}" for index in range(size)]
    # Each state follows an earlier one or none, so every life is reachable.
    machine: dict[str, list[str]] = {"none": [names[0]], **{name: [] for name in names}}
    for index in range(1, size):
        parent = draw(st.sampled_from(["none", *names[:index]]))
        machine[parent].append(names[index])
    for name in names:
        machine[name] += draw(st.lists(st.sampled_from([*names, "none"]), max_size=2))
    return machine


@given(machines())
def test_the_bound_is_the_longest_walk_between_composite_states(machine):
    bound = longest_changes(machine)

    assert bound.k == longest_by_walking(machine) == len(bound.path) - 1
