"""Errors of sums over cells, of numbers that a strategy publishes or that have separate noise, from the plan alone."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from privacy.answers.sums import Weights, spread, weights_of
from privacy.cells.sums import Floats, Ints
from privacy.estimates import CONFIDENCE
from privacy.noise.distributions import NoiseDistribution, widened
from privacy.noise.weighted import half_width, spreads
from privacy.series import Series
from privacy.smoothing.noise_covariance import noise_weights
from privacy.strategies.base import Strategy

ONCE = weights_of(np.ones(1))


def spreads_of_numbers(
    noise: NoiseDistribution, strategy: Strategy, series: Series, of_cells: Weights, wanted: Ints, others: Ints | None
) -> Floats:
    """Return standard deviations and half widths of numbers, or of their differences, float64 [2, numbers].

    Args:
        noise: noise of one node.
        strategy: the strategy that publishes the numbers.
        series: their series, in the strategy's windows.
        of_cells: weights of the cells.
        wanted: places of the numbers, int64 [numbers].
        others: places of the numbers that are subtracted, int64 [numbers]; None: nothing is subtracted.

    Returns:
        Errors in grid steps.
    """
    if not len(wanted):
        return np.zeros((2, 0))
    ends = wanted * series.every + series.width
    stretch = strategy.stretch(strategy.nodes(int(max([*ends, *([] if others is None else others + series.width)]))))
    if stretch is not None:
        each = [widened(noise, float(width)) for width in stretch]
        return spreads_of_nodes(each, of_cells, wanted, others)
    if others is not None:
        places = np.unique([wanted, others])
        rows = _rows(strategy, series, tuple(places.tolist()))
        one, other = (rows[np.searchsorted(places, side)] for side in (wanted, others))
        found = [weights_of(apart) for apart in one - other]
    elif noise.stable:
        squares = strategy.variances(series, int(ends[-1]), since=int(ends[0]) - 1)
        found = [weights_of(np.sqrt(np.array([square]))) for square in squares]
    else:
        found = [weights_of(sizes) for sizes in strategy.weights(series, int(ends[-1]), since=int(ends[0]) - 1)]
    return np.array([spread(noise, in_time, of_cells, CONFIDENCE) for in_time in found]).reshape(-1, 2).T


@lru_cache(maxsize=8)
def _rows(strategy: Strategy, series: Series, numbers: tuple[int, ...]) -> Floats:
    """Return the weights of nodes in some numbers, [numbers, nodes]: the same for all sums over cells."""
    return noise_weights(strategy, series, numbers)


def spreads_of_nodes(
    noise: Sequence[NoiseDistribution | None], of_cells: Weights, wanted: Ints, others: Ints | None
) -> Floats:
    """Return the spreads if each number is one node with noise of a separate size; NaN if unknown.

    The half width of a difference is the sum of both half widths (Bonferroni).

    Args:
        noise: noise of each number; None if its error is unknown.
        of_cells, wanted, others: as for `spreads_of_numbers`.

    Returns:
        float64 [2, numbers].
    """
    sides = [wanted] if others is None else [wanted, others]
    confidence = 1 - (1 - CONFIDENCE) / len(sides)
    deviation, width = np.zeros((2, len(wanted)))
    for side in sides:
        found = [
            (np.nan, np.nan) if (one := noise[at]) is None else spread(one, ONCE, of_cells, confidence) for at in side
        ]
        own, half = np.array(found).reshape(-1, 2).T
        deviation, width = np.hypot(deviation, own), width + half
    return np.array([deviation, width])


def half_widths_of_totals(
    noise: NoiseDistribution, strategy: Strategy, series: Series, windows: int, cells: int
) -> Floats:
    """Return the half widths of the sums of all cells, each with its own noise, float64 [numbers], in grid steps.

    Args:
        noise: noise of one node.
        strategy: the strategy that publishes the numbers.
        series: their series, in the strategy's windows.
        windows: number of the strategy's windows.
        cells: number of cells.
    """
    stretch = strategy.stretch(strategy.nodes(windows))
    if stretch is not None:  # each node is a number, with noise of a separate width
        return np.array([widened(noise, width).half_width(cells, CONFIDENCE) for width in stretch.tolist()])
    if noise.stable:
        _, widths = spreads(
            noise, variances=strategy.variances(series, windows) * cells, weights=list, confidence=CONFIDENCE
        )
        return widths
    each = (np.unique(one, return_counts=True) for one in strategy.weights(series, windows))
    return np.array([half_width(noise, sizes, CONFIDENCE, counts=counts * cells) for sizes, counts in each])
