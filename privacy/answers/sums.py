"""Error of a sum over cells from published numbers, at one window or between two windows.

A number's noise is a' Z, with Z the independent noise of the strategy's nodes and a its row of W; cells that go through
the strategy separately have separate noise. So an answer q over cells has the noise of all nodes in time times all
nodes of cells, with the weights a x g, where g = q if each cell has its own noise, and g = S (S^T S)^-1 q under a
strategy S over cells (privacy.cells.product). Its variance is |a|^2 |g|^2 times that of a node.

All of this follows from the plan. So an answer is post-processing, which costs no privacy, and uses only published
numbers.
"""

from dataclasses import dataclass

import numpy as np

from privacy.cells.base import Linear
from privacy.cells.sums import Floats, Ints
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.mixed import half_width_by_spread
from privacy.noise.weighted import half_width

FINEST = 2.0**-40
"""Weights are rounded up to this share of the largest, so that weights that are equal except for rounding are equal."""

MOST_SIZES = 1024
"""For more different sizes of weights only the largest weight is used, which makes intervals a few percent wider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Sizes of the non-zero entries of a vector.

    Attributes:
        sizes: positive, increasing, float64 [sizes].
        counts: number of entries of each size, int64 [sizes].
    """

    sizes: Floats
    counts: Ints

    @property
    def squares(self) -> float:
        """Sum of the squares of all entries."""
        return float(self.counts @ self.sizes**2)


def weights_of(vector: Floats) -> Weights:
    """Return the sizes of the entries of a vector that is not zero.

    >>> weights_of(np.array([1.0, 0.0, -2.0, 1.0])).counts.tolist()
    [2, 1]
    """
    entries = np.abs(vector[vector != 0])
    return _merged(entries, np.ones(len(entries), dtype=np.int64))


def _merged(entries: Floats, counts: Ints) -> Weights:
    finest = float(entries.max()) * FINEST
    sizes, place = np.unique(np.ceil(entries / finest), return_inverse=True)
    return Weights(sizes=sizes * finest, counts=np.bincount(place, counts).astype(np.int64))


def over_cells(query: Floats, cells: Linear | None) -> Weights:
    """Return the weights g of a linear query over cells, float64 [cells]; without a strategy they are the query's."""
    return weights_of(query if cells is None else cells.spread(cells.solve(query)))  # type: ignore[arg-type]


def spread(
    distribution: NoiseDistribution, in_time: Weights, of_cells: Weights, confidence: float
) -> tuple[float, float]:
    """Return the standard deviation and half width of an answer, in grid steps.

    Args:
        distribution: noise of one node.
        in_time: the weights a.
        of_cells: the weights g.
        confidence: probability that the noise is within the half width.

    >>> from privacy.noise.distributions import DiscreteLaplace
    >>> once, ranges = weights_of(np.ones(1)), weights_of(np.ones(100))
    >>> deviation, width = spread(DiscreteLaplace(1000.0), once, ranges, 0.95)
    >>> round(deviation), round(width / deviation, 2)
    (14142, 1.96)
    """
    squares = in_time.squares * of_cells.squares
    deviation = float(np.sqrt(squares * distribution.variance))
    if distribution.stable:
        return deviation, half_width(distribution, np.array([np.sqrt(squares)]), confidence)
    if len(in_time.sizes) * len(of_cells.sizes) > MOST_SIZES:
        largest = float(in_time.sizes[-1] * of_cells.sizes[-1]) ** 2
        least_spread = max(1, int(squares / largest))
        return deviation, half_width_by_spread(distribution, least_spread, confidence) * squares**0.5
    sizes, counts = (
        np.outer(*pair).ravel() for pair in ((in_time.sizes, of_cells.sizes), (in_time.counts, of_cells.counts))
    )
    both = _merged(sizes, counts)
    return deviation, half_width(distribution, both.sizes, confidence, counts=both.counts)
