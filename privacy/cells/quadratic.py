"""Workloads along an axis as quadratic forms: V, the sum of q q^T over the queries q, without building V.

With X the covariance of the cells' estimates, the sum of the queries' variances is tr(V X).

    cells       V = 1
    prefixes    V_ab = d - max(a, b)
    ranges      V_ab = (1 + min(a, b)) (d - max(a, b))        a, b from 0
"""

import numpy as np

from privacy.cells.averages import Workload
from privacy.cells.sums import Floats, Ints


def queries(workload: Workload, cells: int) -> int:
    """Return the number of queries of a workload."""
    return cells * (cells + 1) // 2 if workload == "ranges" else cells


def diagonal(workload: Workload, cells: int) -> Floats:
    """Return V_aa, float64 [cells]."""
    place = np.arange(cells, dtype=np.float64)
    found = {"cells": np.ones(cells), "prefixes": cells - place, "ranges": (1 + place) * (cells - place)}
    return found[workload]


def applied(workload: Workload, rows: Floats | Ints) -> Floats:
    """Return V times each row, float64 [.., cells].

    >>> applied("ranges", np.eye(3)).tolist()
    [[3.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 3.0]]
    """
    if workload == "cells":
        return np.asarray(rows, dtype=np.float64)
    cells = rows.shape[-1]
    place = np.arange(cells)
    before = 1.0 + place if workload == "ranges" else np.ones(cells)
    after = (cells - place) * rows
    up_to = np.cumsum(before * rows, axis=-1)
    beyond = np.cumsum(after[..., ::-1], axis=-1)[..., ::-1] - after
    found: Floats = (cells - place) * up_to + before * beyond
    return found
