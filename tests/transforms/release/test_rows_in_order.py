"""Rows of several files, in any order, are put in the order of windows and cells."""

import numpy as np
import pyarrow as pa
import pytest

from privacy.measure import Measure
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.common.errors import InputError
from transforms.common.windows import Windows
from transforms.release.published_columns import TIME
from transforms.release.rows_in_order import in_order, placed

NUMBERS = 5
WEEKS = Series(kind="sliding", width=3, every=2)
WINDOWS = Windows(start=100, every=10)
QUERY = Query(
    name="beds", measure=Measure(kind="count"), by=(("ward", ("a", "b")), ("floor", (2, 1, 3))), publish=(WEEKS,)
)


def ordered() -> pa.Table:
    """Return all rows in order, with a column that does not follow from it and one of another query."""
    ends = np.repeat(np.arange(NUMBERS) * 2 + 3, 6)
    count = len(ends)
    return pa.table(
        {
            "query": pa.array(["beds"] * count),
            "kind": pa.array(["sliding"] * count),
            "window_start": pa.array(100 + 10 * (ends - 3)).cast(TIME),
            "window_end": pa.array(100 + 10 * ends).cast(TIME),
            "ward": pa.array(["a", "a", "a", "b", "b", "b"] * NUMBERS),
            "other": pa.nulls(count, pa.string()),
            "floor": pa.array([2, 1, 3] * 2 * NUMBERS),
            "value": np.random.default_rng(1).normal(size=count),
        }
    )


def parts(table: pa.Table, rows: np.ndarray) -> list[pa.Table]:
    """Return these rows in three tables, each with a row of another kind."""
    shuffled = table.take(pa.array(rows))
    foreign = shuffled.slice(0, 1).set_column(1, "kind", pa.array(["level"]))
    return [pa.concat_tables([shuffled.slice(begin, 10), foreign]) for begin in (0, 10, 20)]


def joined(tables: list[pa.Table]) -> pa.Table:
    (rows,) = placed(tables, QUERY, [WEEKS], windows=WINDOWS)
    return in_order(rows, QUERY, WEEKS, WINDOWS)


def test_shuffled_rows_of_several_tables_come_in_order() -> None:
    table = ordered()
    shuffled = np.random.default_rng(2).permutation(len(table))

    (few,) = placed(parts(table, shuffled), QUERY, [WEEKS], windows=WINDOWS, only=("value", "floor"))

    assert joined(parts(table, shuffled)).equals(table)
    assert in_order(few, QUERY, WEEKS, WINDOWS).equals(table.select(["floor", "value"]))


def test_rows_that_changed_places_in_pairs_come_in_order() -> None:
    table = ordered()

    assert joined(parts(table, np.arange(30)[::-1])).equals(table)


@pytest.mark.parametrize("wrong", [0, 12, -1], ids=["there twice", "of no cell", "missing"])
def test_rows_of_other_numbers_are_refused(wrong: int) -> None:
    table, rows = ordered(), np.arange(30)
    rows[7] = 3 if wrong == 0 else rows[7]
    if wrong == 12:
        table = table.set_column(4, "ward", pa.array([*table["ward"].to_pylist()[:-1], "c"]))
    with pytest.raises(InputError, match="query beds, sliding"):
        joined(parts(table, rows if wrong != -1 else rows[:-1]))
