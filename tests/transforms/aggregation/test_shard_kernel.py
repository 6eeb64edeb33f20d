"""Many runs against one run, and against the slow reference with late and repeated rows."""

import dataclasses
from collections import defaultdict
from itertools import accumulate

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.constraint import AtMost, ByClass, Constraint, Within
from tests import reference
from tests.dense import dense
from tests.privacy.planning.test_sensitivity import check, wild_units
from tests.reference import Mutation, Runs, batch_table
from tests.searches import examples
from tests.strategies import ALONE, COLUMNS, COUNT, QUERIES, TIMELINE, changelogs
from tests.transforms.aggregation.test_contribution_bounding import CONSTRAINTS, stay
from transforms.aggregation.node_sums import BOUNDED, Aggregation, NodeKey
from transforms.aggregation.projection import Projection, project
from transforms.aggregation.queries import Query, Timeline
from transforms.aggregation.shard_kernel import advance_shard, sum_shard
from transforms.aggregation.shard_state import ShardState, state_from_bytes, state_to_bytes
from transforms.aggregation.sharding import shard_table
from transforms.common.batches import POSITION
from transforms.common.ipc import from_bytes

FINE = Timeline(start=0, every=2, windows=30, ends=tuple(accumulate([1, 3, 2] * 10)))
"""The time of TIMELINE in enough windows for thirty runs, with unequal lengths like those of a calendar."""


@st.composite
def cuts(draw: st.DrawFn, timeline: Timeline) -> list[int]:
    """Return the windows closed after each run; the last run closes all."""
    inner = st.lists(st.integers(1, timeline.windows - 1), max_size=timeline.windows - 1, unique=True)
    return [*sorted(draw(inner)), timeline.windows]


@st.composite
def runs(draw: st.DrawFn, mutations: list[Mutation], timeline: Timeline, *, on_time: bool) -> Runs:
    """Return rows that arrive before any run, some of them again later, in any order.

    On time means before the run that closes their window. An entry's first rows arrive before its others, and before
    the first run if the entry existed before.
    """
    closing = draw(cuts(timeline))
    arrived: list[list[Mutation]] = [[] for _ in closing]

    def due(m: Mutation) -> int:
        return min(sum(reference.end_of(timeline, windows) <= m.time for windows in closing), len(closing) - 1)

    first: dict[str, tuple[int, int]] = {}
    for m in mutations if on_time else []:
        time = min(n.time for n in mutations if n.entry == m.entry)
        there = any(n.before is not None for n in mutations if (n.entry, n.time) == (m.entry, time))
        if m.time == time and m.entry not in first:
            first[m.entry] = time, 0 if there else draw(st.integers(0, due(m)))
    for m in mutations:
        begin, end = 0, len(closing) - 1
        if on_time:
            begin, end = first[m.entry][1], due(m)
            arrived[begin] += [m] * (m.time == first[m.entry][0])
        for run in draw(st.lists(st.integers(begin, end), min_size=1, max_size=2)):
            arrived[run].append(m)
    return list(zip([draw(st.permutations(rows)) for rows in arrived], closing, strict=True))


def table_of(
    mutations: list[Mutation],
    constraint: Constraint,
    queries: tuple[Query, ...] = QUERIES,
    *,
    seq: bool = True,
    before: bool = True,
    position: bool = False,
    whole_keys: bool = False,
    text_order: bool = False,
    owned: bool = False,
) -> pa.Table:
    """Return projected rows."""
    table = batch_table(mutations, COLUMNS, seq=seq, before=before, owned=owned)
    if position:
        table = table.append_column(POSITION, pa.array(np.arange(len(mutations))))
    if whole_keys:
        for name in {"entry", "owner"} & set(table.column_names):
            keys = [int.from_bytes(key.encode()) for key in table[name].to_pylist()]
            table = table.set_column(table.column_names.index(name), name, pa.array(keys, pa.int64()))
    if text_order:
        texts = pa.array([f"{m.seq:09}" for m in mutations], pa.string())
        table = table.set_column(table.column_names.index("order.0"), "order.0", texts)
    by_class = (constraint.column, constraint.names) if isinstance(constraint, ByClass) else None
    projected, dead, _ = project(table, Projection(queries=queries, by_class=by_class))
    assert len(dead) == 0
    return projected


