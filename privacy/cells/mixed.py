"""Mixed strategies: single cells and a few weighted sums of all cells (p-identity strategies), with integer weights.

S has a row for each cell with a weight t_c, and p rows R of any weights, 0 to 63: S^T S = T^2 + R^T R. Its inverse
contains only a p x p inverse (Woodbury), so that least squares and variances take p times the number of cells:

    (T^2 + R^T R)^-1 = E - E R^T (1 + R E R^T)^-1 R E,    E = T^-2

Source of the form: McKenna, Miklau, Hay, Machanavajjhala, VLDB 2018, arXiv:1808.03537; privacy.cells.mixing finds the
weights.

The cells of one row have different weights, so the three numbers that describe two columns a and b of layers do not
suffice. With A and B the norms of the columns to the power p, and M their inner product (p = 2) or the sum of the
smaller ones of their weights (p = 1), values x and y in them are apart

    p = 2    by exactly x^2 A + y^2 B - 2 x y M
    p = 1    by at most |x| (A - M) + |y| (B - M) + |x - y| M, and by exactly that for x = y

which corners are defined to mean (docs/proofs/cells.md#mixed). Rows share cells, so the strategy has no blocks and
cannot be used for a span of time.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privacy.cells.averages import Workload
from privacy.cells.corners import Corner
from privacy.cells.quadratic import applied, diagonal, queries
from privacy.cells.sums import Floats, Ints
from privacy.checks import at_least

MOST_MIXED = 1024
"""Largest number of cells of such an axis: columns are compared in pairs, and p numbers are kept for each cell."""

LARGEST = 63
"""Largest weight: rounding costs about 1 %, and sums of a hundred million units over two axes stay within 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """Mixed strategy for one axis (privacy.cells.base.Along).

    Attributes:
        alone: weight of each cell's own row, a byte each, above 0.
        rows: weights of the cells in each other row, a byte each.

    >>> mixed = Mixed(alone=bytes([2, 1, 1]), rows=(bytes([1, 1, 1]),))
    >>> mixed.spread(np.array([1, 2, 3])).tolist(), mixed.gather(np.array([2.0, 2.0, 3.0, 6.0])).round(9).tolist()
    ([2, 2, 3, 6], [1.0, 2.0, 3.0])
    """

    kind: ClassVar[str] = "mixed"
    name: ClassVar[str] = "optimised"
    blocks: ClassVar[bool] = False
    trivial: ClassVar[bool] = False
    alone: bytes
    rows: tuple[bytes, ...]

    def __post_init__(self) -> None:
        at_least("cells", len(self.alone), 1)
        if len(self.alone) > MOST_MIXED:
            raise ValueError(f"alone: {len(self.alone):,} cells; at most {MOST_MIXED:,}")
        if min(self.alone) == 0:
            raise ValueError("alone: each cell needs a separate row, with a weight above 0")
        if max(self.alone + b"".join(self.rows)) > LARGEST:
            raise ValueError(f"weights are at most {LARGEST}")
        if any(len(row) != len(self.alone) or max(row) == 0 for row in self.rows):
            raise ValueError(f"rows: each has weights of {len(self.alone)} cells, one of them above 0")

    @property
    def cells(self) -> int:
        return len(self.alone)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.cells,)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"rows": len(self.rows)}

    @property
    def matrix(self) -> "Mixed":
        return self

    @property
    def nodes(self) -> int:
        return self.cells + len(self.rows)

    @property
    def filled(self) -> int:
        return 1 + int(np.count_nonzero(_model(self).rows, axis=0).max(initial=0))

    @property
    def heaviest(self) -> int:
        """Largest weight of a cell in a node."""
        return max(map(max, (self.alone, *self.rows)))

    def least_precisions(self) -> Floats:
        """By Gershgorin a symmetric matrix, here (S^T S)^-1, is at most the diagonal one of its rows' absolute sums."""
        return _least_precisions(self)

    def boxes(self) -> list[tuple[Ints, Ints]]:
        """The box of a row of several weights contains the cells with weights and all cells between them."""
        own = np.arange(self.cells, dtype=np.int64)
        held = _model(self).rows > 0
        begins, ends = held.argmax(axis=1), self.cells - held[:, ::-1].argmax(axis=1)
        return [(np.concatenate([own, begins]), np.concatenate([own + 1, ends]))]

    def layer(self) -> Ints:
        """Each row of several cells is a separate layer."""
        return np.concatenate([np.zeros(self.cells, dtype=np.int64), 1 + np.arange(len(self.rows))])

    def of_nodes(self) -> Ints:
        """Rows of several weights have the node weight 1."""
        return np.concatenate([_model(self).alone, np.ones(len(self.rows), dtype=np.int64)])

    def corners(self, power: int, apart: int | None = None) -> tuple[Corner, ...]:
        """Return the corner of the largest norm with the least common part, and the corner of one cell twice."""
        most, both = _common(self, power, self.cells - 1 if apart is None else apart)
        return ((most, most, both), (most, most, most))

    def spread(self, values: Ints) -> Ints:
        """Return nodes [.., nodes] of cells [.., cells], row by row: rounding does not depend on their number."""
        model, values = _model(self), np.ascontiguousarray(values)
        sums = [(values * row).sum(axis=-1)[..., None] for row in model.rows.astype(values.dtype)]
        found: Ints = np.concatenate([values * model.alone, *sums], axis=-1)
        return found

    def gather(self, nodes: Floats) -> Floats:
        """Return the least-squares estimates of cells [.., cells] from nodes [.., nodes]."""
        model, nodes = _model(self), np.ascontiguousarray(nodes)
        found = nodes[..., : self.cells] * model.alone
        for place, row in enumerate(model.rows, start=self.cells):
            found = found + nodes[..., place : place + 1] * row
        return self.solve(found)

    def solve(self, queries: Floats) -> Floats:
        """Return (S^T S)^-1 applied to queries [.., cells]."""
        model, queries = _model(self), np.ascontiguousarray(queries)
        found: Floats = queries * model.squares
        for row, weighted in zip(model.rows, model.heart, strict=True):
            found = found - (queries * weighted).sum(axis=-1)[..., None] * (row * model.squares)
        return found

    def variances(self) -> Floats:
        """Return the variance of each cell, float64 [cells]."""
        model = _model(self)
        found: Floats = model.squares - (model.rows * model.squares * model.heart).sum(axis=0)
        return found

    def average(self, workload: Workload) -> float:
        """Return the mean variance of the queries of a workload."""
        model = _model(self)
        whole = (diagonal(workload, self.cells) * model.squares).sum()
        whole -= (applied(workload, model.rows * model.squares) * model.heart).sum()
        return float(whole / queries(workload, self.cells))


