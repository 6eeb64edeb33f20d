"""Exact counts of one shard for `evaluate`: rows that a query matches, and changes that contribution bounding cuts off.

    in    Chains, masks        one shard's mutations in order, and which changes count
    out   bytes                an Arrow IPC stream: `node`, a cell or, below zero, a count; `sum.0`, its number

The counts are private and never published: they are exact facts about people.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transforms.aggregation.chains import Chains
from transforms.aggregation.contribution_bounding import changed
from transforms.aggregation.queries import Timeline
from transforms.common.ipc import from_bytes, to_bytes

Ints = np.ndarray

COUNTS = (
    "rows",
    "rows_before",
    "rows_after",
    "rows_matched",
    "units",
    "units_matched",
    "changes",
    "changes_cut",
    "units_cut",
)
"""Names of the counts.

    rows, rows_before, rows_after     mutations in all, before the schedule, and after its last closed window
    rows_matched                      mutations after which the entry is in the query
    units, units_matched              units in all, and units that were ever in the query
    changes, changes_cut, units_cut   changes of the query, those that contribution bounding cuts off, and their units
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Counts over all shards.

    Attributes:
        counts: Name to count (`COUNTS`).
        cells: Mutations after which an entry is in each cell, int64 [cells].
    """

    counts: dict[str, int]
    cells: Ints


def count_matched(
    chains: Chains, mask: Ints | None, query: int, timeline: Timeline, *, after: int, listed: bool = True
) -> bytes:
    """Return the counts of one shard as an Arrow IPC stream.

    Args:
        chains: Rows in chain order.
        mask: Which changes count, bool [rows]; None if no change is cut off.
        query: Number of the query.
        timeline: Windows of the run.
        after: Number of rows that wait for later windows.
        listed: Whether cells are the same in all shards; otherwise all count as one.
    """
    real = (chains.row >= 0) & ~chains.carried
    cell = chains.cells[query]
    inside = cell >= 0
    changes = changed(chains, query)
    cut = np.zeros(len(changes), dtype=bool) if mask is None else changes & ~mask
    cells, rows = np.unique(cell[real & inside] * listed, return_counts=True)
    counts = {
        "rows": int(real.sum()) + after,
        "rows_before": int((real & (chains.time < timeline.start)).sum()),
        "rows_after": after,
        "rows_matched": int(rows.sum()),
        "units": len(np.unique(chains.unit[real])),
        "units_matched": len(np.unique(chains.unit[inside])),
        "changes": int(changes.sum()),
        "changes_cut": int(cut.sum()),
        "units_cut": len(np.unique(chains.unit[cut])),
    }
    numbers = np.array([*(counts[name] for name in COUNTS), *rows], dtype=np.int64)
    # Negative nodes are counts, so that one column distinguishes them from cells.
    return to_bytes(pa.table({"node": np.array([*range(-len(COUNTS), 0), *cells], dtype=np.int64), "sum.0": numbers}))


def all_matched(payloads: Iterable[bytes], cells: int) -> Matched:
    """Return the counts of a query, added up over all shards."""
    found = np.zeros(len(COUNTS) + cells, dtype=np.int64)
    for payload in payloads:
        table = from_bytes(payload)
        np.add.at(found, table["node"].to_numpy() + len(COUNTS), table["sum.0"].to_numpy())
    return Matched(counts=dict(zip(COUNTS, found.tolist(), strict=False)), cells=found[len(COUNTS) :])
