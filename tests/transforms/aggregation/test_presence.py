"""Units in cells (`measure: units`) against a slow reference, in one run, in many runs, and with late rows."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.constraint import AtMost, AtOnce, ByClass, Constraint
from privacy.measure import Measure
from privacy.planning.contribution import Contribution
from privacy.planning.promise import Promise
from privacy.planning.sensitivity import of_family
from privacy.strategies.tree.tree import Tree
from tests import reference
from tests.reference import Runs
from tests.searches import examples
from tests.strategies import ALONE, COUNT, TIMELINE
from tests.transforms.aggregation.test_contribution_bounding import stay
from tests.transforms.aggregation.test_shard_kernel import FINE, Sums, in_runs, runs
from tests.transforms.aggregation.test_truncates import arrivals_with_truncates, with_deletions
from tests.transforms.aggregation.test_window_ends import histories, mutations_of
from transforms.aggregation.node_sums import BOUNDED

UNITS = (
    replace(COUNT, name="people", measure=Measure(kind="units")),
    replace(ALONE, name="anybody", measure=Measure(kind="units")),
)
CONSTRAINTS = [
    AtMost(3),
    AtMost(6, entries=2),
    ByClass("fare", (("multi", AtMost(4)), ("pass", AtMost(1)))),
    AtOnce(1),
    AtOnce(2),
    AtOnce(2, changes=2, block=14),
]


def check(got: Sums, arrivals: Runs, constraint: Constraint) -> None:
    for (_, number, family, _), found in got.items():
        expected = reference.leaf_sums_of_runs(arrivals, UNITS[number], family, FINE, constraint)
        np.testing.assert_array_equal(found, expected, err_msg=f"{UNITS[number].name} {family}")


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@given(st.data(), st.integers(1, 3))
@examples(5)
def test_late_and_repeated_rows_and_truncates_give_the_sums_of_the_reference(constraint, data, shards):
    arrivals = data.draw(arrivals_with_truncates(owners=True, on_time=False))

    sums, _ = in_runs(arrivals, constraint, FINE, UNITS, shards=shards, owned=True)

    check(sums, with_deletions(arrivals), constraint)


def test_a_state_before_the_first_row_counts_before_the_row_itself():
    """Both are at one time in a later run. The unit enters three cells in this window, of which the first two count."""
    known = stay("e", "b", 2, was="c"), replace(stay("f", "a", 0), seq=4)

    sums, _ = in_runs([([], 1), (list(known), FINE.windows)], AtOnce(2), FINE, UNITS)

    assert sums[BOUNDED, 0, "entered", 0][0].sum(axis=0).tolist() == [1, 0, 1]
    check(sums, [([], 1), (list(known), FINE.windows)], AtOnce(2))


@pytest.mark.few(4)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@given(st.data(), histories())
@examples(5)
def test_on_time_any_number_of_runs_gives_the_sums_of_one_and_of_the_reference(constraint, data, entries):
    """Entries change their owners, leave and return."""
    mutations = mutations_of(entries)
    by_chain = [replace(m, entry=f"{m.entry} {m.owner}") for m in mutations]
    arrivals = [
        ([replace(m, entry=m.entry.split()[0]) for m in rows], windows)
        for rows, windows in data.draw(runs(by_chain, FINE, on_time=True))
    ]

    sums, _ = in_runs(arrivals, constraint, FINE, UNITS)

    check(sums, [(mutations, FINE.windows)], constraint)


@pytest.mark.slow
@pytest.mark.parametrize("closing", [(6,), (1, 2, 3, 4, 5, 6)], ids=str)
@pytest.mark.parametrize("constraint", [AtMost(4), AtOnce(2)], ids=str)
def test_a_unit_is_there_from_its_first_entry_to_its_last(constraint, closing):
    """At 25 one entry leaves ward a and another one comes, so that the unit stays."""
    mutations = [stay("e", "a", 5), stay("e", None, 25, was="a"), stay("f", "a", 25), stay("f", None, 45, was="a")]
    ends = [-(10**9), *(10 * windows for windows in closing)]
    arrivals = [([m for m in mutations if a <= m.time < b], b // 10) for a, b in pairwise(ends)]

    sums, _ = in_runs(arrivals, constraint, TIMELINE, UNITS)

    for number in range(2):
        assert sums[BOUNDED, number, "net", 0][0, :, 0].cumsum().tolist() == [0, 1, 1, 1, 1, 0, 0]
        assert sums[BOUNDED, number, "entered", 0][0, :, 0].tolist() == [0, 1, 0, 0, 0, 0, 0]
        assert sums[BOUNDED, number, "left", 0][0, :, 0].tolist() == [0, 0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("constraint", [AtMost(1), AtMost(3), AtMost(4, entries=2)], ids=str)
@given(st.data())
@examples(8)
def test_no_rows_of_one_unit_move_the_sums_further_than_charged(constraint, data):
    """In any number of runs, with late rows and truncates, which are the same without the unit."""
    arrivals = data.draw(arrivals_with_truncates(owners=True, on_time=False))
    mine = [([m for m in rows if m.owner in (None, "p")], windows) for rows, windows in arrivals]

    sums, _ = in_runs(mine, constraint, FINE, UNITS, owned=True)

    promise = Promise(constraint=constraint, window=FINE.every, windows=FINE.windows, owner=True)
    for (_, number, family, _), found in sums.items():
        net = family == "net"
        strategy = Tree(branching=2, height=1, refine="none", windows=FINE.windows, initial_level=net)
        unit = Contribution.of(UNITS[number].demand, promise)
        if (constraint, family) == (AtMost(1), "left"):
            assert not found.any()
            continue
        charged = of_family(family, strategy, unit)
        assert np.abs(found).sum() <= charged.l1
        assert (found**2).sum() <= charged.l2**2 * (1 + 1e-12)
