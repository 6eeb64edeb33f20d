"""Quantiles of counts along ordered cells, from noisy counts, each with a confidence interval.

Let P_c be the exact count of the cells up to c, P the count of all cells, and T_c = P_c - q P: it never falls, and the
cell of the q-quantile is the first c* with T_c >= 0. With the noisy T^_c and half widths h_c, within which the noise of
each T_c lies with a probability of 95 %, the interval extends from the first to the last of the cells for which

    T^_c >= -h_c    and    T^_(c-1) < h_(c-1).

If c* is not among them, either the noise of T_(c*) is below -h or the noise of T_(c*-1) is at least h: noise is
symmetric, so each has 2.5 %, and no other cell matters. So the interval contains c* with at least 95 %
probability, and with it the quantile of the counted values, if values below the first edge and above the last count as
the edge.

The value inside the interval is where the noisy T^ crosses zero, with the values of a cell spread evenly over it. If
there are several crossings, it is the one where the isotonic regression of T^ crosses: where the sum of all T^ before
it is least, since means of T^ that end there are not above zero, and those that begin there are not below (Robertson,
Wright, Dykstra 1988). This is post-processing, and uses the fact that T never falls: among empty cells noise alone
causes crossings far away. With a noisy P of zero or less there is no crossing: no value is returned, and the interval
is the whole range.
"""

from dataclasses import dataclass

import numpy as np

from privacy.cells.base import Along
from privacy.cells.sums import Floats
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.mixed import half_width_by_spread
from privacy.noise.weighted import half_width

BLOCK = 2**22
"""Approximate size of the arrays that are solved for at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Quantiles and intervals, float64 arrays of one shape, in the unit of the edges; NaN if there is no quantile."""

    value: Floats
    ci_low: Floats
    ci_high: Floats


def quantiles(counts: Floats, share: float, *, low: Floats, high: Floats, reach: Floats) -> Quantiles:
    """Return the quantile of each row.

    Args:
        counts: noisy counts, float64 [.., cells].
        share: q, above 0 and below 1.
        low, high: begin and end of each cell, float64 [cells], increasing.
        reach: h of each T_c, float64 [.., cells].

    >>> counts, edges = np.array([0.0, 10.0, 10.0, 0.0]), np.array([0.0, 0.0, 5.0, 10.0, 10.0])
    >>> found = quantiles(counts, 0.25, low=edges[:-1], high=edges[1:], reach=np.full(4, 1.0))
    >>> float(found.value), float(found.ci_low), float(found.ci_high)
    (2.5, 0.0, 5.0)
    """
    sums = np.cumsum(counts, axis=-1)
    total = sums[..., -1:]
    above = sums - share * total
    before = np.concatenate([-share * total, above[..., :-1]], axis=-1)
    inside = above >= -reach
    inside[..., -1] = True  # at the last cell T >= 0 is certain, and before the first T < 0
    inside[..., 1:] &= before[..., 1:] < reach[..., :-1]
    known = (total[..., 0] > 0) & inside.any(axis=-1)
    cells = counts.shape[-1]
    first, last = np.argmax(inside, axis=-1), cells - 1 - np.argmax(inside[..., ::-1], axis=-1)
    ci_low, ci_high = np.where(known, low[first], low[0]), np.where(known, high[last], high[-1])
    loss = np.concatenate([np.zeros_like(total), np.cumsum(above[..., :-1], axis=-1)], axis=-1)
    value = _crossing(above, before, np.argmin(loss, axis=-1), low, high)
    value = np.where(known, np.clip(value, ci_low, ci_high), np.nan)
    return Quantiles(value=value, ci_low=ci_low, ci_high=ci_high)


def _crossing(above: Floats, before: Floats, cell: np.ndarray, low: Floats, high: Floats) -> Floats:
    """Return where T^ is zero in a cell, if it grows linearly from one end to the other."""
    end, begin = (np.take_along_axis(values, cell[..., None], -1)[..., 0] for values in (above, before))
    rise = end - begin
    part = np.clip(-begin / np.where(rise > 0, rise, 1.0), 0.0, 1.0)
    found: Floats = low[cell] + part * (high[cell] - low[cell])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Balances:
    """Noise of each T_c, if the noise of a node over cells has variance 1.

    Attributes:
        squares: variance of each, float64 [cells].
        largest: largest share of that variance that one node can have, float64 [cells].
    """

    squares: Floats
    largest: Floats


def balances(cells: int, share: float, along: Along | None) -> Balances:
    """Return the noise of T_c = P_c - q P: the weight of a cell is 1 - q up to c and -q beyond.

    Args:
        cells: number of cells.
        share: q, above 0 and below 1.
        along: the strategy over these cells; None if each cell has its own noise.

    >>> balances(4, 0.5, None).squares.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    up_to = np.arange(1, cells + 1, dtype=np.float64)
    if along is None:
        squares = up_to * (1 - share) ** 2 + (cells - up_to) * share**2
        heaviest = np.where(up_to < cells, max(share, 1 - share), 1 - share)
        return Balances(squares=squares, largest=heaviest**2 / squares)
    squares = np.empty(cells)
    rows = max(1, BLOCK // cells)
    for begin in range(0, cells, rows):
        some = np.arange(begin, min(begin + rows, cells))
        weights: Floats = np.where(np.arange(cells) <= some[:, None], 1 - share, -share)
        squares[some] = (weights * along.solve(weights)).sum(axis=1)
    return Balances(squares=squares, largest=np.ones(cells))


def reach_of(
    distribution: NoiseDistribution, in_time: float, largest: float, of: Balances, confidence: float
) -> Floats:
    """Return half widths of the T_c of one number, float64 [cells], in grid steps.

    Args:
        distribution: noise of one node.
        in_time: sum of squares of the number's weights in time.
        largest: largest of these squares, as a share of the sum.
        of: noise of each T_c.
        confidence: confidence level of each half width.
    """
    deviations: Floats = np.sqrt(of.squares * in_time)
    if distribution.stable:
        return deviations * half_width(distribution, np.ones(1), confidence)
    spread = 2 ** np.floor(np.log2((1 + 1e-9) / (largest * of.largest))).astype(np.int64)  # few, each an upper bound
    kinds, place = np.unique(np.maximum(spread, 1), return_inverse=True)
    half = np.array([half_width_by_spread(distribution, int(kind), confidence) for kind in kinds])
    widths: Floats = deviations * half[place]
    return widths
