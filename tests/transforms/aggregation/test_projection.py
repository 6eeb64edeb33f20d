"""Projection of states: cells, clamped values, classes, owners."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.measure import Measure
from tests.reference import project_state
from tests.strategies import QUERIES, STATES
from transforms.aggregation.expression import Condition
from transforms.aggregation.listed_key import ListedKey
from transforms.aggregation.projection import GONE, Projection, _ProjectDoFn, cell_codes, project, refuse_form
from transforms.aggregation.queries import Query
from transforms.common.batches import Batch

INF, NAN = float("inf"), float("nan")
COUNT = Query(name="all", measure=Measure(kind="count"))
KINDS = {"ward": pa.string(), "x": pa.float64(), "fare": pa.string()}


def batch(before: list[dict | None] | None, after: list[dict | None], **columns: list) -> pa.Table:
    """Return a normalised table with texts as dictionaries."""
    table = {"entry": [f"e{row}" for row in range(len(after))], "time": list(range(len(after))), **columns}
    for side, states in (("before", before), ("after", after)):
        if states is None:
            continue
        table[side] = pa.array([state is not None for state in states], pa.bool_())
        for name, kind in KINDS.items():
            column = pa.array([state.get(name) if state else None for state in states], kind)
            table[f"{side}.{name}"] = column.dictionary_encode() if kind == pa.string() else column
    return pa.table(table)


@given(st.lists(STATES, max_size=8))
def test_states_are_projected_as_the_slow_reference_does(states: list[dict | None]) -> None:
    table, dead, _ = project(batch(None, states), Projection(queries=QUERIES))

    assert len(dead) == 0
    for number, query in enumerate(QUERIES):
        expected = [project_state(state, query) or (-1, 0) for state in states]
        assert table[f"after.{number}.cell"].to_pylist() == [cell for cell, _ in expected]
        if query.column is not None:
            assert table[f"after.{number}.value"].to_pylist() == [value for _, value in expected]


@pytest.mark.parametrize(
    ("invalid", "expected"),
    [("drop", [-3, 5, None, None, 5, -3]), ("min", [-3, 5, -3, -3, 5, -3]), ("max", [-3, 5, 5, 5, 5, -3])],
)
def test_values_are_clamped_and_missing_ones_count_as_the_query_states(invalid: str, expected: list) -> None:
    query = Query(name="x", measure=Measure(kind="sum", low=-3, high=5), column="x", invalid=invalid)
    states = [{"x": value} for value in (-4.0, 5.5, NAN, None, INF, -INF)]

    table, _, _ = project(batch(None, states), Projection(queries=(query,)))

    cells, values = table["after.0.cell"].to_pylist(), table["after.0.value"].to_pylist()
    told = [None if cell < 0 else value * query.measure.grid for cell, value in zip(cells, values, strict=True)]
    assert told == expected


def test_an_unknown_condition_is_not_satisfied() -> None:
    query = Query(name="a", measure=Measure(kind="count"), where=Condition.parse("ward <> 'b'"))
    states = [{"ward": "a"}, {"ward": "b"}, {"ward": None}, None]

    table, _, _ = project(batch(None, states), Projection(queries=(query,)))

    assert table["after.0.cell"].to_pylist() == [0, -1, -1, -1]


def test_the_last_key_varies_fastest_and_an_unlisted_value_has_no_cell() -> None:
    states = pa.table({"a": ["p", "q", "q", "z"], "b": ["x", "z", "y", "x"]})

    keys = [("a", ListedKey(("p", "q"))), ("b", ListedKey(("x", "y", "other")))]
    assert cell_codes(states, keys).tolist() == [0, 5, 4, -1]


def test_an_unlisted_class_differs_from_an_absent_state() -> None:
    projection = Projection(queries=(COUNT,), by_class=("fare", ("multi", "pass")))

    table, _, _ = project(batch(None, [{"fare": "pass"}, {"fare": "free"}, {"fare": None}, None]), projection)

    assert table["after.class"].to_pylist() == [1, -1, -1, GONE]


def test_an_owner_of_the_mutation_is_the_unit() -> None:
    table, _, _ = project(batch(None, [{"x": 1.0}, None], owner=["p", "q"]), Projection(queries=(COUNT,)))

    assert table["unit"].to_pylist() == ["p", "q"]


def test_queries_read_an_owner_of_the_mutation_as_a_column_of_both_states() -> None:
    query = Query(
        name="mine",
        measure=Measure(kind="count"),
        where=Condition.parse("nurse <> 'r'"),
        by=(("nurse", ("p", "q", "other")),),
    )
    projection = Projection(queries=(query,), owner="nurse", by_class=("nurse", ("q",)))

    table, _, _ = project(batch([None] * 4, [{"x": 1.0}] * 3 + [None], owner=["q", "p", "r", "q"]), projection)

    assert table["after.0.cell"].to_pylist() == [1, 0, -1, -1]
    assert table["before.0.cell"].to_pylist() == [-1, -1, -1, -1]
    assert table["after.class"].to_pylist() == [0, -1, -1, GONE]


OWNED = Projection(queries=(COUNT,), owner="ward", by_class=("fare", ("multi",)))


def owned(before: list[dict | None] | None, after: list[dict | None]) -> tuple[list[tuple], list[int]]:
    """Return (unit, entry, cell before, cell after, class before, class after) of each row, and the dead rows."""
    table, dead, _ = project(batch(before, after), OWNED)
    names = ["unit", "entry", *(f"{side}.{name}" for name in ("0.cell", "class") for side in ("before", "after"))]
    columns = [table[name].to_pylist() for name in names if name in table.column_names]
    return sorted(zip(*columns, strict=True)), dead.tolist()


def test_a_change_of_owner_is_a_deletion_for_one_and_an_insertion_for_the_other() -> None:
    rows, dead = owned([{"ward": "p", "fare": "multi"}], [{"ward": "q", "fare": "free"}])

    assert rows == [("p", "e0", 0, -1, 0, GONE), ("q", "e0", -1, 0, GONE, -1)]
    assert dead == []


def test_insertions_changes_and_deletions_stay_with_their_owner() -> None:
    state = {"ward": "p", "fare": "multi"}

    rows, dead = owned([None, state, state], [state, state, None])

    assert rows == [
        ("p", "e0", -1, 0, GONE, 0),
        ("p", "e1", 0, 0, 0, 0),
        ("p", "e2", 0, -1, 0, GONE),
    ]
    assert dead == []


def test_a_state_that_loses_its_owner_stays_with_the_last_one() -> None:
    rows, dead = owned([{"ward": "p", "fare": "multi"}], [{"ward": None, "fare": "multi"}])

    assert rows == [("p", "e0", 0, 0, 0, 0)]
    assert dead == []


def test_rows_without_an_owner_are_dead_letters() -> None:
    nobody = {"ward": None, "fare": "multi"}

    assert owned([nobody, None], [None, nobody]) == ([], [0, 1])
    assert owned(None, [nobody, {"ward": "p", "fare": "multi"}, None]) == ([("p", "e1", 0, 0)], [0, 2])


def test_a_whole_cell_count_fits_the_column_that_holds_it() -> None:
    """Codes have the narrowest integer type: the last of 128 and of 40 000 cells must not wrap around."""
    for cells in (128, 129, 40_000):
        wards = tuple(f"w{number}" for number in range(cells))
        query = Query(name="beds", measure=Measure(kind="count"), by=(("ward", wards),))

        table, _, _ = project(batch(None, [{"ward": wards[-1]}]), Projection(queries=(query,)))

        assert table["after.0.cell"].to_pylist() == [cells - 1]


@given(st.floats(-(2.0**39), 2.0**39), st.floats(1, 2.0**39))
def test_projected_values_fit_the_column_that_holds_them(low: float, width: float) -> None:
    measure = Measure(kind="sum", low=low, high=low + width)
    query = Query(name="x", measure=measure, column="x")

    table, _, _ = project(batch(None, [{"x": -INF}, {"x": INF}]), Projection(queries=(query,)))

    told = np.array(table["after.0.value"].to_pylist()) * measure.grid
    np.testing.assert_allclose(told, [low, low + width], rtol=0, atol=measure.grid)


OWN = Projection(
    queries=(Query(name="beds", measure=Measure(kind="count"), by=(("ward", ("a", "other")),)),), owner="x"
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entry": None}, "a batch has no column 'entry'"),
        ({"time": None}, "a batch has no column 'time'"),
        ({"before": None, "after": None}, "a batch has no column 'after'"),
        ({"before.ward": None}, "a batch has no column 'before.ward'"),
        ({"after.x": None}, "a batch has no column 'after.x'"),
        (
            {"time": pa.array([0, 1], pa.timestamp("us", "UTC"))},
            r"column 'time' has type timestamp\[us, tz=UTC\]; expect",
        ),
        ({"entry": pa.array(["e0", None])}, "column 'entry' has nulls; leave out changes without a key"),
        ({"time": pa.array([0, None], pa.int64())}, "column 'time' has nulls; leave out"),
    ],
)
def test_a_batch_of_a_source_of_ones_own_is_refused_in_another_form(changes, message):
    """A null key would be a truncate: the row of one person would delete the entries of all others."""
    state = {"ward": "a", "x": 1.0}
    table = batch([None, state], [state, None])
    refuse_form(table, OWN)
    columns = {name: changes.get(name, table[name]) for name in table.column_names}
    changed = pa.table({name: column for name, column in columns.items() if column is not None})

    with pytest.raises(ValueError, match=message):
        [*_ProjectDoFn(OWN, own=True).process(Batch("rows", 1, changed))]
