"""Order of rows of one chain at one time, and removal of repeated rows.

    in    rows sorted by (chain, time)
    out   the rows; those of one chain and time are sorted by source order, and linked by images if that leaves ties

With before images, a row is repeated if it has the time, the order and both images of another. With new values only,
the order is that in the files, and a row is repeated if it is read twice.
"""

import numpy as np

from transforms.aggregation.linking import UNKNOWN, link
from transforms.aggregation.shard_rows import Ints, ShardRows
from transforms.common.batches import FILE


def settle(order: Ints, same: Ints, chain: Ints, columns: ShardRows) -> tuple[Ints, Ints]:
    """Return the rows in order, and which places are kept; the places of other rows do not change.

    Args:
        order: Numbers of the rows, sorted by (chain, time), int64 [rows].
        same: Whether each row except the first has the chain and time of the row before it, bool [rows - 1].
        chain: Chain of each row by its number, int64 [numbers].
        columns: Columns of the rows.

    Returns:
        Numbers of the rows, int64 [rows], and a mask of the places to keep, bool [rows].
    """
    tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    rows = order[tied]
    run = np.cumsum(~np.insert(same, 0, False))[tied]
    source = [columns.order(name, rows) for name in columns.orders]
    images = [columns.image_before(rows)] if columns.has_before else []
    images += [columns.image_after(rows)] if columns.images else []
    index = np.lexsort([*images[::-1], *source[::-1], run])
    if images:
        index = index[~_repeats([run, *source, *images], index)]
    elif FILE in columns.table.column_names:
        index = index[~_again(run[index], *(each[index] for each in columns.place(rows)))]
    if columns.has_before:
        group = np.cumsum(~_repeats([run, *source], index))
        mine = chain[rows[index]]
        first_slot = tied[np.searchsorted(run, run[index])]
        last_slot = tied[np.searchsorted(run, run[index], side="right") - 1]
        same_run = np.diff(run[index]) == 0
        next_run = (first_slot[1:] == last_slot[:-1] + 1) & (np.diff(mine) == 0)
        follows = np.insert(same_run | next_run, 0, False)
        above = order[np.maximum(first_slot - 1, 0)]
        known = (chain[above] == mine) & (first_slot > 0)
        start = np.where(known, columns.image_after(above), UNKNOWN)
        before, after = (image[index] for image in images)
        index = index[link(group, before, after, start, follows)]
    kept = np.ones(len(order), dtype=bool)
    kept[tied] = False
    # The rows of a run are contiguous, so the ordered rows fill the run's first slots.
    slots = np.sort(tied[_slots(run, run[index])])
    settled = order.copy()
    settled[slots] = rows[index]
    kept[slots] = True
    return settled, kept


def _again(run: Ints, file: Ints, row: Ints) -> Ints:
    """Return whether each row repeats an earlier row of its instant: it waited, and its file was read again."""
    order = np.lexsort([np.arange(len(run)), row, file, run])
    again = np.empty(len(run), dtype=bool)
    again[order] = _repeats([run, file, row], order)
    return again


def _slots(run: Ints, kept: Ints) -> Ints:
    """Return places in `run` (sorted) for the kept rows: the first ones of each run."""
    counts = np.bincount(kept, minlength=int(run.max()) + 1)
    place_in_run = np.arange(len(run)) - np.searchsorted(run, run)
    return np.flatnonzero(place_in_run < counts[run])


def _repeats(columns: list[Ints], index: Ints) -> Ints:
    """Return whether each row of the sorted `index` equals the one before it in all columns."""
    if len(index) == 0:
        return np.zeros(0, dtype=bool)
    equal = np.ones(len(index) - 1, dtype=bool)
    for column in columns:
        equal &= np.diff(column[index]) == 0
    return np.insert(equal, 0, False)