@dataclass(frozen=True, slots=True)
class _Model:
    """Arrays of a strategy: `alone`, `rows`; `squares`: E; `heart`: (1 + R E R^T)^-1 R E, [rows, cells]."""

    alone: Ints
    rows: Ints
    squares: Floats
    heart: Floats


@lru_cache(maxsize=16)
def _model(mixed: Mixed) -> _Model:
    alone = np.frombuffer(mixed.alone, dtype=np.uint8).astype(np.int64)
    rows = np.frombuffer(b"".join(mixed.rows), dtype=np.uint8).astype(np.int64).reshape(-1, len(alone))
    squares: Floats = 1.0 / alone**2
    weighted = rows * squares
    heart = np.linalg.solve(np.eye(len(rows)) + weighted @ rows.T, weighted).astype(np.float64)
    return _Model(alone, rows, squares, heart)


@lru_cache(maxsize=16)
def _least_precisions(mixed: Mixed) -> Floats:
    model = _model(mixed)
    inverse = np.diag(model.squares) - (model.rows * model.squares).T @ model.heart
    found: Floats = 1.0 / np.abs(inverse).sum(axis=1)
    return found


@lru_cache(maxsize=64)
def _common(mixed: Mixed, power: int, apart: int) -> tuple[int, int]:
    """Return the largest norm of a column to a power, and the least that two columns have in common, exactly."""
    model = _model(mixed)
    most = int((model.alone**power + (model.rows**power).sum(axis=0)).max())
    if mixed.cells == 1 or apart == 0:
        return most, most
    both = np.zeros((mixed.cells, mixed.cells), dtype=np.int64)
    for row in model.rows:
        both += np.multiply.outer(row, row) if power == 2 else np.minimum.outer(row, row)
    place = np.arange(mixed.cells)
    near = (place[:, None] < place) & (place - place[:, None] <= apart)
    return most, int(both[near].min())
