"""Filters given by their coefficients (square root, leaky and window), in integer arithmetic.

Coefficients are C_j = round(2^20 c_j), and y = floor(sum_j C_j x_(t-j) / 2^20 + 1/2). The linear part is C / 2^20
exactly, non-increasing since rounding is monotone. For neighbours at x and x + z, floor(v + w) - floor(v) - w lies in
(-1, 1): the nodes differ by (C / 2^20) z and less than a step each, and do not differ if C z is 0 because z is 0.

The kernel remembers as many past leaves, and as many decoded ones, as C has coefficients. The window filter ends; the
others have coefficients for the whole schedule, so that all leaves are remembered.

    leaves    int64: forward, exact
    decoded   float64: back

Rows are computed one after another, each in the same order of operations, so that no bit depends on the steps in which
they arrived.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from privacy.series import Ints
from privacy.strategies.base import Floats
from privacy.strategies.factorised import coefficients as series
from privacy.strategies.factorised.kernel import Integers, Reals

BITS = 20
"""Number of bits of a coefficient after the binary point."""

ROWS, COLUMNS = 512, 2048
"""Size of one block of the matrix C; sums of 2^11 products of 20-bit and 22-bit numbers are exact in float64."""

LIMB = 22
"""Bits of one of the three limbs of a leaf."""

CELLS = 2**14
"""Cells that are filtered at once, so that limbs and sums stay in the processor's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """Filter given by its coefficients (privacy.strategies.factorised.kernel.Kernel).

    Attributes:
        leak: 1 - lam; 0 is the square root.
        ends: whether coefficients fall to 0 (window), so that the release needs no end.
        integers: 2^20 c, rounded, of a settled kernel; None: as this version computes them from `leak` and `ends`.
    """

    leak: float = 0.0
    ends: bool = False
    integers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.leak <= 1 or (self.ends and self.leak == 0):
            raise ValueError(f"leak={self.leak} must be above 0 and at most 1, or 0 for the square root")
        if self.integers is not None and (
            not self.integers or any(b > a for a, b in pairwise((2**BITS, *self.integers, 1)))
        ):
            raise ValueError("coefficients: from 2^20 at most down to 1 at least, and never rising")

    @property
    def form(self) -> str:
        return "window" if self.ends else "leaky" if self.leak else "square_root"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"form": self.form, **({"leak": self.leak} if self.leak else {})}

    @property
    def endless(self) -> bool:
        return self.ends

    @property
    def bounded(self) -> bool:
        return self.ends

    def settled(self, horizon: int | None) -> "Coefficients":
        return replace(self, integers=tuple(_integers(self, horizon).tolist()))

    def sized(self, size: int) -> "Coefficients":
        return self

    def coefficients(self, horizon: int | None) -> Floats:
        found: Floats = _integers(self, horizon) / 2**BITS
        return found

    def response(self, leaves: int, horizon: int | None) -> Floats:
        return _response(self, leaves, horizon)

    def rounding(self, changes: int, horizon: int | None) -> float:
        touched = changes * len(_integers(self, horizon))
        return math.sqrt(touched if horizon is None else min(touched, horizon))

    def start(self, cells: int) -> tuple[Integers, Reals]:
        return {"leaves": np.zeros((0, cells), dtype=np.int64)}, {"decoded": np.zeros((0, cells))}

    def remembered(self, leaves: int, horizon: int | None) -> int:
        return 2 * min(leaves, len(_integers(self, horizon)) - 1)

    def forward(self, kept: Integers, leaves: Ints, horizon: int | None) -> tuple[Ints, Integers]:
        """Return the nodes of leaves (`Kernel.forward`)."""
        nodes, history = forward_by_leaves(_integers(self, horizon), kept["leaves"], leaves)
        return nodes, {"leaves": history}

    def back(self, kept: Reals, level: Floats, noisy: Floats, horizon: int | None) -> tuple[Floats, Reals]:
        """Return levels from noisy nodes (`Kernel.back`)."""
        levels, decoded = back_by_coefficients(self.coefficients(horizon), level, kept["decoded"], noisy)
        return levels, {"decoded": decoded}


@lru_cache(maxsize=16)
def _integers(kernel: Coefficients, horizon: int | None) -> Ints:
    """Return 2^20 c, rounded, without trailing zeros, int64 [n]."""
    if kernel.integers is not None:  # a shorter release uses the first ones
        return np.array(kernel.integers[:horizon])
    # Without end: c_j <= (1 - leak)^j <= exp(-j leak), which from here on rounds to 0.
    count = 1 + math.ceil((BITS + 1) * math.log(2) / kernel.leak) if horizon is None else horizon
    real = series.window(count, kernel.leak) if kernel.ends else series.leaky(count, kernel.leak)
    return np.trim_zeros(np.rint(real * 2**BITS).astype(np.int64), "b")


@lru_cache(maxsize=16)
def _response(kernel: Coefficients, leaves: int, horizon: int | None) -> Floats:
    rounds = 1 << (leaves - 1).bit_length()  # Newton's, whole ones, so that rounding is equal in any run
    real = kernel.coefficients(horizon)[:rounds]
    return series.response(np.pad(real, (0, rounds - len(real))))[:leaves]


def forward_by_leaves(integers: Ints, history: Ints, leaves: Ints) -> tuple[Ints, Ints]:
    """Return the nodes of leaves, int64 [rows, cells], and the last leaves that later nodes need.

    Args:
        integers: 2^20 c, int64 [n].
        history: int64 [past, cells], earlier leaves.
        leaves: int64 [rows, cells].
    """
    stream = np.concatenate((history, leaves))
    nodes = np.empty_like(leaves)
    for first in range(0, leaves.shape[1], CELLS):
        some = slice(first, first + CELLS)
        _filter(integers, stream[:, some], nodes[:, some])
    return nodes, stream[max(0, len(stream) - len(integers) + 1) :].copy()


def _filter(integers: Ints, stream: Ints, nodes: Ints) -> None:
    """Write the last rows of C times a stream.

    Args:
        integers: 2^20 c, int64 [n].
        stream: int64 [past + rows, cells], leaves.
        nodes: int64 [rows, cells], which gets the result.
    """
    past, cells = len(stream) - len(nodes), stream.shape[1]
    # x = 2^44 x_2 + 2^22 x_1 + x_0 and likewise C x, exactly; only the last part has digits after the point.
    mask = 2**LIMB - 1
    limbs = np.concatenate((stream >> 2 * LIMB, stream >> LIMB & mask, stream & mask), axis=1).astype(np.float64)
    for top in range(past, len(stream), ROWS):
        rows = np.arange(top, min(top + ROWS, len(stream)))
        sums = np.zeros((len(rows), 3 * cells), dtype=np.int64)
        for first in range(0, rows[-1] + 1, COLUMNS):
            columns = np.arange(first, min(first + COLUMNS, rows[-1] + 1))
            lags = rows[:, None] - columns
            matrix = np.where((lags >= 0) & (lags < len(integers)), integers[lags % len(integers)], 0)
            sums += (matrix.astype(np.float64) @ limbs[columns]).astype(np.int64)
        high, middle, low = np.split(sums, 3, axis=1)
        nodes[rows - past] = (high << 2 * LIMB - BITS) + (middle << LIMB - BITS) + (low + 2 ** (BITS - 1) >> BITS)


def back_by_coefficients(filtered: Floats, level: Floats, past: Floats, noisy: Floats) -> tuple[Floats, Floats]:
    """Return levels from noisy nodes: decoded leaves, added up from the level before, and the last decoded leaves.

    Args:
        filtered: coefficients of the filter, float64 [n].
        level: the last level, float64 [cells].
        past: earlier decoded leaves, float64 [past, cells], as many as exist or the filter reaches back.
        noisy: noisy nodes, float64 [rows, cells].
    """
    leaves = np.concatenate([past, noisy])
    for row in range(len(past), len(leaves)):
        reach = min(row, len(filtered) - 1)
        leaves[row] -= (filtered[reach:0:-1, None] * leaves[row - reach : row]).sum(axis=0)
    levels = np.cumsum(np.concatenate([level[None], leaves[len(past) :]]), axis=0)[1:]
    return levels, leaves[max(0, len(leaves) - len(filtered) + 1) :].copy()
