"""Exact sums of a chunk, block by block, as its kind of chunk takes them."""

from collections.abc import Iterable, Iterator

import numpy as np

from transforms.aggregation.node_sums import Aggregation, NodeKey, dense, gathered


def dense_blocks(aggregation: Aggregation, key: NodeKey, payloads: Iterable[bytes]) -> Iterator[np.ndarray]:
    """Yield the sums of each block, int64 [components, windows, cells]; row 0 of the first run is the initial level.

    Args:
        aggregation: Definition of the sums.
        key: Key of the chunk.
        payloads: Sums of the chunk, from all shards.
    """
    sums, number = gathered(payloads), key[1]
    for first, last in aggregation.blocks(number):
        rows = range(first + 1 if first else 0, last + 1)
        yield dense(sums, aggregation.queries[number], rows=rows, cells=aggregation.cells_of(key))