Sums = dict[NodeKey, np.ndarray]


def in_runs(
    arrivals: Runs,
    constraint: Constraint,
    timeline: Timeline,
    queries: tuple[Query, ...] = QUERIES,
    *,
    shards: int = 1,
    kept: bool = True,
    expires: int | None = None,
    **form: bool,
) -> tuple[Sums, dict[int, ShardState]]:
    """Return dense sums of all runs together, and the shards' last states; `kept` ones pass through bytes.

    The comparison with the reference shows that bytes hold the whole state, so that other properties need not test it.
    """
    whole = Aggregation(queries=queries, timeline=timeline, constraint=constraint, expires=expires)
    payloads: dict[NodeKey, list[bytes]] = {key: [] for key in whole.node_keys()}
    states: dict[int, ShardState] = {}
    released = 0
    for rows, windows in arrivals:
        aggregation = dataclasses.replace(
            whole, timeline=dataclasses.replace(timeline, windows=windows, released=released)
        )
        table = table_of(rows, constraint, queries, **form) if rows else None
        new: dict[int, list[pa.Table]] = defaultdict(list)
        for number, part in [] if table is None else shard_table(table, shards=shards):
            new[number].append(from_bytes(part))
        for number in range(shards):
            arrived = pa.concat_tables(new[number]) if new[number] else None
            sums, state = advance_shard(arrived, states.get(number), aggregation)
            states[number] = state_from_bytes(state_to_bytes(state)) if kept else state
            for key, payload in sums:
                payloads[key].append(payload)
                window = from_bytes(payload)["node"].to_numpy() // queries[key[1]].cells
                assert set(window.tolist()) <= {0 if released == 0 else windows, *range(released + 1, windows + 1)}
        released = windows
    return {key: dense(found, whole, key) for key, found in payloads.items()}, states


def in_one_run(mutations: list[Mutation], constraint: Constraint, timeline: Timeline, **form: bool) -> Sums:
    aggregation = Aggregation(queries=QUERIES, timeline=timeline, constraint=constraint)
    payloads: dict[NodeKey, list[bytes]] = {key: [] for key in aggregation.node_keys()}
    if mutations:
        for key, payload in sum_shard(table_of(mutations, constraint, **form), None, aggregation):
            payloads[key].append(payload)
    return {key: dense(found, aggregation, key) for key, found in payloads.items()}


@pytest.mark.few(4)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@given(st.data(), st.booleans(), st.integers(1, 3), st.booleans(), st.booleans())
@examples(4)
def test_late_and_repeated_rows_give_the_sums_of_the_reference(
    constraint, data, owners, shards, whole_keys, text_order
):
    mutations = data.draw(changelogs(owners=owners))
    arrivals = data.draw(runs(mutations, FINE, on_time=False))

    sums, _ = in_runs(
        arrivals, constraint, FINE, shards=shards, whole_keys=whole_keys and not owners, text_order=text_order
    )

    for (_, number, family, _), got in sums.items():
        expected = reference.leaf_sums_of_runs(arrivals, QUERIES[number], family, FINE, constraint)
        np.testing.assert_array_equal(got, expected, err_msg=f"{QUERIES[number].name} {family}")


def test_an_owner_with_too_many_entries_at_once_counts_in_no_later_run():
    """The second stay begins in the second run. In the third only one of them remains, and does not count."""
    mutations = [
        stay("e", "a", 5),
        stay("f", "b", 15),
        stay("e", None, 25, was="a"),
        stay("f", "a", 35, was="b"),
        stay("f", None, 45, was="a"),
    ]
    arrivals = [([m for m in mutations if 10 * n <= m.time < 10 * n + 10], n + 1) for n in range(6)]

    sums, _ = in_runs(arrivals, AtMost(9, entries=1), TIMELINE)

    assert sums[(BOUNDED, 0, "net", 0)].sum(axis=(0, 2)).cumsum().tolist() == [0, 1, 1, 1, 1, 1, 1]
    assert sums[(BOUNDED, 0, "left", 0)].sum() == 0
    whole = in_one_run(mutations, AtMost(9, entries=1), TIMELINE)
    for key, expected in whole.items():
        np.testing.assert_array_equal(sums[key], expected, err_msg=str(key))


