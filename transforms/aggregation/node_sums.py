"""Exact sums of nodes: their definition, the keys of chunks, and the encoding of chunks.

A large release is cut into chunks of cells, the same in all runs, each with a separate state. A run that closes many
windows processes a chunk in blocks of windows, so that no step holds all nodes at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from privacy.constraint import Constraint
from privacy.planning.promise import Promise
from privacy.protection import EVERYTHING, Protection
from privacy.series import Family
from transforms.aggregation.leaf_sums import LeafSums
from transforms.aggregation.projection import Projection
from transforms.aggregation.queries import Query, Timeline
from transforms.common.ipc import from_bytes, to_bytes

NodeKey = tuple[str, int, Family, int]
"""(variant, query's number, family, chunk of cells). Variant is `BOUNDED`, `EXACT` or `MATCHED`."""

BOUNDED = "bounded"
EXACT = "exact"
MATCHED = "matched"
"""Counts of transforms.aggregation.matched, with the exact sums under the first chunk of each query."""

CHUNK_CELLS = 2**16
"""Most cells in one chunk: a night of a million cells has sixteen chunks, each with a few files."""

BLOCK_LEAVES = 2**20
"""Approximate number of leaves in one block of a chunk's windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """Definition of sums: queries over a timeline, with contributions of units (entries or owners) bounded by a
    constraint.

    Each part of a pipeline is made from an aggregation or checked against it.

    Attributes:
        queries: The queries.
        timeline: Windows of the run.
        constraint: Contribution bound of each unit.
        owner: Column that names the owner of an entry, in the mutation or in its states; None if the unit is the entry.
        exact: Whether to sum all changes too, without contribution bounding (for the data controller).
        expires: Time from an entry's last mutation to the end of its state, in microseconds; None: no end.
    """

    queries: tuple[Query, ...]
    timeline: Timeline
    constraint: Constraint
    owner: str | None = None
    exact: bool = False
    expires: int | None = None

    @property
    def projection(self) -> Projection:
        """Projection of states that these sums need."""
        constraint = self.constraint
        by_class = None if constraint.column is None else (constraint.column, constraint.names)
        return Projection(queries=self.queries, owner=self.owner, by_class=by_class)

    def promise(self, protects: Protection = EVERYTHING) -> Promise:
        """Return the promise that these sums can keep, from which a plan for them is made."""
        return Promise(
            constraint=self.constraint,
            window=self.timeline.every,
            windows=self.timeline.windows,
            owner=self.owner is not None,
            protects=protects,
            slack=self.timeline.bounds.slack,
        )

    @property
    def block(self) -> int | None:
        """Windows in a block of time for which changes are bounded; None if the constraint has no blocks."""
        if (at_once := self.constraint.at_once) is None or at_once.block is None:
            return None
        block, rest = divmod(at_once.block, self.timeline.every)
        if rest:
            raise ValueError("a block in which changes are counted is made of whole windows")
        return block

    def with_listed(self, number: int, keys: Sequence[str]) -> "Aggregation":
        """Return the aggregation with these cells of a query whose keys are found."""
        queries = [*self.queries]
        queries[number] = queries[number].with_listed(keys)
        return replace(self, queries=tuple(queries))

    def chunk_cells(self, query: int) -> int:
        """Return the number of cells in one chunk of a query: all of them if they are processed together."""
        asked = self.queries[query]
        return asked.cells if asked.together else min(asked.cells, CHUNK_CELLS)

    def cells_of(self, key: NodeKey) -> range:
        """Return the cells of a chunk."""
        _, query, _, chunk = key
        size = self.chunk_cells(query)
        return range(chunk * size, min((chunk + 1) * size, self.queries[query].cells))

    def blocks(self, query: int) -> list[tuple[int, int]]:
        """Return the blocks (first, end) of this run's windows that are processed at once, at least one."""
        size = max(1, BLOCK_LEAVES // self.chunk_cells(query))
        released, windows = self.timeline.released, self.timeline.windows
        if self.queries[query].discovers:  # keys that are found do not come window by window
            return [(released, windows)]
        cuts = [*range(released, windows, size), windows] if released < windows else [released, windows]
        return list(pairwise(cuts))

    def chunks(self, query: int) -> int:
        """Return the number of chunks of a query."""
        return -(-self.queries[query].cells // self.chunk_cells(query))

    def node_keys(self) -> list[NodeKey]:
        """Return every chunk of nodes that a release must cover; it does not depend on the data."""
        return [
            (variant, number, family, chunk)
            for variant in ([BOUNDED, EXACT] if self.exact else [BOUNDED])
            for number, query in enumerate(self.queries)
            for family in query.chunked
            for chunk in range(self.chunks(number))
        ]


@dataclass(frozen=True, slots=True)
class Summed:
    """Origin of bounded sums.

    Attributes:
        aggregation: Definition of the sums.
        past: Folder with the state that the previous run left; None in the first run.
        keep: Whether a state is written for the next run.
    """

    aggregation: Aggregation
    past: str | None = None
    keep: bool = False

    def __post_init__(self) -> None:
        if (self.past is None) != (self.aggregation.timeline.released == 0):
            raise ValueError(
                "the timeline states how many windows earlier runs have released, and past the folder of their state: "
                "give both, or neither in the first run"
            )


def encode(leaves: LeafSums) -> bytes:
    """Return sums as an Arrow IPC stream."""
    return to_bytes(pa.table({"node": leaves.node, **{f"sum.{i}": row for i, row in enumerate(leaves.sums)}}))


@dataclass(frozen=True, slots=True)
class Gathered:
    """Exact sums of a chunk from one shard: `node` int64 [m], increasing, and for each component its sums int64 [m]."""

    node: np.ndarray
    sums: tuple[np.ndarray, ...]


def gathered(payloads: Iterable[bytes]) -> list[Gathered]:
    """Return the sums of some shards."""
    found = []
    for payload in payloads:
        table = from_bytes(payload)
        node, *sums = (table[name].to_numpy() for name in table.column_names)
        if len(node) and (np.diff(node) < 0).any():  # concatenated from several shards
            order = np.argsort(node, kind="stable")
            node, sums = node[order], [values[order] for values in sums]
        found.append(Gathered(node, tuple(sums)))
    return found


def dense(sums: Sequence[Gathered], query: Query, *, rows: range, cells: range) -> np.ndarray:
    """Return the sums of all nodes of some windows and cells, empty ones too.

    Args:
        sums: Sums of shards.
        query: The query.
        rows: Windows; 0 is the initial level.
        cells: Cells.

    Returns:
        int64 [components, rows, cells], in grid steps.
    """
    filled = np.zeros((len(query.measure.components), len(rows), len(cells)), dtype=np.int64)
    for part in sums:
        first, last = np.searchsorted(part.node, [rows.start * query.cells, rows.stop * query.cells])
        row, cell = np.divmod(part.node[first:last], query.cells)
        inside = (cells.start <= cell) & (cell < cells.stop)
        place = row[inside] - rows.start, cell[inside] - cells.start
        for component, values in zip(filled, part.sums, strict=True):
            np.add.at(component, place, values[first:last][inside])
    return filled
