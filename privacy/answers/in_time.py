"""Weights of numbers on the nodes in time, as far as intervals of sums over cells need them."""

from privacy.answers.ranges import InTime
from privacy.cells.sums import Floats
from privacy.noise.distributions import NoiseDistribution, widened
from privacy.series import Series
from privacy.strategies.base import Strategy

ONE_NODE = InTime(squares=1.0, largest=1.0, weight=1.0)
"""Weights of a number that is one node."""

NoiseInTime = tuple[NoiseDistribution, InTime]
"""Noise of a node, and the weights of a number on the nodes."""


def noise_in_time(
    noise: NoiseDistribution, strategy: Strategy, series: Series, windows: int, *, since: int = 0
) -> list[NoiseInTime]:
    """Return for each number the noise of a node, and its weights on the nodes.

    Args:
        noise: noise of one node.
        strategy: the strategy that publishes the numbers.
        series: their series, in the strategy's windows.
        windows: number of the strategy's windows.
        since: number of windows whose numbers are left out.
    """
    stretch = strategy.stretch(strategy.nodes(windows, since=since or None))
    if stretch is not None:  # each node is a number
        return [(widened(noise, width), ONE_NODE) for width in stretch.tolist()]
    squares = strategy.variances(series, windows, since=since)
    if noise.stable:  # nothing else of its weights is needed
        return [(noise, InTime(squares=float(each), largest=1.0, weight=None)) for each in squares]
    weights = strategy.weights(series, windows, since=since)
    return [(noise, _in_time(float(each), sizes)) for each, sizes in zip(squares, weights, strict=True)]


def _in_time(squares: float, sizes: Floats) -> InTime:
    most = float(sizes.max())
    return InTime(squares=squares, largest=most**2 / squares, weight=most if sizes.min() == most else None)
