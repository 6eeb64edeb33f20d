"""Weights in time of each new number, as far as intervals of numbers from several cells need them."""

from collections.abc import Sequence

from privacy.answers.in_time import NoiseInTime, noise_in_time
from privacy.planning.linear_part import LinearPart
from privacy.series import Series
from transforms.aggregation.node_sums import Aggregation


def in_time(
    series: Series, aggregation: Aggregation, released: LinearPart, component: int = 0
) -> Sequence[NoiseInTime]:
    """Return for each new number the noise of a node, and the number's weights on nodes in time.

    Args:
        series: The series.
        aggregation: Aggregation whose timeline has the new windows.
        released: Part of the plan with the series.
        component: Component of the measure.
    """
    timeline = aggregation.timeline
    windows, since = (count // released.leaf for count in (timeline.windows, timeline.released))
    return noise_in_time(
        released.noise[component], released.strategy, series.merged(released.leaf), windows, since=since
    )
