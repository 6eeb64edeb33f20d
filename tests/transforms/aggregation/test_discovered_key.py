"""Sums of keys that nobody lists: each family and component has its own."""

import numpy as np
import pyarrow as pa

from transforms.aggregation.discovered_key import decode_sums, encode_sums, layers_of


def test_entries_that_only_leave_do_not_enter() -> None:
    """In such a night, no shard has sums of `entered`, so that all rows are of the levels."""
    keys = pa.array(["a"])
    (levels,), (entered,) = (layers_of(("net", "entered"), 1, family) for family in ("net", "entered"))

    sums = decode_sums([encode_sums(np.array([1]), {levels: np.array([-1])}, keys, celled=False)])

    assert sums.dense(keys, 1, layer=levels).tolist() == [[0], [-1]]
    assert sums.dense(keys, 1, layer=entered).tolist() == [[0], [0]]
