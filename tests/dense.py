"""All sums of a chunk at once."""

from collections.abc import Iterable

import numpy as np

from transforms.aggregation import node_sums
from transforms.aggregation.node_sums import Aggregation, NodeKey, gathered


def dense(payloads: Iterable[bytes], aggregation: Aggregation, key: NodeKey) -> np.ndarray:
    """[components, 1 + windows, cells of the chunk], row 0 the initial level."""
    rows = range(aggregation.timeline.windows + 1)
    return node_sums.dense(gathered(payloads), aggregation.queries[key[1]], rows=rows, cells=aggregation.cells_of(key))
