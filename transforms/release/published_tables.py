"""The numbers that are published, and their private twins: one row a number and cell, whatever the data.

    estimates   query, kind, window_start, window_end, <keys>, value, stddev, ci_low, ci_high
    truth       query, kind, window_start, window_end, <keys>, exact, bounded          (private)

Where the data decide about a query when it is published anew, estimates have one more column, `sampled`: whether the
window was; null for other queries. Where it was not, `value` is what was published last, and of its error nothing is
known. Such a query has no nodes: its samples are the estimates themselves.

Where its samples are made with a kd-tree, estimates have a column `spread_over`: over how many cells the noisy count of
a region was spread evenly to make this one (null for other queries). `stddev` is that of the noise. Where it is more
than one cell there is no interval, since how uneven they are is not known.

Where its cells are smoothed over windows (`pegasus`), estimates have a column `grouped`: of how many windows' noisy
numbers this one is made. Where it is more than one there is no interval, and a standard deviation, of the noise alone,
of means only.

Where a query publishes quantiles, estimates have a column `quantile`, which is null for all other rows
(transforms.release.quantile_tables). Ranges have rows of their own, of no further column
(transforms.release.range_tables).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa

from privacy.cells.kdtree import KdTree
from privacy.cells.nonnegative import project_over
from privacy.consistency import consistent
from privacy.estimates import CONFIDENCE, Estimates, confidence_of, estimate
from privacy.noise.distributions import NoiseDistribution, widened
from privacy.noise.mixed import spreads_of_gathered
from privacy.noise.weighted import spreads
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.plan import Released
from privacy.series import Series, totals
from privacy.strategies.base import Strategy
from transforms.aggregation.node_sums import Aggregation
from transforms.release.adaptive_levels import PublishedLevels
from transforms.release.protected import Protected
from transforms.release.published_columns import (
    GROUPED,
    SAMPLED,
    SPREAD_OVER,
    TIME,
    constant,
    key_columns,
    key_types,
    only_of_some,
)
from transforms.release.quantile_tables import QUANTILE, listed_alone, quantile_kind, quantile_numbers
from transforms.release.range_tables import over_ranges, range_estimates, range_kind, range_labels


def estimates_table(protected: Protected, aggregation: Aggregation, released: Released, first_cell: int) -> pa.Table:
    """Published numbers of some cells, those that end in the timeline's new windows."""
    tables = []
    for series, sums in zip(released.series, protected.sums, strict=True):
        found = estimates_of(series, sums, aggregation, released)
        numbers = _columns(found) | only_of_some(aggregation, found.value.size)
        tables.append(_by_number(aggregation, released.query, series, first_cell, sums[0].shape[1], numbers))
        tables += _quantiles(aggregation, released, series, sums)
        tables += _ranges(aggregation, released, series, sums)
    return pa.concat_tables(tables)


def _quantiles(
    aggregation: Aggregation, released: Released, series: Series, sums: Sequence[np.ndarray]
) -> Iterator[pa.Table]:
    """Rows of quantiles of one series; of the keys they have the listed ones."""
    query = aggregation.queries[released.query]
    if not query.quantiles:
        return
    for share, numbers in quantile_numbers(series, sums[0], aggregation, released):
        rows = len(numbers["value"])
        columns = {**numbers, **only_of_some(aggregation, rows), QUANTILE: np.full(rows, share)}
        yield _by_listed(aggregation, released.query, series, quantile_kind(series), [{}], columns)


def _ranges(
    aggregation: Aggregation, released: Released, series: Series, sums: Sequence[np.ndarray]
) -> Iterator[pa.Table]:
    """Rows of ranges of one series; their ordered keys have the ranges as text."""
    query = aggregation.queries[released.query]
    if not query.ranges:
        return
    columns = _columns(range_estimates(series, sums, aggregation, released))
    columns |= only_of_some(aggregation, len(columns["value"]))
    yield _by_listed(aggregation, released.query, series, range_kind(series), range_labels(query), columns)


def _columns(found: Estimates) -> dict[str, np.ndarray | pa.Array]:
    return {
        "value": found.value.ravel(),
        "stddev": found.stddev.ravel(),
        "ci_low": found.ci_low.ravel(),
        "ci_high": found.ci_high.ravel(),
    }


