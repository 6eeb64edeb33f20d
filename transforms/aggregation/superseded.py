"""Superseded rows: those that are not after the last known mutation of their entry."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.aggregation.chains import encode as encode_chains
from transforms.aggregation.shard_rows import BEFORE_ALL, lasting_orders, with_carried

Ints = np.ndarray


def superseded_rows(table: pa.Table, carried: pa.Table, closed: int) -> Ints:
    """Return which rows are not after the last known mutation of their entry, by (time, source order).

    Args:
        table: Projected rows of one shard.
        carried: Last known mutation of each entry before the run.
        closed: End of the windows released so far, in microseconds since the epoch.

    Returns:
        Mask of the rows, bool [rows].
    """
    found = np.zeros(table.num_rows, dtype=bool)
    late = np.flatnonzero(table["time"].to_numpy() < closed)  # all other rows are after every known one
    if len(late) == 0 or carried.num_rows == 0:
        return found
    rows = table.take(pa.array(late))
    chain = encode_chains(rows, carried).chain
    place = np.full(int(chain.max()) + 1, -1)
    place[chain[: carried.num_rows]] = np.arange(carried.num_rows)
    place = place[chain[carried.num_rows :]]
    time, last = rows["time"].to_numpy(), pc.fill_null(carried["time"], BEFORE_ALL).to_numpy()[place]
    old = (place >= 0) & (time < last)
    tied = np.flatnonzero((place >= 0) & (time == last))
    for name in lasting_orders(table):
        both = with_carried(rows.take(pa.array(tied)), carried.take(pa.array(place[tied])), name)
        known, mine = np.split(pc.rank(both, tiebreaker="dense").to_numpy().astype(np.int64), 2)
        old[tied[mine < known]] = True
        tied = tied[mine == known]
    old[tied] = True
    found[late[old]] = True
    return found
