"""Rows that are intervals: a table with one row for each stay, from its start to its end.

A row with an end is two changes: the state begins, and the entry's state ends. A row without an end is one. If several
rows of one entry follow each other, each is a version of the entry; the end of a version comes before the start of the
next one at the same time. An interval is half-open, so one that ends when it begins has no changes.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.kinds import one_chunk, to_mask
from transforms.sources.columns.layout import UNTIL

ORDER = "order.0"
"""Order of changes of one entry at one time: ends before begins."""

ENDS, BEGINS = 0, 1
EMPTY = "intervals that end when they begin"
REVERSED = "the end is before the start"


def reversed_rows(time: pa.Array, until: pa.Array) -> np.ndarray:
    """Return the positions of rows that end before they begin, int64 [n].

    Args:
        time: Begins in microseconds, int64 [rows]; null if unusable.
        until: Ends in microseconds, int64 [rows]; null without an end.
    """
    return np.flatnonzero(to_mask(pc.less(until, time).fill_null(False)))


def split_intervals(table: pa.Table, rows: np.ndarray) -> tuple[list[tuple[pa.Table, np.ndarray]], int]:
    """Return the changes of intervals, and the number of intervals without changes.

    Args:
        table: Normalised rows with `time`, `until`, `order.0` and the side `after`; each is a state.
        rows: Number of each row in the file, int64 [rows], increasing.

    Returns:
        The begins and the ends, each a table without `until` and the numbers of its rows, int64 [changes]; and the
        number of empty intervals.
    """
    time, until = (one_chunk(table[name]) for name in ("time", UNTIL))
    empty = to_mask(pc.equal(until, time).fill_null(False))
    if empty.any():
        kept = pa.array(~empty)
        table, rows, until = table.filter(kept), rows[~empty], until.filter(kept)
    begins = table.drop_columns([UNTIL])
    ended = until.is_valid()
    numbers = rows[to_mask(ended)]
    ends = begins.filter(ended)
    columns = {name: ends[name] for name in ends.column_names}
    for name in columns:
        if name.startswith("after."):
            columns[name] = pa.nulls(len(numbers), ends[name].type)
    columns["time"] = until.drop_null()
    columns[ORDER] = pa.repeat(pa.scalar(ENDS), len(numbers))
    columns["after"] = pa.repeat(False, len(numbers))
    return [(begins, rows), (pa.table(columns), numbers)], int(empty.sum())
