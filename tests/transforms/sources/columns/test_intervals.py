"""Rows that are intervals become the changes of a plain loop."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from transforms.sources.columns.intervals import BEGINS, ENDS, reversed_rows, split_intervals

INTERVAL = st.tuples(st.integers(0, 9), st.none() | st.integers(0, 20), st.sampled_from(["a", "b", None]))


@given(st.lists(INTERVAL, max_size=12))
def test_an_interval_is_a_begin_and_an_end(intervals: list[tuple[int, int | None, str | None]]) -> None:
    intervals = [(begin, None if end is None else max(begin, end), ward) for begin, end, ward in intervals]
    columns = {
        "entry": pa.array(range(len(intervals)), pa.int64()),
        "time": pa.array([begin for begin, _, _ in intervals], pa.int64()),
        "order.0": pa.repeat(pa.scalar(BEGINS), len(intervals)),
        "until": pa.array([end for _, end, _ in intervals], pa.int64()),
        "after": pa.repeat(True, len(intervals)),
        "after.ward": pa.array([ward for _, _, ward in intervals], pa.string()).dictionary_encode(),
    }
    expected = []
    for entry, (begin, end, ward) in enumerate(intervals):
        if begin != end:
            expected.append((entry, begin, BEGINS, True, ward, entry + 5))
        if end is not None and begin != end:
            expected.append((entry, end, ENDS, False, None, entry + 5))

    parts, empty = split_intervals(pa.table(columns), np.arange(len(intervals)) + 5)

    names = ["entry", "time", "order.0", "after", "after.ward"]
    found = []
    for table, rows in parts:
        assert table.column_names == names
        found += zip(*(table[name].to_pylist() for name in names), rows.tolist(), strict=True)
    assert sorted(found, key=lambda row: (row[0], -row[2])) == expected
    assert empty == sum(begin == end for begin, end, _ in intervals)


def test_only_an_end_before_its_begin_is_reversed() -> None:
    found = reversed_rows(pa.array([3, 3, 3, 3, None]), pa.array([2, 3, 4, None, 1]))

    assert found.tolist() == [0]
