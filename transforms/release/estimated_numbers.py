"""Published numbers of one series with standard deviations and intervals, from noisy sums and the plan."""

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from privacy.cells.nonnegative import project_over
from privacy.cells.sums import exactly_summed
from privacy.consistency import consistent, project
from privacy.estimates import Estimates, confidence_of, estimate
from privacy.noise.distributions import NoiseDistribution, widened
from privacy.noise.mixed import spreads_of_gathered
from privacy.noise.weighted import spreads
from privacy.planning.linear_part import LinearPart
from privacy.series import Series
from privacy.strategies.base import Strategy
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query


def estimates_of(
    series: Series, sums: Sequence[np.ndarray], aggregation: Aggregation, released: LinearPart
) -> Estimates:
    """Return the numbers of one series with their errors, [numbers, cells].

    Args:
        series: The series.
        sums: Noisy components of the numbers, each [numbers, cells], in grid steps.
        aggregation: The aggregation.
        released: Part of the plan.
    """
    query = aggregation.queries[released.query]
    windows, since = (count // released.leaf for count in (aggregation.timeline.windows, aggregation.timeline.released))
    merged, confidence = series.merged(released.leaf), confidence_of(len(released.noise))
    over = None if released.over is None or released.over.trivial else released.over
    spread = [
        new_spreads(noise, released.strategy, merged, windows, since, confidence, gathered=over is not None)
        for noise in released.noise
    ]
    each = np.ones(1) if over is None else np.sqrt(over.variances())
    found = estimate(
        query.measure, sums, [np.outer(d, each) for d, _ in spread], [np.outer(w, each) for _, w in spread]
    )
    if not made_consistent(query, series):
        return found
    nearest = project if over is None else partial(project_over, over=over)
    if query.marginals or query.hierarchies:  # rows that add up to the last bit
        return consistent(found, lambda raw: exactly_summed(nearest(raw)))
    return consistent(found, nearest)


def made_consistent(query: Query, series: Series) -> bool:
    """Return whether the numbers of a series are made non-negative."""
    return query.consistent and series.kind in ("level", "entered", "left")


@lru_cache(maxsize=256)
def new_spreads(
    distribution: NoiseDistribution,
    strategy: Strategy,
    series: Series,
    windows: int,
    since: int,
    confidence: float,
    *,
    gathered: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return standard deviation and half width of each new number, in grid steps; they are the same for all chunks.

    Args:
        distribution: Noise of a node.
        strategy: Strategy in time.
        series: The series.
        windows: Number of windows that have closed.
        since: Number of windows that earlier runs have released.
        confidence: Confidence of the interval.
        gathered: Whether a number is a sum of several nodes over cells; the result is then for a variance of 1 over
            cells.
    """
    estimated = spreads_of_gathered if gathered else spreads
    stretch = strategy.stretch(strategy.nodes(windows, since=since or None))
    if stretch is not None:  # each node is a number
        noise = [widened(distribution, width) for width in stretch.tolist()]
        if gathered:
            alone = [
                estimated(one, variances=np.ones(1), weights=lambda: [np.ones(1)], confidence=confidence)
                for one in noise
            ]
            return np.concatenate([d for d, _ in alone]), np.concatenate([w for _, w in alone])
        widths = [one.half_width(1, confidence) for one in noise]
        return np.array([one.variance**0.5 for one in noise]), np.array(widths)
    return estimated(
        distribution,
        variances=strategy.variances(series, windows, since=since),
        weights=lambda: strategy.weights(series, windows, since=since),
        confidence=confidence,
    )
