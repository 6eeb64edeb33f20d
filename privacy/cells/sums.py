"""Sums of adjacent numbers along the last dimension, one by one: rounding is equal for any number of rows."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", np.int64, np.float64)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