@given(st.data(), st.sampled_from(CONSTRAINTS), st.booleans())
@examples(8)
def test_without_order_a_late_row_must_be_newer_by_its_time(data, constraint, owners):
    mutations = list({(m.entry, m.time): m for m in data.draw(changelogs(owners=owners))}.values())
    arrivals = data.draw(runs(mutations, FINE, on_time=False))

    sums, _ = in_runs(arrivals, constraint, FINE, seq=False)

    for (_, number, family, _), got in sums.items():
        expected = reference.leaf_sums_of_runs(arrivals, QUERIES[number], family, FINE, constraint, ordered=False)
        np.testing.assert_array_equal(got, expected, err_msg=f"{QUERIES[number].name} {family}")


@pytest.mark.few(4)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@given(st.data(), st.booleans(), st.booleans(), st.booleans())
@examples(4)
def test_on_time_any_number_of_runs_gives_the_sums_of_one(constraint, data, owners, seq, whole_keys):
    mutations = data.draw(changelogs(owners=owners))
    arrivals = data.draw(runs(mutations, FINE, on_time=True))

    sums, states = in_runs(arrivals, constraint, FINE, kept=False, seq=seq, whole_keys=whole_keys)

    assert all(state.superseded == 0 for state in states.values())
    for key, expected in in_one_run(mutations, constraint, FINE, seq=seq, whole_keys=whole_keys).items():
        np.testing.assert_array_equal(sums[key], expected, err_msg=str(key))


@pytest.mark.parametrize("constraint", [AtMost(2), Within(15)], ids=str)
@given(st.data(), st.booleans())
@examples(6)
def test_new_values_alone_keep_the_order_of_their_files(constraint, data, owners):
    mutations = data.draw(changelogs(owners=owners, inserted=True))
    arrivals = data.draw(runs(mutations, FINE, on_time=True))
    # In one run the files come in the order in which they arrived.
    files = [m for rows, _ in arrivals for m in rows]

    sums, _ = in_runs(arrivals, constraint, FINE, seq=False, before=False, position=True)

    for key, expected in in_one_run(files, constraint, FINE, seq=False, before=False, position=True).items():
        np.testing.assert_array_equal(sums[key], expected, err_msg=str(key))


@pytest.mark.parametrize("closing", [(2, 6), (2, 4, 6), (2, 3, 4, 6)], ids=str)
@pytest.mark.parametrize("wards", ["ab", "ba"])
def test_rows_of_one_time_that_wait_stay_in_the_order_of_their_files(closing, wards):
    waiting = [Mutation("e", 55, 0, None, state_of(ward)) for ward in wards]
    arrivals: Runs = [(waiting if i == 0 else [], windows) for i, windows in enumerate(closing)]

    sums, _ = in_runs(arrivals, AtMost(5), TIMELINE, (COUNT,), seq=False, before=False, position=True)

    assert sums[("bounded", 0, "net", 0)][0, 6].tolist() == [wards[-1] == "a", wards[-1] == "b", 0]


@pytest.mark.few(4)
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@given(st.data())
@examples(5)
def test_one_entry_changes_the_nodes_of_all_runs_by_at_most_the_sensitivity(constraint, data):
    arrivals = data.draw(runs(data.draw(wild_units()), TIMELINE, on_time=False))
    check(in_runs(arrivals, constraint, TIMELINE, kept=False)[0], constraint, owner=False)


@pytest.mark.parametrize("constraint", [c for c in CONSTRAINTS if all(isinstance(p, AtMost) for p in c.parts)], ids=str)
@given(st.data())
@examples(4)
def test_one_owner_changes_the_nodes_of_all_runs_by_at_most_the_sensitivity(constraint, data):
    arrivals = data.draw(runs(data.draw(wild_units(entries=4)), TIMELINE, on_time=False))
    check(in_runs(arrivals, constraint, TIMELINE, kept=False)[0], constraint, owner=True)


@given(st.data(), st.sampled_from(CONSTRAINTS))
@examples(6)
def test_the_contribution_of_a_unit_does_not_depend_on_other_units(data, constraint):
    mine = [dataclasses.replace(m, entry="mine") for m in data.draw(wild_units())]
    arrivals = data.draw(runs(data.draw(changelogs()) + mine, FINE, on_time=False))

    def only(keep) -> Sums:
        of = [([m for m in rows if keep(m)], windows) for rows, windows in arrivals]
        return in_runs(of, constraint, FINE, kept=False)[0]

    together, others, alone = only(lambda m: True), only(lambda m: m.entry != "mine"), only(lambda m: m.entry == "mine")

    for key, nodes in together.items():
        np.testing.assert_array_equal(nodes - others[key], alone[key])


