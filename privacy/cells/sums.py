"""Sums of adjacent numbers along the last dimension, one by one: rounding is equal for any number of rows."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", np.int64, np.float64)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DIGITS = 52
"""`exactly_summed` rounds to multiples of this power of 1/2 of the sum of sizes."""


def summed(values: NDArray[Number], size: int) -> NDArray[Number]:
    """Return the sums of each `size` adjacent values, [.., sums]; the last sum may have fewer.

    >>> summed(np.array([[1, 2, 3, 4, 5]]), 2).tolist()
    [[3, 7, 5]]
    """
    sums = np.zeros((*values.shape[:-1], -(-values.shape[-1] // size)), dtype=values.dtype)
    for place in range(min(size, values.shape[-1])):
        part = values[..., place::size]
        sums[..., : part.shape[-1]] += part
    return sums


def exactly_summed(cells: Floats) -> Floats:
    """Return cells [.., cells] rounded so that no sum of cells of a row is rounded in float64.

    The unit is at most 2^-52 of the sum of the row's sizes: as much as rounding in float64 changes them anyway.

    >>> thirds = exactly_summed(np.array([1 / 3, 1.0, 1e9]))
    >>> float(thirds[0] + thirds[1]) + float(thirds[2]) == float(thirds[0]) + float(thirds[1] + thirds[2])
    True
    """
    _, exponent = np.frexp(np.abs(np.ascontiguousarray(cells)).sum(axis=-1, keepdims=True))
    unit = np.ldexp(1.0, exponent - DIGITS)
    found: Floats = np.rint(cells / unit) * unit
    return found
