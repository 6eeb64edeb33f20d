"""Expiry against a deletion at the time at which each state ends."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.constraint import AtMost, AtOnce, Constraint
from tests import reference
from tests.reference import Mutation
from tests.searches import examples
from tests.strategies import ALONE, QUERIES, changelogs
from tests.transforms.aggregation.test_contribution_bounding import CONSTRAINTS
from tests.transforms.aggregation.test_shard_kernel import FINE, in_runs, runs
from transforms.aggregation.queries import Timeline

DAYS = Timeline(start=0, every=1, windows=30)
STATE = {"ward": "a", "x": 1.0, "fare": "multi"}


def expiries(mutations: list[Mutation], expires: int) -> list[Mutation]:
    """Return the deletions of states that no mutation renews in time."""
    found = []
    for entry in {m.entry for m in mutations}:
        mine = sorted({(m.time, m.seq, m.owner) for m in mutations if m.entry == entry})
        for (time, seq, owner), (follows, _, _) in pairwise([*mine, (10**9, 0, None)]):
            if follows > time + expires:
                found.append(Mutation(entry, time + expires, seq, None, None, owner))
    return found


def logged(mutations: list[Mutation]) -> list[Mutation]:
    """Return the mutations as a log of new values has them."""
    return [Mutation(m.entry, m.time, m.seq, None, m.after, m.owner) for m in mutations]


@pytest.mark.few(4)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@given(st.data(), st.booleans(), st.integers(1, 2), st.sampled_from([1, 4, 30]))
@examples(5)
def test_an_expiry_is_a_deletion(constraint: Constraint, data, owners, shards, expires):
    mutations = logged(data.draw(changelogs(owners=owners, inserted=True)))
    arrivals = data.draw(runs(mutations, FINE, on_time=True))

    sums, _ = in_runs(arrivals, constraint, FINE, shards=shards, expires=expires, before=False, owned=owners)

    explicit = [*mutations, *expiries(mutations, expires)]
    for (_, number, family, _), got in sums.items():
        expected = reference.leaf_sums(explicit, QUERIES[number], family, FINE, constraint)
        np.testing.assert_array_equal(got, expected, err_msg=f"{QUERIES[number].name} {family}")


def levels(arrivals: list[tuple[list[int], int]], constraint: Constraint, *, expires: int) -> list[int]:
    """Return the levels at the ends of the windows, for events of one entry that arrive before each run."""
    rows = [([Mutation("e", time, 0, None, STATE) for time in times], windows) for times, windows in arrivals]
    sums, _ = in_runs(rows, constraint, DAYS, (ALONE,), expires=expires, before=False)
    net = next(found for (_, _, family, _), found in sums.items() if family == "net")
    return np.cumsum(net[0, :, 0])[1:].tolist()


def spans(found: list[int]) -> list[tuple[int, int]]:
    """Return the first window of each presence, and the first one after it."""
    edges = np.flatnonzero(np.diff([0, *found, 0])).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def test_a_late_event_revives_an_expired_entry_until_it_expires():
    """The entry expired at 5, and runs closed windows up to 8 and 12. The event of 4 arrives between them."""
    assert spans(levels([([0], 8), ([4], 12), ([], 30)], AtMost(9), expires=5)) == [(0, 5), (8, 9)]


def test_a_late_event_before_an_expiry_that_is_due_extends_the_state():
    assert spans(levels([([0], 4), ([3], 6), ([], 30)], AtMost(9), expires=5)) == [(0, 8)]


def test_a_late_event_that_has_expired_itself_leaves_no_level():
    assert spans(levels([([0], 20), ([3], 24), ([], 30)], AtMost(9), expires=5)) == [(0, 5)]


def test_an_event_at_the_end_of_a_state_renews_it():
    assert spans(levels([([0, 5], 30)], AtMost(9), expires=5)) == [(0, 10)]


def test_an_expiry_counts_towards_the_bound():
    assert spans(levels([([0, 10, 20], 30)], AtMost(3), expires=5)) == [(0, 5), (10, 30)]


@given(st.data(), st.integers(1, 4), st.integers(1, 12))
@examples(10)
def test_late_events_stay_within_the_bound_and_the_states_of_one_entry(data, changes, expires):
    times = data.draw(st.lists(st.integers(-3, 40), max_size=12))
    arrivals = data.draw(runs([Mutation("e", time, 0, None, STATE) for time in times], DAYS, on_time=False))
    by_run = [([m.time for m in rows], windows) for rows, windows in arrivals]

    for constraint in (AtMost(changes), AtOnce(entries=1)):
        found = np.array(levels(by_run, constraint, expires=expires))
        assert set(found.tolist()) <= {0, 1}
        bound = changes if isinstance(constraint, AtMost) else 30
        assert np.abs(np.diff([0, *found])).sum() <= bound