# Content of a state


def state_of(ward: str | None, fare: str = "multi") -> reference.State:
    return None if ward is None else {"ward": ward, "x": 1.0, "fare": fare}


def walk(*steps: tuple[int, str | None], entry: str = "e") -> list[Mutation]:
    """Return one entry that is in those wards at those times, and absent before."""
    states = [None, *(state_of(ward) for _, ward in steps)]
    return [Mutation(entry, time, i, states[i], states[i + 1]) for i, (time, _) in enumerate(steps)]


def test_a_late_row_counts_in_the_first_open_window_and_does_not_move_the_clock():
    """Mutation 2 of time 5 arrives when windows up to 20 are released: it counts in window 3, from 20 on."""
    one, two, three = walk((3, "a"), (5, "b"), (25, "a"))

    for span, expected in ((30, [0, 1, 0, 0, 0, 0, 0]), (10, [0, 1, 0, 0, 0, 0, 0]), (17, [0, 1, 0, -1, 0, 0, 0])):
        sums, _ = in_runs([([one], 2), ([two, three], 6)], Within(span), TIMELINE, (COUNT,))
        in_a = sums[("bounded", 0, "net", 0)][0, :, 0]
        assert in_a.tolist() == expected, span


def test_the_clock_of_a_unit_starts_when_its_first_late_row_takes_effect():
    """It starts at time 20, not 3: with a span of 5 a change at 25 still counts, one at 26 does not."""
    for time, expected in ((25, 0), (26, 1)):
        sums, _ = in_runs([([], 2), (walk((3, "a"), (time, None)), 6)], Within(5), TIMELINE, (ALONE,))
        assert sums[("bounded", 0, "net", 0)][0, :, 0].sum() == expected


def test_an_entry_first_seen_later_enters_at_its_first_mutation():
    here = [Mutation("e", 33, 0, state_of("a"), state_of("b"))]

    sums, _ = in_runs([([], 2), (here, 6)], AtMost(5), TIMELINE, (COUNT,))

    assert sums[("bounded", 0, "net", 0)][0, :, :2].T.tolist() == [[0] * 7, [0, 0, 0, 0, 1, 0, 0]]
    assert sums[("bounded", 0, "entered", 0)][0, 4].tolist() == [1, 1, 0]
    assert in_runs([([], 2), (here, 6)], AtMost(1), TIMELINE, (COUNT,))[0][("bounded", 0, "net", 0)][0, 4].tolist() == [
        1,
        0,
        0,
    ]


def test_a_late_entry_does_not_precede_other_entries_of_its_owner():
    """Entry b existed before, but is first seen at 25; its owner's one allowed change is a's at 21."""
    rows = [
        Mutation("a", 21, 0, None, state_of("a"), owner="p"),
        Mutation("b", 25, 1, state_of("b"), None, owner="p"),
    ]

    sums, _ = in_runs([([], 2), (rows, 6)], AtMost(1), TIMELINE, (COUNT,))

    assert sums[("bounded", 0, "net", 0)][0, 3].tolist() == [1, 0, 0]


def test_the_initial_level_includes_an_entry_whose_first_mutation_waits():
    here = [Mutation("e", 33, 0, state_of("a"), state_of("b"))]

    sums, _ = in_runs([(here, 2), ([], 6)], AtMost(5), TIMELINE, (COUNT,))

    assert sums[("bounded", 0, "net", 0)][0, :, :2].T.tolist() == [[1, 0, 0, 0, -1, 0, 0], [0, 0, 0, 0, 1, 0, 0]]


@pytest.mark.parametrize("form", [{}, {"text_order": True}, {"whole_keys": True}], ids=str)
def test_superseded_rows_are_dropped_and_counted(form):
    one, two, three = walk((3, "a"), (7, "b"), (7, "a"))
    arrivals: Runs = [([one, three], 2), ([one, two, two, three], 4), ([], 6)]

    sums, states = in_runs(arrivals, AtMost(5), TIMELINE, (COUNT,), **form)

    assert sums[("bounded", 0, "net", 0)][0, :, 0].tolist() == [0, 1, 0, 0, 0, 0, 0]
    assert states[0].superseded == 4


