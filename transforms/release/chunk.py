"""Release of a chunk of a query with any kind of part: block by block, from exact sums to public bytes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from privacy.planning.part import Part
from transforms.aggregation.node_sums import Aggregation, NodeKey

Held = TypeVar("Held")
"""Private state that a step leaves for the next one."""


Leaves = TypeVar("Leaves")
"""Exact sums of some windows: int64 [components, windows, cells] if cells are listed."""


class Chunk(Protocol, Generic[Held, Leaves]):
    """The parts of a query that are made from the same leaf sums, over some cells."""

    @property
    def parts(self) -> Sequence[Part]:
        """Parts of the chunk."""
        ...

    def blocks(self, aggregation: Aggregation, key: NodeKey, payloads: Iterable[bytes]) -> Iterator[Leaves]:
        """Yield the exact sums of each block of windows, in their order, for `step`.

        Args:
            aggregation: Definition of the sums.
            key: Key of the chunk.
            payloads: Sums of the chunk, from all shards.
        """
        ...

    def opened(self, payload: bytes, *, windows: int, plan: str) -> Held:
        """Return the state that `kept` has written.

        Args:
            payload: The state.
            windows: Number of windows after which it was written.
            plan: Digest of the current plan.

        Raises:
            ValueError: The bytes are damaged, or the state has another version, plan or number of windows.
        """
        ...

    def step(self, held: Held | None, leaves: Leaves) -> tuple[Held, bytes]:
        """Publish some windows: return the private state for the next ones, and public bytes.

        Args:
            held: State of the previous step; None in the first, whose row 0 is the initial level.
            leaves: Exact sums of these windows, as `blocks` yields them.
        """
        ...

    def kept(self, held: Held, *, windows: int, plan: str) -> bytes | None:
        """Return the state for the next run; None if no window closed.

        Args:
            held: State of the last step.
            windows: Number of windows that have closed.
            plan: Digest of the plan under which the noise was sampled.
        """
        ...

    def nodes(self, content: bytes, aggregation: Aggregation, first_cell: int) -> pa.Table | None:
        """Return the published table of nodes; None if none is published.

        Args:
            content: Public bytes of a block.
            aggregation: Aggregation whose timeline ends with the block.
            first_cell: First cell of the chunk.
        """
        ...

    def estimates(self, content: bytes, aggregation: Aggregation, first_cell: int) -> pa.Table:
        """Return the published table of numbers.

        Args:
            content: Public bytes of a block.
            aggregation: Aggregation whose timeline ends with the block.
            first_cell: First cell of the chunk.
        """
        ...
