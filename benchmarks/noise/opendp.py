"""OpenDP's exact samplers, for comparison."""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import Measurement, enable_features

enable_features("contrib")

CHUNK = 65_536
"""Samples of one call: OpenDP returns a Python list."""


@cache
def _measurement(name: str, scale: float) -> Measurement:
    domain = vector_domain(atom_domain(T="i64"))
    if name == "Laplace":
        return make_laplace(domain, l1_distance(T="i64"), scale=scale)
    return make_gaussian(domain, l2_distance(T="i64"), scale=scale)


def opendp_samples(name: str, scale: float, size: int) -> NDArray[np.int64]:
    """Return samples of OpenDP.

    Args:
        name: Laplace or Gaussian.
        scale: in steps.
        size: number of samples.
    """
    parts = [np.zeros(min(CHUNK, size - start), dtype=np.int64) for start in range(0, size, CHUNK)]
    return np.concatenate([np.array(_measurement(name, scale)(part), dtype=np.int64) for part in parts])
