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


def split_intervals(table: pa.Table, rows: np.ndarray) -> tuple[pa.Table, np.ndarray, int]:
    """Return the changes of intervals, the numbers of their rows, and the number of intervals without changes.

    Args:
        table: Normalised rows with `time`, `until`, `order.0` and the side `after`; each is a state.
        rows: Number of each row in the file, int64 [rows], increasing.

    Returns:
        The table of changes without `until`, in the order of the rows; int64 [changes]; the number of empty intervals.
    """
    time, until = (one_chunk(table[name]) for name in ("time", UNTIL))
    ended = to_mask(until.is_valid())
    empty = to_mask(pc.equal(until, time).fill_null(False))
    at = np.repeat(np.arange(len(rows)), np.where(empty, 0, 1 + ended))
    ends = np.insert(at[1:] == at[:-1], 0, False) if len(at) else np.zeros(0, dtype=bool)
    some, of_begins = pa.array(at), pa.array(at, mask=ends)
    columns = {}
    for name in table.column_names:
        column = one_chunk(table[name])
        columns[name] = column.take(of_begins if name.startswith("after.") else some)
    columns["time"] = pc.if_else(pa.array(ends), columns.pop(UNTIL), columns["time"])
    columns[ORDER] = pa.array(np.where(ends, ENDS, BEGINS))
    columns["after"] = pa.array(~ends)
    return pa.table({name: columns[name] for name in table.column_names if name != UNTIL}), rows[at], int(empty.sum())
