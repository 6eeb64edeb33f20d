"""What of one shard a query matches, and what its contribution bound cuts off: exact counts, private, for `evaluate`.

    in    Chains, masks        one shard's mutations in order, and which changes count
    out   bytes                an Arrow IPC stream: `node`, a cell or, below zero, a count; `sum.0`, its number

Not for release: these are exact facts about people.
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
"""Mutations in all, of times before the schedule, of times after its last closed window, and those after which the
entry is in the query; units in all, and those that were ever in it; its changes, those that the contribution bound cuts
off, and the units that these are of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Counts by name, over all shards; `cells` [cells]: the mutations after which an entry is in each."""

    counts: dict[str, int]
    cells: Ints


def count_matched(chains: Chains, mask: Ints | None, query: int, timeline: Timeline, *, after: int) -> bytes:
    """The counts of one shard.

    Args:
        mask: which changes count; None where none is cut off.
        after: rows that wait for windows to come.
    """
    real = (chains.row >= 0) & ~chains.carried
    cell = chains.cells[query]
    inside = cell >= 0
    changes = changed(chains, query)
    cut = np.zeros(len(changes), dtype=bool) if mask is None else changes & ~mask
    cells, rows = np.unique(cell[real & inside], return_counts=True)
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
    # Counts come before all cells, so that one column tells them apart.
    return to_bytes(pa.table({"node": np.array([*range(-len(COUNTS), 0), *cells], dtype=np.int64), "sum.0": numbers}))


def all_matched(payloads: Iterable[bytes], cells: int) -> Matched:
    """The counts of all shards of a query."""
    found = np.zeros(len(COUNTS) + cells, dtype=np.int64)
    for payload in payloads:
        table = from_bytes(payload)
        np.add.at(found, table["node"].to_numpy() + len(COUNTS), table["sum.0"].to_numpy())
    return Matched(counts=dict(zip(COUNTS, found.tolist(), strict=False)), cells=found[len(COUNTS) :])
