"""Exact sums of a chunk, block by block, as chunks with listed cells take them."""

from collections.abc import Iterable, Iterator

import numpy as np

from transforms.aggregation.node_sums import Aggregation, NodeKey, dense, gathered


class OfDenseBlocks:
    """Part of such chunks."""

    __slots__ = ()

    def blocks(self, aggregation: Aggregation, key: NodeKey, payloads: Iterable[bytes]) -> Iterator[np.ndarray]:
        """Yield the exact sums of each block, int64 [components, windows, cells] (see `Chunk.blocks`).

        Row 0 of the first run is the initial level.
        """
        sums, number = gathered(payloads), key[1]
        for first, last in aggregation.blocks(number):
            rows = range(first + 1 if first else 0, last + 1)
            yield dense(sums, aggregation.queries[number], rows=rows, cells=aggregation.cells_of(key))
