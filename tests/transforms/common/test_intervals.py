"""Rows that are intervals become the changes of a plain loop."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from transforms.aggregation.projection import nothing
from transforms.common.intervals import BEGINS, ENDS, empty_rows, reversed_rows, split_intervals

INTERVAL = st.tuples(st.integers(0, 9), st.none() | st.integers(0, 20), st.integers(-1, 3))


@given(st.lists(INTERVAL, max_size=12))
def test_an_interval_is_a_begin_and_an_end(intervals: list[tuple[int, int | None, int]]) -> None:
    intervals = [(begin, None if end is None else max(begin, end), cell) for begin, end, cell in intervals]
    columns = {
        "entry": pa.array(map(str, range(len(intervals))), pa.string()),
        "time": pa.array([begin for begin, _, _ in intervals], pa.int64()),
        "until": pa.array([end for _, end, _ in intervals], pa.int64()),
        "order.position": pa.array(range(5, 5 + len(intervals)), pa.int64()),
        "after.0.cell": pa.array([cell for _, _, cell in intervals], pa.int8()),
    }
    expected = []
    for entry, (begin, end, cell) in enumerate(intervals):
        if begin != end:
            expected.append((str(entry), begin, BEGINS, entry + 5, cell))
        if end is not None and begin != end:
            expected.append((str(entry), end, ENDS, entry + 5, -1))

    table = pa.table(columns)
    table = table.filter(pa.array(~empty_rows(table)))
    begins, ends, ended = split_intervals(table, nothing)

    names = ["entry", "time", "order.0", "order.position", "after.0.cell"]
    assert begins.column_names == ends.column_names == names
    assert begins.schema == ends.schema
    found = [row for part in (begins, ends) for row in zip(*(part[name].to_pylist() for name in names), strict=True)]
    assert sorted(found) == sorted(expected)
    assert table["entry"].take(pa.array(ended)).to_pylist() == ends["entry"].to_pylist()


def test_only_an_end_before_its_begin_is_reversed() -> None:
    found = reversed_rows(pa.array([3, 3, 3, 3, None]), pa.array([2, 3, 4, None, 1]))

    assert found.tolist() == [0]