def _by_listed(
    aggregation: Aggregation,
    number: int,
    series: Series,
    kind: str,
    labels: Sequence[Mapping[str, str]],
    numbers: Mapping[str, np.ndarray | pa.Array],
) -> pa.Table:
    """Rows of each number, for each of some labels of the ordered keys, for each combination of listed values.

    Args:
        labels: texts by key; a key without one is null.
    """
    query, types = aggregation.queries[number], key_types(aggregation.queries)
    listed = listed_alone(query)
    queries = (*aggregation.queries[:number], listed, *aggregation.queries[number + 1 :])
    cells = len(labels) * listed.cells
    table = _by_number(replace(aggregation, queries=queries), number, series, 0, cells, numbers)
    ordered = {name for name, _ in query.ordered}
    for name, type_ in types.items():
        texts = [one.get(name) for one in labels for _ in range(listed.cells)] * (table.num_rows // cells)
        column = pa.array(texts, pa.string()) if name in ordered else table[name].cast(type_)
        place = table.column_names.index(name) if name in table.column_names else None
        table = table.append_column(name, column) if place is None else table.set_column(place, name, column)
    table = table.set_column(1, "kind", constant(kind, table.num_rows))
    return table.select([*table.column_names[:4], *types, *numbers])


def adaptive_table(published: PublishedLevels, aggregation: Aggregation, part: AdaptivePart) -> pa.Table:
    """Published levels of all cells, at the ends of the timeline's new windows."""
    query, sampled = aggregation.queries[part.query], published.units > 0
    noise = [part.scales.sample(units) for units in published.units.tolist() if units]
    deviations, widths = np.zeros((2, len(sampled)))
    deviations[sampled] = [distribution.variance**0.5 for distribution in noise]
    each = published.deviations
    if part.over is None:
        widths[sampled] = [distribution.half_width(1, CONFIDENCE) for distribution in noise]
    else:
        widths[sampled] = [_gathered_width(distribution) for distribution in noise]
        each = each if isinstance(part.over, KdTree) else np.sqrt(part.over.variances())
    if each is not None:
        deviations, widths = deviations[:, None] * each, widths[:, None] * each
    found = estimate(query.measure, [published.values], [deviations], [widths])
    cells = published.values.shape[1]
    unknown = ~sampled.repeat(cells)
    uneven = unknown if published.spread is None else unknown | (published.spread.ravel() > 1)
    numbers = {
        "value": found.value.ravel(),
        "stddev": pa.array(found.stddev.ravel(), mask=unknown | np.isnan(found.stddev.ravel())),
        "ci_low": pa.array(found.ci_low.ravel(), mask=uneven),
        "ci_high": pa.array(found.ci_high.ravel(), mask=uneven),
        **only_of_some(aggregation, len(unknown)),
        SAMPLED: pa.array(~unknown),
    }
    if published.spread is not None:
        numbers[GROUPED if part.grouped else SPREAD_OVER] = pa.array(published.spread.ravel())
    return _by_number(aggregation, part.query, query.publish[0], 0, cells, numbers)


def _gathered_width(distribution: NoiseDistribution) -> float:
    """Of what is gathered from several nodes with this noise, for a variance of 1 over cells."""
    once = np.ones(1)
    _, widths = spreads_of_gathered(distribution, variances=once, weights=lambda: [once], confidence=CONFIDENCE)
    return float(widths[0])


def estimates_of(series: Series, sums: Sequence[np.ndarray], aggregation: Aggregation, released: Released) -> Estimates:
    """The numbers of one series with their errors, [numbers, cells]."""
    query = aggregation.queries[released.query]
    windows, since = (count // released.leaf for count in (aggregation.timeline.windows, aggregation.timeline.released))
    merged, confidence = series.merged(released.leaf), confidence_of(len(released.noise))
    over = None if released.over is None or released.over.trivial else released.over
    spread = [
        _spreads(noise, released.strategy, merged, windows, since, confidence, gathered=over is not None)
        for noise in released.noise
    ]
    each = np.ones(1) if over is None else np.sqrt(over.variances())
    found = estimate(
        query.measure, sums, [np.outer(d, each) for d, _ in spread], [np.outer(w, each) for _, w in spread]
    )
    nearest = None if over is None else partial(project_over, over=over)
    return consistent(found, nearest) if query.consistent and series.kind in ("level", "entered", "left") else found


@lru_cache(maxsize=256)
def _spreads(
    distribution: NoiseDistribution,
    strategy: Strategy,
    series: Series,
    windows: int,
    since: int,
    confidence: float,
    *,
    gathered: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviation and half width of each new number, in grid steps; the same for all chunks.

    Args:
        gathered: from several nodes over cells each, so that this is for a variance of 1 over cells.
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


def truth_table(
    exact: np.ndarray,
    bounded: np.ndarray,
    aggregation: Aggregation,
    number: int,
    series: Sequence[Series],
    first_cell: int,
) -> pa.Table:
    """The same rows without noise, for the owner's eyes; a ratio over nothing is null."""
    query, tables = aggregation.queries[number], []
    for one in series:
        numbers, ranges = {}, {}
        for name, leaves in (("exact", exact), ("bounded", bounded)):
            sums = [totals(one, component) for component in leaves]
            numbers[name] = _known(query.measure.estimate([each.astype(np.float64) for each in sums]))
            if query.ranges:
                of_ranges = [over_ranges(each, query).astype(np.float64) for each in sums]
                ranges[name] = _known(query.measure.estimate(of_ranges))
        tables.append(_by_number(aggregation, number, one, first_cell, exact.shape[2], numbers))
        if ranges:
            tables.append(_by_listed(aggregation, number, one, range_kind(one), range_labels(query), ranges))
    return pa.concat_tables(tables)


def _known(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers.ravel(), from_pandas=True)


def _by_number(
    aggregation: Aggregation,
    number: int,
    series: Series,
    first_cell: int,
    cells: int,
    numbers: Mapping[str, np.ndarray | pa.Array],
) -> pa.Table:
    timeline = aggregation.timeline
    new = series.ends(timeline.windows)[len(series.ends(timeline.released)) :]
    starts, ends = (timeline.bounds.at(at).repeat(cells) for at in (new - series.width, new))
    rows = len(ends)
    columns = {
        "query": constant(aggregation.queries[number].name, rows),
        "kind": constant(series.kind, rows),
        "window_start": pa.array(starts, type=pa.int64()).cast(TIME),
        "window_end": pa.array(ends, type=pa.int64()).cast(TIME),
        **key_columns(aggregation, number, first_cell, cells, rows),
        **numbers,
    }
    return pa.table(columns)
