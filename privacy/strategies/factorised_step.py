"""The step of a Toeplitz factorisation: filters that run forward over leaves, and others back over noisy nodes.

Forward, in integers: arma has a number of state for each exponential, the other forms the last leaves, as many as the
filter has coefficients. Back, in floating point, from noisy nodes alone: arma has an exponential for each term of
1 / ((1 - x) c(x)), the others the last leaves as the noisy nodes have them. The window filter ends; square_root and
leaky have coefficients for the whole schedule, so that all leaves are carried.

    states, leaves    int64: forward, arma and the others; exact
    decays, decoded   float64: back, likewise
    levels            float64: at the boundaries where open numbers begin, and at the last one

Rows are worked on one after another, each in the same order of operations, so that no bit depends on the steps in which
they came.
"""

from collections.abc import Sequence

import numpy as np

from privacy.series import Ints, Series
from privacy.strategies.base import Floats

Pole = tuple[int, int, int]
"""(a, b, u): the exponential u / 2^16 * t^j with t = 1 - a / 2^b."""

BITS = 20
"""Of a coefficient after the point."""

WEIGHT = 16
"""Bits of an exponential's weight after the point."""

GUARD = 8
"""Bits of an exponential's state below one step."""

LARGEST_LEVEL = 2**50
"""Steps, for levels of either sign."""

ROWS, COLUMNS = 512, 8192
"""Of one block of the matrix C; sums of 2^13 products of 20-bit numbers are exact in float64."""


def refuse_large(leaves: Ints) -> None:
    """
    Raises:
        OverflowError: a leaf that 64 bits have no room for.
    """
    if leaves.size and max(-int(leaves.min()), int(leaves.max())) > 2 * LARGEST_LEVEL:
        raise OverflowError("a change exceeds 2^51 steps; use a coarser grid")


def forward_by_states(poles: Sequence[Pole], states: Ints, leaves: Ints) -> tuple[Ints, Ints]:
    """Nodes of leaves, and the states after them.

    Raises:
        OverflowError: a level that 64 bits have no room for.
    """
    a, b, u = np.array(poles, dtype=np.int64).T[:, :, None]
    levels = (states[0] >> GUARD) + np.cumsum(leaves, axis=0)
    if levels.size and max(-int(levels.min()), int(levels.max())) > LARGEST_LEVEL:
        raise OverflowError("a level exceeds 2^50 steps; use a coarser grid")
    nodes = np.empty_like(leaves)
    below, digits = (np.int64(1) << b) - 1, WEIGHT + GUARD
    for row, leaf in enumerate(leaves):
        # floor(a s / 2^b) and floor(u s / 2^24) in two parts, since a s and u s would not fit.
        states = states - a * (states >> b) - (a * (states & below) >> b) + (leaf << GUARD)
        rest = (u * (states & (2**digits - 1))).sum(axis=0)
        nodes[row] = (u * (states >> digits)).sum(axis=0) + (rest + 2 ** (digits - 1) >> digits)
    return nodes, states


def forward_by_leaves(integers: Ints, history: Ints, leaves: Ints) -> tuple[Ints, Ints]:
    """Nodes of leaves, and the last leaves that later nodes need."""
    stream = np.concatenate((history, leaves))
    past, cells = len(history), leaves.shape[1]
    # x = 2^40 x_2 + 2^20 x_1 + x_0 and the same of C x, exactly; only the last part has digits after the point.
    mask = 2**BITS - 1
    limbs = np.concatenate((stream >> 2 * BITS, stream >> BITS & mask, stream & mask), axis=1).astype(np.float64)
    nodes = np.empty_like(leaves)
    for top in range(past, len(stream), ROWS):
        rows = np.arange(top, min(top + ROWS, len(stream)))
        sums = np.zeros((len(rows), 3 * cells), dtype=np.int64)
        for first in range(0, rows[-1] + 1, COLUMNS):
            columns = np.arange(first, min(first + COLUMNS, rows[-1] + 1))
            lags = rows[:, None] - columns
            matrix = np.where((lags >= 0) & (lags < len(integers)), integers[lags % len(integers)], 0)
            sums += (matrix.astype(np.float64) @ limbs[columns]).astype(np.int64)
        high, middle, low = np.split(sums, 3, axis=1)
        nodes[rows - past] = (high << BITS) + middle + (low + 2 ** (BITS - 1) >> BITS)
    return nodes, stream[max(0, len(stream) - len(integers) + 1) :].copy()


def back_by_decays(weights: Floats, gaps: Floats, decays: Floats, noisy: Floats) -> tuple[Floats, Floats]:
    """Levels from noisy nodes: the sum of weights times exponentials, each with its own number of state."""
    levels = np.empty_like(noisy)
    for row, node in enumerate(noisy):
        decays = node - (gaps - 1)[:, None] * decays
        levels[row] = weights[0] * decays[0]
        for weight, decay in zip(weights[1:], decays[1:], strict=True):
            levels[row] += weight * decay
    return levels, decays


def back_by_coefficients(filtered: Floats, level: Floats, past: Floats, noisy: Floats) -> tuple[Floats, Floats]:
    """Levels from noisy nodes: the leaves that the filter would make these from, added up from the level before.

    Args:
        filtered: the filter's coefficients.
        level: [cells], the last one.
        past: [rows, cells], such leaves of before, as many as there are or the filter reaches back.
    """
    leaves = np.concatenate([past, noisy])
    for row in range(len(past), len(leaves)):
        reach = min(row, len(filtered) - 1)
        leaves[row] -= (filtered[reach:0:-1, None] * leaves[row - reach : row]).sum(axis=0)
    levels = np.cumsum(np.concatenate([level[None], leaves[len(past) :]]), axis=0)[1:]
    return levels, leaves[max(0, len(leaves) - len(filtered) + 1) :].copy()


def boundaries(windows: int, series: Sequence[Series]) -> Ints:
    """Where levels are remembered, increasing: where open numbers begin, and the last boundary."""
    return np.unique(np.concatenate([np.array([windows]), *(one.open_begins(windows) for one in series)]))
