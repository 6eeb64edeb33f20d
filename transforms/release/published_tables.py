"""Tables of the published numbers and of their private truth: one row for each number and cell, with data or not.

    estimates   query, kind, window_start, window_end, <keys>, value, stddev, ci_low, ci_high
    truth       query, kind, window_start, window_end, <keys>, exact, bounded          (private)

If the data decide when a query is sampled, estimates have a column `sampled`: whether the window was sampled; null for
other queries. If it was not, `value` is the last published one, and its error is unknown. Such a query has no nodes:
its samples are the estimates themselves.

If a policy or the samples spread numbers over several cells or windows, estimates have a column for the number of these
(null for other queries). `stddev` is then that of the noise, if it is known. A spread number has no interval, since the
differences between the cells or windows are unknown.

If a query publishes quantiles, estimates have a column `quantile`, which is null for all other rows
(transforms.release.quantile_tables). Ranges and marginals have separate rows without an additional column
(transforms.release.range_tables, transforms.release.marginal_tables).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from privacy.cells.base import Reading
from privacy.estimates import CONFIDENCE, Estimates, estimate
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.mixed import spreads_of_gathered
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.linear_part import LinearPart
from privacy.series import Ints, Series, totals
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query
from transforms.release.estimated_numbers import estimates_of
from transforms.release.marginal_tables import (
    Marginal,
    by_marginal,
    marginal_estimates,
    marginal_kind,
    marginals_of,
    over_listed,
    over_rows,
)
from transforms.release.protected import Protected
from transforms.release.published_columns import (
    SAMPLED,
    TIME,
    constant,
    key_columns,
    key_types,
    only_of_some,
)
from transforms.release.quantile_tables import QUANTILE, listed_alone, quantile_kind, quantile_numbers
from transforms.release.range_tables import over_ranges, range_estimates, range_kind, range_labels


def estimates_table(protected: Protected, aggregation: Aggregation, released: LinearPart, first_cell: int) -> pa.Table:
    """Return the published numbers of some cells that end in the timeline's new windows.

    Args:
        protected: Noisy nodes and numbers of a block.
        aggregation: Aggregation whose timeline ends with the block.
        released: Part of the plan.
        first_cell: First cell of the chunk.
    """
    tables = []
    for series, sums in zip(released.series, protected.sums, strict=True):
        found = estimates_of(series, sums, aggregation, released)
        numbers = _columns(aggregation, found)
        tables.append(_by_number(aggregation, released.query, series, first_cell, sums[0].shape[1], numbers))
        tables += _quantiles(aggregation, released, series, sums)
        tables += _ranges(aggregation, released, series, sums)
        for marginal in marginals_of(aggregation.queries[released.query]):
            of_rows = marginal_estimates(series, sums, aggregation, released, marginal, found.value)
            tables.append(_by_marginal(aggregation, released.query, series, marginal, _columns(aggregation, of_rows)))
    return pa.concat_tables(tables)


def _quantiles(
    aggregation: Aggregation, released: LinearPart, series: Series, sums: Sequence[np.ndarray]
) -> Iterator[pa.Table]:
    """Yield rows of quantiles of one series, for each table over the listed keys."""
    query = aggregation.queries[released.query]
    for marginal in over_listed(query) if query.quantiles else ():
        for share, numbers in quantile_numbers(series, sums[0], aggregation, released, marginal):
            rows = len(numbers["value"])
            columns = {**numbers, **only_of_some(aggregation, rows), QUANTILE: np.full(rows, share)}
            yield _by_listed(aggregation, released.query, series, quantile_kind(series), marginal, [{}], columns)


def _ranges(
    aggregation: Aggregation, released: LinearPart, series: Series, sums: Sequence[np.ndarray]
) -> Iterator[pa.Table]:
    """Yield rows of ranges of one series, for each table over the listed keys; ordered keys have the ranges as text."""
    query = aggregation.queries[released.query]
    for marginal in over_listed(query) if query.ranges else ():
        columns = _columns(aggregation, range_estimates(series, sums, aggregation, released, marginal))
        labels, kind = range_labels(query), range_kind(series)
        yield _by_listed(aggregation, released.query, series, kind, marginal, labels, columns)


def _of_query(aggregation: Aggregation, number: int, query: Query) -> Aggregation:
    """Return an aggregation with another query in place of one of its queries."""
    return replace(aggregation, queries=(*aggregation.queries[:number], query, *aggregation.queries[number + 1 :]))


def _columns(aggregation: Aggregation, found: Estimates) -> dict[str, np.ndarray | pa.Array]:
    return {
        "value": found.value.ravel(),
        "stddev": found.stddev.ravel(),
        "ci_low": found.ci_low.ravel(),
        "ci_high": found.ci_high.ravel(),
        **only_of_some(aggregation, found.value.size),
    }


def _by_listed(
    aggregation: Aggregation,
    number: int,
    series: Series,
    kind: str,
    marginal: Marginal,
    labels: Sequence[Mapping[str, str]],
    numbers: Mapping[str, np.ndarray | pa.Array],
) -> pa.Table:
    """Return the rows of each number, label of the ordered keys, and row of a table over the listed keys.

    Args:
        aggregation: The aggregation.
        number: Number of the query.
        series: The series.
        kind: Kind of the rows.
        marginal: The table over the listed keys.
        labels: Texts by key; a key without one is null.
        numbers: Columns of the numbers, [numbers x labels x rows of the table].
    """
    query, types = aggregation.queries[number], key_types(aggregation.queries)
    listed = listed_alone(by_marginal(query, marginal))
    cells = len(labels) * listed.cells
    table = _by_number(_of_query(aggregation, number, listed), number, series, 0, cells, numbers)
    ordered = {name for name, _ in query.ordered}
    for name, type_ in types.items():
        texts = [one.get(name) for one in labels for _ in range(listed.cells)] * (table.num_rows // cells)
        column = pa.array(texts, pa.string()) if name in ordered else table[name].cast(type_)
        place = table.column_names.index(name) if name in table.column_names else None
        table = table.append_column(name, column) if place is None else table.set_column(place, name, column)
    table = table.set_column(1, "kind", constant(kind, table.num_rows))
    return table.select([*table.column_names[:4], *types, *numbers])


def _by_marginal(
    aggregation: Aggregation,
    number: int,
    series: Series,
    marginal: Marginal,
    numbers: Mapping[str, np.ndarray | pa.Array],
) -> pa.Table:
    """Return the rows of each number and combination of the values that a marginal keeps.

    Args:
        aggregation: The aggregation.
        number: Number of the query.
        series: The series.
        marginal: The marginal.
        numbers: Columns of the numbers, [numbers x rows of the marginal].
    """
    query = by_marginal(aggregation.queries[number], marginal)
    table = _by_number(_of_query(aggregation, number, query), number, series, 0, query.cells, numbers)
    for name, type_ in key_types(aggregation.queries).items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(type_))
    return table.set_column(1, "kind", constant(marginal_kind(series), table.num_rows))


def sampled_table(units: Ints, readings: Sequence[Reading], aggregation: Aggregation, part: AdaptivePart) -> pa.Table:
    """Return the published levels of all cells at the ends of the timeline's new windows.

    Args:
        units: Units of the budget that the sample of each window took, int64 [windows]; 0: the last value is repeated.
        readings: Reading of each window.
        aggregation: Aggregation whose timeline has these windows.
        part: Part of the query.
    """
    query, sampled, cells = aggregation.queries[part.query], units > 0, part.over.cells
    noise = [part.scales.sample(one) for one in units.tolist() if one]
    half_width = _gathered_width if not part.over.alone else _own_width
    deviations, widths = np.zeros((2, len(sampled)))
    deviations[sampled] = [distribution.variance**0.5 for distribution in noise]
    widths[sampled] = [half_width(distribution) for distribution in noise]
    each = _together([reading.deviations for reading in readings], cells)
    if each is not None:
        deviations, widths = deviations[:, None] * each, widths[:, None] * each
    values = np.array([reading.cells for reading in readings]).reshape(-1, cells)
    found = estimate(query.measure, [values], [deviations], [widths])
    unknown = ~sampled.repeat(cells)
    spread = _together([reading.spread for reading in readings], cells)
    uneven = unknown if spread is None else unknown | (spread.ravel() > 1)
    numbers = {
        "value": found.value.ravel(),
        "stddev": pa.array(found.stddev.ravel(), mask=unknown | np.isnan(found.stddev.ravel())),
        "ci_low": pa.array(found.ci_low.ravel(), mask=uneven),
        "ci_high": pa.array(found.ci_high.ravel(), mask=uneven),
        **only_of_some(aggregation, len(unknown)),
        SAMPLED: pa.array(~unknown),
    }
    if spread is not None:
        numbers[part.columns[-1].name] = pa.array(spread.ravel())
    return _by_number(aggregation, part.query, query.publish[0], 0, cells, numbers)


def _together(arrays: Sequence[np.ndarray | None], cells: int) -> np.ndarray | None:
    """Return the arrays as [windows, cells]; None without arrays."""
    known = [one for one in arrays if one is not None]
    return np.array(known).reshape(-1, cells) if known else None


def _own_width(distribution: NoiseDistribution) -> float:
    return distribution.half_width(1, CONFIDENCE)


def _gathered_width(distribution: NoiseDistribution) -> float:
    """Return the half width of a sum of several nodes with this noise, for a variance of 1 over cells."""
    once = np.ones(1)
    _, widths = spreads_of_gathered(distribution, variances=once, weights=lambda: [once], confidence=CONFIDENCE)
    return float(widths[0])


def truth_table(
    exact: np.ndarray,
    bounded: np.ndarray,
    aggregation: Aggregation,
    number: int,
    series: Sequence[Series],
    first_cell: int,
) -> pa.Table:
    """Return the rows without noise, for the data controller only; a ratio of zero and zero is null.

    Args:
        exact: Exact sums without contribution bounding, int64 [components, 1 + windows, cells].
        bounded: Exact sums with contribution bounding, int64 [components, 1 + windows, cells].
        aggregation: The aggregation.
        number: Number of the query.
        series: Series of the query.
        first_cell: First of the cells.
    """
    query, tables = aggregation.queries[number], []
    for one in series:
        sums = {
            name: [totals(one, component) for component in leaves]
            for name, leaves in (("exact", exact), ("bounded", bounded))
        }
        numbers = {name: _known(query, each) for name, each in sums.items()}
        tables.append(_by_number(aggregation, number, one, first_cell, exact.shape[2], numbers))
        for marginal in over_listed(query) if query.ranges else ():
            ranges = {
                name: _known(query, [over_ranges(part, query, marginal) for part in each])
                for name, each in sums.items()
            }
            labels = range_labels(query)
            tables.append(_by_listed(aggregation, number, one, range_kind(one), marginal, labels, ranges))
        for marginal in marginals_of(query):
            of_rows = {
                name: _known(query, [over_rows(part, query, marginal.levels) for part in each])
                for name, each in sums.items()
            }
            tables.append(_by_marginal(aggregation, number, one, marginal, of_rows))
    return pa.concat_tables(tables)


def _known(query: Query, sums: Sequence[np.ndarray]) -> pa.Array:
    """Return the numbers of component sums; null for a ratio without a value."""
    return pa.array(query.measure.estimate([each.astype(np.float64) for each in sums]).ravel(), from_pandas=True)


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
