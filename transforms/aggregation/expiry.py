"""Expiry: the state of an entry ends a fixed time after its last mutation, so a log of events is a table of states.

    in    pa.Table      projected rows of one shard
          pa.Table      the last known rows of entries seen in earlier runs
    out   pa.Table      a deletion for each state that ends because no mutation of its entry came in time

An expiry is a mutation like any other: it counts towards the contribution bound, in the order of time, and depends only
on the rows of the same unit. The state of a shard keeps the time of the last mutation, not of its expiry. So a late
mutation of an entry that has expired is not superseded, and the entry exists again until that mutation expires.
"""

import numpy as np
import pyarrow as pa

from transforms.aggregation.chains import encode
from transforms.aggregation.projection import nothing
from transforms.aggregation.shard_rows import BEFORE_ALL, with_carried
from transforms.common.images import IMAGE

Ints = np.ndarray


def expirations(rows: pa.Table, known: pa.Table | None, *, expires: int, closed: int | None, until: int) -> pa.Table:
    """Return the deletions of states that end before `until`, except those of earlier runs.

    A mutation at the time at which a state would end renews it.

    Args:
        rows: Projected rows of entries, without superseded ones.
        known: Last known mutation of each entry before the run, or None; `time` is null for none.
        expires: Time from the last mutation of an entry to the end of its state, in microseconds.
        closed: End of the windows released so far, in microseconds since the epoch; None: no windows.
        until: End of the last window of this run.

    Returns:
        Rows with the columns of `rows`. Each has the place and the order of the mutation whose state ends.
    """
    carried = None if known is None or known.num_rows == 0 else known
    if rows.num_rows == 0 and carried is None:
        return rows
    earlier = 0 if carried is None else carried.num_rows
    chain = encode(rows, carried).chain
    time = with_carried(rows, carried, "time").combine_chunks().fill_null(BEFORE_ALL).to_numpy()
    order = np.lexsort([time, chain])
    last = np.append(np.diff(chain[order]) != 0, True)
    follows = np.append(time[order][1:], 0)
    real = time[order] != BEFORE_ALL
    end = np.where(real, time[order], until) + expires
    ends = real & (end < until) & (last | (follows > end))
    if closed is not None:
        ends &= (order >= earlier) | (end >= closed)
    return _deletions(rows, carried, order[ends], end[ends])


def _deletions(rows: pa.Table, carried: pa.Table | None, numbers: Ints, end: Ints) -> pa.Table:
    """Return deletions at `end` of the entries of some rows, carried rows first."""
    columns = {}
    for name in rows.column_names:
        kind = rows.schema.field(name).type
        if name == "time":
            columns[name] = pa.array(end, kind)
        elif name.startswith(("after.", f"{IMAGE}.")):
            columns[name] = nothing(name, kind, len(numbers))
        elif carried is None or name in carried.column_names:
            columns[name] = with_carried(rows, carried, name).take(pa.array(numbers)).cast(kind)
        else:  # places in files, which only rows of this run have
            columns[name] = _places(rows[name], carried.num_rows, numbers)
    return pa.table(columns).cast(rows.schema)


def _places(column: pa.ChunkedArray, earlier: int, numbers: Ints) -> pa.ChunkedArray:
    of_rows = pa.array(numbers - earlier, mask=numbers < earlier)
    return column.take(of_rows).fill_null(0)
