"""Weights in time of each new number, as far as intervals of numbers from several cells need them."""

from collections.abc import Sequence

from privacy.answers.ranges import InTime
from privacy.cells.sums import Floats
from privacy.noise.distributions import NoiseDistribution, widened
from privacy.planning.linear_part import LinearPart
from privacy.series import Series
from transforms.aggregation.node_sums import Aggregation


def in_time(
    series: Series, aggregation: Aggregation, released: LinearPart, component: int = 0
) -> Sequence[tuple[NoiseDistribution, InTime]]:
    """Return for each new number the noise of a node, and the number's weights on nodes in time.

    Args:
        series: The series.
        aggregation: Aggregation whose timeline has the new windows.
        released: Part of the plan with the series.
        component: Component of the measure.
    """
    timeline, strategy = aggregation.timeline, released.strategy
    windows, since = (count // released.leaf for count in (timeline.windows, timeline.released))
    merged, noise = series.merged(released.leaf), released.noise[component]
    stretch = strategy.stretch(strategy.nodes(windows, since=since or None))
    if stretch is not None:  # each node is a number
        once = InTime(squares=1.0, largest=1.0, weight=1.0)
        return [(widened(noise, width), once) for width in stretch.tolist()]
    squares = strategy.variances(merged, windows, since=since)
    if noise.stable:  # nothing else of its weights is needed
        return [(noise, InTime(squares=float(each), largest=1.0, weight=None)) for each in squares]
    weights = strategy.weights(merged, windows, since=since)
    return [(noise, _in_time(float(each), sizes)) for each, sizes in zip(squares, weights, strict=True)]


def _in_time(squares: float, sizes: Floats) -> InTime:
    most = float(sizes.max())
    return InTime(squares=squares, largest=most**2 / squares, weight=most if sizes.min() == most else None)