def test_at_the_time_of_the_last_known_row_a_higher_order_counts():
    one, two, three = walk((3, "a"), (7, "b"), (7, None))

    sums, states = in_runs([([one, two], 2), ([three], 4)], AtMost(5), TIMELINE, (COUNT,))
    by_time, dropped = in_runs([([one, two], 2), ([three], 4)], AtMost(5), TIMELINE, (COUNT,), seq=False)

    assert sums[("bounded", 0, "net", 0)][0, :, 1].tolist() == [0, 1, 0, -1, 0, 0, 0]
    assert by_time[("bounded", 0, "net", 0)][0, :, 1].tolist() == [0, 1, 0, 0, 0, 0, 0]
    assert (states[0].superseded, dropped[0].superseded) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("constraint", "frozen"),
    [
        (AtMost(2), True),
        (AtMost(3), False),
        (Within(16), True),  # up to 19, and no window before 20 is open
        (Within(17), False),
        (ByClass("fare", (("multi", AtMost(2)), ("pass", Within(99)))), True),
        (ByClass("fare", (("multi", Within(17)), ("pass", AtMost(1)))), False),
        (ByClass("fare", (("pass", AtMost(9)),)), True),  # a class that is not listed
    ],
    ids=str,
)
def test_a_finished_unit_keeps_only_its_key(constraint, frozen):
    mutations = [*walk((3, "a"), (4, "b")), *walk((3, None), entry="gone")]
    waiting = walk((3, "a"), (4, "b"), (55, "a"))[2:]

    _, states = in_runs([(mutations + waiting, 2)], constraint, TIMELINE, (COUNT,))

    state = states[0]
    assert state.frozen["key"].to_pylist().count("e") == int(frozen)
    for kept in (state.units["key"], state.entries["entry"], state.pending["entry"]):
        assert ("e" in kept.to_pylist()) is not frozen
    more = walk((9, "a"), (15, "b"), (31, "b"))
    later, states = in_runs([(mutations + waiting, 2), (more, 4)], constraint, TIMELINE, (COUNT,))
    if frozen:
        assert not any(nodes[:, 3:].any() for nodes in later.values())
        assert "e" not in states[0].units["key"].to_pylist() + states[0].pending["entry"].to_pylist()


def test_a_unit_whose_class_is_not_seen_yet_is_not_frozen():
    constraint = ByClass("fare", (("multi", AtMost(2)),))
    arrivals: Runs = [(walk((3, None)), 2), ([Mutation("e", 25, 9, None, state_of("a"))], 4)]

    assert in_runs(arrivals, constraint, TIMELINE, (ALONE,))[0][("bounded", 0, "net", 0)][0, :, 0].tolist() == [
        *[0, 0, 0, 1],
        *[0, 0, 0],
    ]


def test_time_alone_freezes_units_in_a_run_without_rows():
    states = [in_runs([(walk((3, "a")), 1), ([], last)], Within(30), TIMELINE)[1][0] for last in (3, 4)]

    assert [state.units.num_rows for state in states] == [1, 0]
    assert [state.frozen.num_rows for state in states] == [0, 1]


def test_an_owner_is_frozen_with_all_of_its_entries():
    mutations = [
        dataclasses.replace(m, owner=owner)
        for owner, entries in (("p", "ab"), ("q", "c"))
        for entry in entries
        for m in walk((3, "a"), entry=entry)
    ]
    state = in_runs([(mutations, 1)], AtMost(2), TIMELINE, (COUNT,))[1][0]

    assert (state.frozen["key"].to_pylist(), state.entries["entry"].to_pylist()) == (["p"], ["c"])


def test_a_deleted_entry_keeps_its_time_and_order_and_no_state():
    state = in_runs([(walk((3, "a"), (4, None)), 1)], AtMost(5), TIMELINE)[1][0]
    entry = state.entries.to_pylist()[0]

    assert (entry["entry"], entry["time"], entry["order.0"]) == ("e", 4, 1)
    assert {value for name, value in entry.items() if name.endswith(".cell")} == {-1}
    assert {value for name, value in entry.items() if name.endswith(".value")} == {0}


