"""Parts of a factorisation's step that all kernels share: refused leaves, and where levels are remembered."""

from collections.abc import Sequence

import numpy as np

from privacy.series import Ints, Series

LARGEST_LEVEL = 2**50
"""Largest absolute level, in steps."""


def refuse_large(leaves: Ints) -> None:
    """Refuse leaves, int64 [rows, cells], that may exceed the range of 64 bits.

    Raises:
        OverflowError: a change exceeds 2^51 steps.
    """
    if leaves.size and max(-int(leaves.min()), int(leaves.max())) > 2 * LARGEST_LEVEL:
        raise OverflowError("a change exceeds 2^51 steps; use a coarser grid")


def boundaries(windows: int, series: Sequence[Series]) -> Ints:
    """Return the boundaries at which levels are remembered, increasing: open begins, and the last boundary."""
    return np.unique(np.concatenate([np.array([windows]), *(one.open_begins(windows) for one in series)]))
