"""A truncate against a deletion of each entry."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.constraint import AtMost, Constraint
from tests import reference
from tests.reference import Mutation, Runs
from tests.searches import examples
from tests.strategies import COUNT, QUERIES, changelogs
from tests.transforms.aggregation.test_contribution_bounding import CONSTRAINTS
from tests.transforms.aggregation.test_shard_kernel import FINE, in_runs, runs
from transforms.aggregation.projection import Projection, project
from transforms.aggregation.sharding import shard_table
from transforms.common.ipc import from_bytes


def truncate(time: int, seq: int) -> Mutation:
    return Mutation(None, time, seq, None, None)  # type: ignore[arg-type]


def with_deletions(arrivals: Runs) -> Runs:
    """Return the rows with the deletions of truncates, as soon as both the truncate and the entry are known."""
    told: Runs = []
    entries: list[Mutation] = []
    truncates: list[Mutation] = []
    for rows, windows in arrivals:
        new = [m for m in rows if m.entry is not None]
        fresh = [m for m in rows if m.entry is None]
        entries += new
        pairs = [(t, m) for t in fresh for m in entries] + [(t, m) for t in truncates for m in new]
        truncates += fresh
        deletions = {Mutation(m.entry, t.time, t.seq, None, None, m.owner) for t, m in pairs if m.time <= t.time}
        told.append((new + sorted(deletions, key=lambda m: (m.entry, m.time, m.seq)), windows))
    return told


@st.composite
def arrivals_with_truncates(draw: st.DrawFn, *, owners: bool, on_time: bool) -> Runs:
    """Return arrivals in which truncates come once or twice, in any run, and never at the order of another row."""
    mutations = [replace(m, seq=2 * m.seq) for m in draw(changelogs(owners=owners))]
    arrivals = draw(runs(mutations, FINE, on_time=on_time))
    for time, place in draw(st.lists(st.tuples(st.integers(-15, 70), st.integers(0, 12)), min_size=1, max_size=2)):
        last = min(sum(reference.end_of(FINE, w) <= time for _, w in arrivals), len(arrivals) - 1)
        places = st.integers(0, last if on_time else len(arrivals) - 1)
        for run in draw(st.lists(places, min_size=1, max_size=2)):
            arrivals[run][0].append(truncate(time, 2 * place + 1))
    return arrivals


@pytest.mark.few(4)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@given(st.data(), st.booleans(), st.integers(1, 3), st.booleans())
@examples(4)
def test_a_truncate_is_a_deletion_of_every_entry(constraint: Constraint, data, owners, shards, on_time):
    arrivals = data.draw(arrivals_with_truncates(owners=owners, on_time=on_time))

    sums, _ = in_runs(arrivals, constraint, FINE, shards=shards, owned=owners)

    explicit = with_deletions(arrivals)
    for (_, number, family, _), got in sums.items():
        expected = reference.leaf_sums_of_runs(explicit, QUERIES[number], family, FINE, constraint)
        np.testing.assert_array_equal(got, expected, err_msg=f"{QUERIES[number].name} {family}")


def state(ward: str) -> dict[str, object]:
    return {"ward": ward, "x": 1.0, "fare": "multi"}


@pytest.mark.parametrize("cut", [(30,), (5, 30), (12, 30), (5, 12, 20, 30)], ids=str)
def test_an_entry_that_returns_after_a_truncate_counts_again(cut):
    first, again = Mutation("e", 3, 0, None, state("a")), Mutation("e", 40, 0, None, state("a"))
    other = Mutation("f", 21, 0, None, state("b"))
    rows = [first, truncate(20, 0), other, again]
    arrivals = [(rows if place == 0 else [], windows) for place, windows in enumerate(cut)]

    sums, _ = in_runs(arrivals, AtMost(9), FINE, (COUNT,), shards=2)

    net = sums["bounded", 0, "net", 0][0]
    assert {int(w): net[w].tolist() for w in np.flatnonzero(net.any(axis=1))} == {
        2: [1, 0, 0],
        11: [-1, 1, 0],
        21: [1, 0, 0],
    }


@pytest.mark.parametrize("cut", [(30,), (1, 30)], ids=str)
def test_a_before_image_after_a_truncate_does_not_open_an_initial_entry(cut):
    """Also if both wait for their window. (The row that inserted the entry is missing.)"""
    rows = [truncate(3, 1), Mutation("e", 3, 2, state("a"), None)]
    arrivals = [(rows if place == 0 else [], windows) for place, windows in enumerate(cut)]

    sums, _ = in_runs(arrivals, AtMost(9), FINE, (COUNT,))

    assert not sums["bounded", 0, "net", 0].any()


def test_a_truncate_reaches_every_shard():
    columns = {"entry": ["a", "b", "c", None], "time": [1, 2, 3, 4], "after.0.cell": [0, 0, 0, -1]}

    found: dict[int, list[pa.Table]] = {}
    for number, part in shard_table(pa.table(columns), shards=8):
        found.setdefault(number, []).append(from_bytes(part))
    parts = {number: pa.concat_tables(tables) for number, tables in found.items()}

    assert sorted(parts) == list(range(8))
    assert all(part["entry"].null_count == 1 for part in parts.values())
    assert sorted(e for part in parts.values() for e in part["entry"].to_pylist() if e) == ["a", "b", "c"]


@pytest.mark.parametrize("sides", [("after",), ("before", "after")], ids=str)
def test_a_truncate_needs_no_owner(sides):
    columns = {"entry": ["a", None, "b"], "time": [1, 2, 3]}
    for side in sides:
        columns |= {side: [True, False, True], f"{side}.who": ["p", None, None]}

    projected, dead, _ = project(pa.table(columns), Projection(queries=(), owner="who"))

    assert dead.tolist() == [2]
    assert projected.select(["unit", "entry"]).to_pylist() == [
        {"unit": "p", "entry": "a"},
        {"unit": None, "entry": None},
    ]