def test_frozen_units_take_few_bytes():
    many = [m for i in range(3000) for m in walk((3, "a"), (4, "b"), entry=f"entry {i}")]
    alive, frozen = (
        len(state_to_bytes(in_runs([(many, 2)], constraint, TIMELINE, (COUNT,))[1][0]))
        for constraint in (AtMost(9), AtMost(2))
    )

    assert frozen < 0.6 * alive


@pytest.mark.slow
def test_a_state_of_many_runs_has_few_chunks():
    nights: Runs = [(walk((2 * i, "a"), entry=f"e{i}"), i + 1) for i in range(FINE.windows)]
    _, states = in_runs(nights, AtMost(1), FINE, (ALONE,))

    assert states[0].frozen["key"].to_pylist() == [f"e{i}" for i in range(FINE.windows)]
    assert states[0].frozen["key"].num_chunks <= 5


@given(st.data(), st.sampled_from(CONSTRAINTS), st.booleans(), st.booleans())
@examples(6)
def test_a_state_survives_conversion_to_bytes(data, constraint, owners, whole_keys):
    mutations = data.draw(changelogs(owners=owners))
    table = table_of(mutations, constraint, whole_keys=whole_keys) if mutations else None
    aggregation = Aggregation(queries=QUERIES, timeline=Timeline(start=0, every=10, windows=2), constraint=constraint)
    _, state = advance_shard(table, None, aggregation)

    assert state_from_bytes(state_to_bytes(state)) == state


def test_any_parquet_reader_opens_a_state(tmp_path):
    both = [*walk((3, "a"), entry="e"), *walk((5, "a"), entry="f")]
    state = in_runs([(both, 1)], AtMost(2), TIMELINE, (ALONE,))[1][0]
    (tmp_path / "units.parquet").write_bytes(state_to_bytes(state))

    with duckdb.connect() as reader:
        found = reader.execute(f"SELECT unnest(units, recursive := true) FROM '{tmp_path}/units.parquet'").fetchall()
    assert found == [tuple(row.values()) for row in state.units.to_pylist()]
    assert {key for key, *_ in found} == {"e", "f"}


def test_a_shard_without_rows_has_a_state():
    sums, states = in_runs([([], 1), ([], 2), (walk((25, "a")), 6)], AtMost(2), TIMELINE)

    assert sums[("bounded", 1, "net", 0)][0, :, 0].tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert states[0].units["key"].to_pylist() == ["e"]


# Refusals

ONE = Aggregation(queries=(ALONE,), timeline=Timeline(start=0, every=10, windows=1), constraint=AtMost(3))


def second(**changes) -> Aggregation:
    return dataclasses.replace(ONE, timeline=Timeline(start=0, every=10, windows=2, released=1), **changes)


def test_rows_and_windows_that_do_not_continue_the_state_are_refused():
    rows = table_of(walk((3, "a")), AtMost(3), (ALONE,))
    _, state = advance_shard(rows, None, ONE)

    assert advance_shard(rows, state, second())[1].superseded == 1
    with pytest.raises(ValueError, match="windows up to 10, not 0"):
        advance_shard(rows, state, ONE)
    with pytest.raises(ValueError, match="no window closes"):
        advance_shard(
            rows, state, dataclasses.replace(ONE, timeline=Timeline(start=0, every=10, windows=1, released=1))
        )
    with pytest.raises(ValueError, match="exact sums"):
        advance_shard(rows, state, second(exact=True))
    with pytest.raises(ValueError, match=r"columns were .*'order.0'"):
        advance_shard(rows.drop_columns(["order.0"]), state, second())
    with pytest.raises(ValueError, match="types of columns were"):
        advance_shard(table_of(walk((3, "a")), AtMost(3), (ALONE,), whole_keys=True), state, second())


def test_a_state_of_another_version_is_refused(monkeypatch):
    payload = state_to_bytes(advance_shard(None, None, ONE)[1])
    monkeypatch.setattr("transforms.aggregation.shard_state.VERSION", b"3")

    with pytest.raises(ValueError, match="version b'1'"):
        state_from_bytes(payload)
    with pytest.raises(ValueError, match=r"."):
        state_from_bytes(payload[: len(payload) // 2])


def test_a_timeline_cannot_have_released_more_than_has_closed():
    with pytest.raises(ValueError, match="released=3"):
        Timeline(start=0, every=10, windows=2, released=3)
