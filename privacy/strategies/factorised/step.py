"""Parts of a factorisation's step that all kernels share: refused leaves, and where levels are remembered."""

from collections.abc import Sequence

import numpy as np

from privacy.series import Ints, Series

LARGEST = 2**61
"""Largest absolute leaf, in steps; a level may be as large, unless a kernel needs guard bits."""


def refuse_large(leaves: Ints) -> None:
    """Refuse leaves, int64 [rows, cells], that may exceed the range of 64 bits.

    Raises:
        OverflowError: a change exceeds 2^61 steps.
    """
    if leaves.size and max(-int(leaves.min()), int(leaves.max())) > LARGEST:
        raise OverflowError("a change exceeds 2^61 steps; use a coarser grid")


def boundaries(windows: int, series: Sequence[Series]) -> Ints:
    """Return the boundaries at which levels are remembered, increasing: open begins, and the last boundary."""
    return np.unique(np.concatenate([np.array([windows]), *(one.open_begins(windows) for one in series)]))
