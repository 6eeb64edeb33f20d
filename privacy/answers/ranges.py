"""Half widths of sums over ranges of cells (privacy.cells.boxes) at one window."""

from dataclasses import dataclass

import numpy as np

from privacy.cells.boxes import Boxes
from privacy.cells.sums import Floats
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.mixed import MOST, half_width_by_spread
from privacy.noise.weighted import half_width

DIGITS = 3
"""Number of binary digits to which spreads are rounded down: few kinds of intervals, at most 2 % wider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InTime:
    """Weights of a number in the nodes in time.

    Attributes:
        squares: sum of squares of its weights.
        largest: largest of these squares, as a share of the sum.
        weight: the weight of all its nodes if they have the same; otherwise None.
    """

    squares: float
    largest: float
    weight: float | None


def half_widths(distribution: NoiseDistribution, in_time: InTime, of: Boxes, confidence: float) -> Floats:
    """Return half widths of the sums at one window, float64 [sums], in grid steps.

    If all nodes have one weight, they are those of a sum of samples; otherwise they follow from the spread of the
    weights and are a few percent wider.

    Args:
        distribution: noise of one node.
        in_time: weights of the number in time.
        of: noise of the sums over cells.
        confidence: confidence level of each half width.

    >>> from privacy.cells.boxes import of_boxes
    >>> from privacy.noise.distributions import DiscreteLaplace
    >>> of = of_boxes([[(0, 1)], [(0, 100)]], None)
    >>> half_widths(DiscreteLaplace(1000.0), InTime(squares=1.0, largest=1.0, weight=1.0), of, 0.95).round(-1).tolist()
    [3000.0, 27750.0]
    """
    norms: Floats = np.sqrt(of.squares * in_time.squares)
    if distribution.stable:
        return norms * half_width(distribution, np.ones(1), confidence)
    if of.cells is not None and in_time.weight is not None:
        samples = round(in_time.squares / in_time.weight**2) * of.cells
        return np.array([in_time.weight * distribution.half_width(int(each), confidence) for each in samples])
    spread = np.clip((1 + 1e-9) / (in_time.largest * of.largest), 1, MOST)
    unit = np.where(spread < 2, 1 / 8, 2.0 ** np.maximum(np.floor(np.log2(spread)) + 1 - DIGITS, 0))
    kinds, place = np.unique(spread // unit * unit, return_inverse=True)  # each an upper bound
    half = np.array([half_width_by_spread(distribution, float(kind), confidence) for kind in kinds])
    widths: Floats = norms * half[place]
    return widths
