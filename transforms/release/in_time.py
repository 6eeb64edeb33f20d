"""How each new number is made from nodes in time, as far as intervals of what is made from several cells ask for it."""

from collections.abc import Sequence

from privacy.answers.ranges import InTime
from privacy.cells.sums import Floats
from privacy.noise.distributions import DiscreteLaplace, NoiseDistribution, widened
from privacy.planning.plan import Released
from privacy.series import Series
from transforms.aggregation.node_sums import Aggregation


def in_time(
    series: Series, aggregation: Aggregation, released: Released, component: int = 0
) -> Sequence[tuple[NoiseDistribution, InTime]]:
    """Of each new number: the noise of a node, and its weights."""
    timeline, strategy = aggregation.timeline, released.strategy
    windows, since = (count // released.leaf for count in (timeline.windows, timeline.released))
    merged, noise = series.merged(released.leaf), released.noise[component]
    stretch = strategy.stretch(strategy.nodes(windows, since=since or None))
    if stretch is not None:  # each node is a number
        once = InTime(squares=1.0, largest=1.0, weight=1.0)
        return [(widened(noise, width), once) for width in stretch.tolist()]
    squares = strategy.variances(merged, windows, since=since)
    if not isinstance(noise, DiscreteLaplace):  # of its weights no more is asked
        return [(noise, InTime(squares=float(each), largest=1.0, weight=None)) for each in squares]
    weights = strategy.weights(merged, windows, since=since)
    return [(noise, _in_time(float(each), sizes)) for each, sizes in zip(squares, weights, strict=True)]


def _in_time(squares: float, sizes: Floats) -> InTime:
    most = float(sizes.max())
    return InTime(squares=squares, largest=most**2 / squares, weight=most if sizes.min() == most else None)
