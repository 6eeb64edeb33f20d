"""Exact sums of nodes: what is summed, under which keys, and how chunks of cells are packed.

A large release is cut into chunks of cells, the same in all runs, each with a state of its own. A run that closes many
windows works on a chunk in blocks of them, so that no step holds all nodes at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from privacy.constraint import AtOnce, ByClass, Constraint
from privacy.planning.promise import Promise
from privacy.protection import EVERYTHING, Protection
from privacy.series import Family
from transforms.aggregation.leaf_sums import LeafSums
from transforms.aggregation.projection import Projection
from transforms.aggregation.queries import Query, Timeline
from transforms.common.ipc import from_bytes, to_bytes

NodeKey = tuple[str, int, Family, int]
"""(`bounded` or `exact`, query's number, family, chunk of cells)."""

BOUNDED = "bounded"
EXACT = "exact"
MATCHED = "matched"
"""Beside the exact sums, under the first chunk of each query: transforms.aggregation.matched."""

CHUNK_CELLS = 2**16
"""Most cells in one chunk: a night of a million cells has sixteen chunks, each with a few files."""

BLOCK_LEAVES = 2**20
"""About so many leaves are in one block of a chunk's windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """What is summed: the queries over the timeline, bounded by the constraint, of units that are entries or owners.

    Each part of a pipeline is made from it, or checked against it.

    Attributes:
        owner: the column that names the owner of an entry, of the mutation or of its states; None if the unit is the
            entry.
        exact: whether to sum all changes as well, without contribution bounding (for the data controller).
    """

    queries: tuple[Query, ...]
    timeline: Timeline
    constraint: Constraint
    owner: str | None = None
    exact: bool = False

    @property
    def projection(self) -> Projection:
        """What is read from each state for it."""
        constraint = self.constraint
        by_class = (constraint.column, constraint.names) if isinstance(constraint, ByClass) else None
        return Projection(queries=self.queries, owner=self.owner, by_class=by_class)

    def promise(self, protects: Protection = EVERYTHING) -> Promise:
        """The promise that these sums can keep: what a plan for them is made with."""
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
        """Windows in a block of time in which changes are counted anew; None where they are not."""
        if not isinstance(self.constraint, AtOnce) or self.constraint.block is None:
            return None
        block, rest = divmod(self.constraint.block, self.timeline.every)
        if rest:
            raise ValueError("a block in which changes are counted is made of whole windows")
        return block

    def chunk_cells(self, query: int) -> int:
        """Cells in one chunk of a query: all of them where they are worked on together."""
        asked = self.queries[query]
        return asked.cells if asked.together else min(asked.cells, CHUNK_CELLS)

    def cells_of(self, key: NodeKey) -> range:
        """The cells of a chunk."""
        _, query, _, chunk = key
        size = self.chunk_cells(query)
        return range(chunk * size, min((chunk + 1) * size, self.queries[query].cells))

    def blocks(self, query: int) -> list[tuple[int, int]]:
        """Boundaries of the blocks in which this run's windows are worked on, at least one."""
        size = max(1, BLOCK_LEAVES // self.chunk_cells(query))
        released, windows = self.timeline.released, self.timeline.windows
        cuts = [*range(released, windows, size), windows] if released < windows else [released, windows]
        return list(pairwise(cuts))

    def chunks(self, query: int) -> int:
        return -(-self.queries[query].cells // self.chunk_cells(query))

    def node_keys(self) -> list[NodeKey]:
        """Every chunk of nodes that exists, whatever the data: what a release must cover."""
        return [
            (variant, number, family, chunk)
            for variant in ([BOUNDED, EXACT] if self.exact else [BOUNDED])
            for number, query in enumerate(self.queries)
            for family in query.families
            for chunk in range(self.chunks(number))
        ]


@dataclass(frozen=True, slots=True)
class Summed:
    """What bounded sums were made from.

    Attributes:
        past: the folder with the state that the run before left; None in the first run.
        keep: whether a state is left for the next run.
    """

    aggregation: Aggregation
    past: str | None = None
    keep: bool = False

    def __post_init__(self) -> None:
        if (self.past is None) != (self.aggregation.timeline.released == 0):
            raise ValueError(
                "the timeline says how many windows earlier runs have released, and past where their state is: "
                "give both, or neither in the first run"
            )


def encode(leaves: LeafSums) -> bytes:
    return to_bytes(pa.table({"node": leaves.node, **{f"sum.{i}": row for i, row in enumerate(leaves.sums)}}))


@dataclass(frozen=True, slots=True)
class Gathered:
    """Exact sums of a chunk from one shard: `node` increasing, and for each component a sum."""

    node: np.ndarray
    sums: tuple[np.ndarray, ...]


def gathered(payloads: Iterable[bytes]) -> list[Gathered]:
    """The sums of some shards."""
    found = []
    for payload in payloads:
        table = from_bytes(payload)
        node, *sums = (table[name].to_numpy() for name in table.column_names)
        if len(node) and (np.diff(node) < 0).any():  # of several shards, one after another
            order = np.argsort(node, kind="stable")
            node, sums = node[order], [values[order] for values in sums]
        found.append(Gathered(node, tuple(sums)))
    return found


def dense(sums: Sequence[Gathered], query: Query, *, rows: range, cells: range) -> np.ndarray:
    """Nodes of some rows and cells, empty ones too: [components, rows, cells], int64; row 0 is the initial level."""
    filled = np.zeros((len(query.measure.components), len(rows), len(cells)), dtype=np.int64)
    for part in sums:
        first, last = np.searchsorted(part.node, [rows.start * query.cells, rows.stop * query.cells])
        row, cell = np.divmod(part.node[first:last], query.cells)
        inside = (cells.start <= cell) & (cell < cells.stop)
        place = row[inside] - rows.start, cell[inside] - cells.start
        for component, values in zip(filled, part.sums, strict=True):
            np.add.at(component, place, values[first:last][inside])
    return filled
