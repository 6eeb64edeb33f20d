"""Exact sums of nodes: what is summed, under which keys, and how chunks of cells are packed.

A large release is cut into chunks of cells, each with all its windows, so that no step holds all nodes at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from privacy.constraint import ByClass, Constraint
from privacy.series import Family
from transforms.aggregation.leaf_sums import LeafSums
from transforms.aggregation.projection import Projection
from transforms.aggregation.queries import Query, Timeline
from transforms.common.ipc import from_bytes, to_bytes

NodeKey = tuple[str, int, Family, int]
"""(`bounded` or `exact`, query's number, family, chunk of cells)."""

BOUNDED = "bounded"
EXACT = "exact"

CHUNK_NODES = 2**20
"""About so many nodes are in one chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """What is summed: the queries over the timeline under the constraint, of units that are entries or owners.

    Each part of a pipeline is made from it, or checked against it.

    Attributes:
        owner: the column that names the owner of an entry, of the mutation or of its states; None if the unit is the
            entry.
        exact: whether to sum all changes as well, without the constraint (for the owner's eyes).
        span: windows that chunks are sized for, the same in all runs of a release; None: those of the timeline.
    """

    queries: tuple[Query, ...]
    timeline: Timeline
    constraint: Constraint
    owner: str | None = None
    exact: bool = False
    span: int | None = None

    @property
    def projection(self) -> Projection:
        """What is read from each state for it."""
        constraint = self.constraint
        by_class = (constraint.column, constraint.names) if isinstance(constraint, ByClass) else None
        return Projection(queries=self.queries, owner=self.owner, by_class=by_class)

    def chunk_cells(self, query: int) -> int:
        """Cells in one chunk of a query; all of them where they are made consistent with each other."""
        if self.queries[query].consistent:
            return self.queries[query].cells
        windows = self.timeline.windows if self.span is None else self.span
        return max(1, min(self.queries[query].cells, CHUNK_NODES // (windows + 1)))

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


def dense(payloads: Iterable[bytes], aggregation: Aggregation, key: NodeKey) -> np.ndarray:
    """All nodes of a chunk, empty ones too: [components, 1 + windows, cells of the chunk], int64."""
    _, number, _, chunk = key
    query = aggregation.queries[number]
    size = aggregation.chunk_cells(number)
    begin = chunk * size
    width = min(size, query.cells - begin)
    sums = np.zeros((len(query.measure.components), aggregation.timeline.windows + 1, width), dtype=np.int64)
    for payload in payloads:
        table = from_bytes(payload)
        window, cell = np.divmod(table["node"].to_numpy(), query.cells)
        for component in range(len(sums)):
            np.add.at(sums[component], (window, cell - begin), table[f"sum.{component}"].to_numpy())
    return sums
