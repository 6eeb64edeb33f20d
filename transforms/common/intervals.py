"""Rows that are intervals: a table with one row for each stay, from its start to its end.

A row with an end is two changes: the state begins, and the entry's state ends. A row without an end is one. If several
rows of one entry follow each other, each is a version of the entry; the end of a version comes before the start of the
next one at the same time. An interval is half-open, so one that ends when it begins has no changes.

Rows pass as intervals from the readers to the shards, so that each is projected, hashed and sent once.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.common.keys import take
from transforms.common.kinds import one_chunk, to_mask, valid

UNTIL = "until"
"""Normalised name of the end of an interval."""

ORDER = "order.0"
"""Order of changes of one entry at one time: ends before begins."""

ENDS, BEGINS = 0, 1
EMPTY = "intervals that end when they begin"
REVERSED = "the end is before the start"

Absent = Callable[[str, pa.DataType, int], pa.Array]
"""Return a column `after...` of rows without a state, from its name, its type and the number of rows."""


def reversed_rows(time: pa.Array, until: pa.Array) -> np.ndarray:
    """Return the positions of rows that end before they begin, int64 [n].

    Args:
        time: Begins in microseconds, int64 [rows]; null if unusable.
        until: Ends in microseconds, int64 [rows]; null without an end.
    """
    return np.flatnonzero(to_mask(pc.less(until, time).fill_null(False)))


def empty_rows(table: pa.Table) -> np.ndarray:
    """Return which rows end when they begin, bool [rows]; the times are those of `reversed_rows`."""
    return to_mask(pc.equal(table[UNTIL], table["time"]).fill_null(False))


def split_intervals(table: pa.Table, absent: Absent) -> tuple[pa.Table, pa.Table, np.ndarray]:
    """Return the begins and the ends of intervals, without `until` and with `order.0`.

    Args:
        table: Rows with `time`, `until` and columns `after...`, none of them empty or reversed.
        absent: Columns of rows without a state.

    Returns:
        The begins, the ends, and the positions of the intervals that end, int64 [ends].
    """
    until = one_chunk(table[UNTIL])
    ended = np.flatnonzero(valid(until))
    begins, ends = {}, {}
    for name in table.column_names:
        if name == UNTIL:
            continue
        begins[name] = column = one_chunk(table[name])
        if name == "time":
            ends[name] = until.drop_null()
            begins[ORDER], ends[ORDER] = (
                pa.array(np.full(rows, order, np.int8)) for rows, order in ((len(column), BEGINS), (len(ended), ENDS))
            )
        elif name.startswith("after"):
            ends[name] = absent(name, column.type, len(ended))
        else:
            ends[name] = take(column, ended)
    return pa.table(begins), pa.table(ends), ended
