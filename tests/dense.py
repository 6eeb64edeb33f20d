"""The sums of a chunk as one dense array."""

from collections.abc import Iterable

import numpy as np

from transforms.aggregation import node_sums
from transforms.aggregation.node_sums import Aggregation, NodeKey, gathered


def dense(payloads: Iterable[bytes], aggregation: Aggregation, key: NodeKey) -> np.ndarray:
    """Return the sums of a chunk, int64[components, 1 + windows, cells of the chunk]; row 0 is the initial level.

    Args:
        payloads: Encoded node sums of the chunk.
        aggregation: The aggregation that produced them.
        key: Key of the chunk's nodes.
    """
    rows = range(aggregation.timeline.windows + 1)
    return node_sums.dense(gathered(payloads), aggregation.queries[key[1]], rows=rows, cells=aggregation.cells_of(key))
