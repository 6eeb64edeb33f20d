"""The tables that are published, and their private twins: one row a number and cell, whatever the data.

    estimates   query, kind, window_start, window_end, <keys>, value, stddev, ci_low, ci_high
    nodes       query, layer, node_start, node_end, <keys>, noisy_value, scale, mechanism
    truth       query, kind, window_start, window_end, <keys>, exact, bounded          (private)

Where the data decide about a query when it is published anew, estimates have one more column, `sampled`: whether the
window was; null for other queries. Where it was not, `value` is what was published last, and of its error nothing is
known. Such a query has no nodes: its samples are the estimates themselves.

Where a query publishes quantiles, estimates have a column `quantile`, which is null for all other rows
(transforms.release.quantile_tables).

All queries of a release share the columns: a key that a query does not have is null. A query with several components
or parts names its nodes `query`, `query/count`, `query/entered/sum` and so on. The node of a level, the initial one or
one by itself, has no `node_start`.

Under a strategy over cells nodes are sums over several of them: a key with an order then says from which cell to which,
and in which layer of its tree. `noisy_value` and `scale` are those of the sum itself, whatever its weight.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.cells.product import Product
from privacy.consistency import consistent
from privacy.estimates import CONFIDENCE, Estimates, confidence_of, estimate
from privacy.noise.distributions import NoiseDistribution, widened
from privacy.noise.mixed import spreads_of_gathered
from privacy.noise.weighted import spreads
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.plan import Released
from privacy.series import BEFORE_ALL, Series, totals
from privacy.strategies.base import Strategy
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Scalar
from transforms.release.adaptive_levels import PublishedLevels
from transforms.release.protected import Protected
from transforms.release.quantile_tables import QUANTILE, listed_alone, quantile_kind, quantile_numbers

SAMPLED = "sampled"

TIME = pa.timestamp("us", tz="UTC")


def estimates_table(protected: Protected, aggregation: Aggregation, released: Released, first_cell: int) -> pa.Table:
    """Published numbers of some cells, those that end in the timeline's new windows."""
    tables = []
    for series, sums in zip(released.series, protected.sums, strict=True):
        found = estimates_of(series, sums, aggregation, released)
        numbers: dict[str, np.ndarray | pa.Array] = {
            "value": found.value.ravel(),
            "stddev": found.stddev.ravel(),
            "ci_low": found.ci_low.ravel(),
            "ci_high": found.ci_high.ravel(),
        }
        numbers |= _only_of_some(aggregation, found.value.size)
        tables.append(_by_number(aggregation, released.query, series, first_cell, sums[0].shape[1], numbers))
        tables += _quantiles(aggregation, released, series, sums)
    return pa.concat_tables(tables)


def _only_of_some(aggregation: Aggregation, rows: int) -> dict[str, np.ndarray | pa.Array]:
    """Columns that a release has only if one of its queries needs them, empty."""
    kinds = {
        SAMPLED: pa.bool_() if any(query.adaptive is not None for query in aggregation.queries) else None,
        QUANTILE: pa.float64() if any(query.quantiles for query in aggregation.queries) else None,
    }
    return {name: pa.nulls(rows, kind) for name, kind in kinds.items() if kind is not None}


def _quantiles(
    aggregation: Aggregation, released: Released, series: Series, sums: Sequence[np.ndarray]
) -> list[pa.Table]:
    """Rows of quantiles of one series; of the keys they have the listed ones."""
    query = aggregation.queries[released.query]
    if not query.quantiles:
        return []
    others = [listed_alone(one) if place == released.query else one for place, one in enumerate(aggregation.queries)]
    listed, tables = replace(aggregation, queries=tuple(others)), []
    for share, numbers in quantile_numbers(series, sums[0], aggregation, released):
        rows = len(numbers["value"])
        columns = {**numbers, **_only_of_some(aggregation, rows), QUANTILE: np.full(rows, share)}
        table = _by_number(listed, released.query, series, 0, others[released.query].cells, columns)
        table = table.set_column(1, "kind", _constant(quantile_kind(series), rows))
        for name, kind in key_types(aggregation.queries).items():
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(rows, kind))
        order = [*table.column_names[:4], *key_types(aggregation.queries), *columns]
        tables.append(table.select(order))
    return tables


def adaptive_table(published: PublishedLevels, aggregation: Aggregation, part: AdaptivePart) -> pa.Table:
    """Published levels of all cells, at the ends of the timeline's new windows."""
    query, sampled = aggregation.queries[part.query], published.units > 0
    noise = [part.scales.sample(units) for units in published.units.tolist() if units]
    deviations, widths = np.zeros((2, len(sampled)))
    deviations[sampled] = [distribution.variance**0.5 for distribution in noise]
    widths[sampled] = [distribution.half_width(1, CONFIDENCE) for distribution in noise]
    found = estimate(query.measure, [published.values], [deviations], [widths])
    cells = published.values.shape[1]
    unknown = ~sampled.repeat(cells)
    numbers = {
        "value": found.value.ravel(),
        "stddev": pa.array(found.stddev.ravel(), mask=unknown),
        "ci_low": pa.array(found.ci_low.ravel(), mask=unknown),
        "ci_high": pa.array(found.ci_high.ravel(), mask=unknown),
        **_only_of_some(aggregation, len(unknown)),
        SAMPLED: pa.array(~unknown),
    }
    return _by_number(aggregation, part.query, query.publish[0], 0, cells, numbers)


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
    return consistent(found) if query.consistent and series.kind in ("level", "entered", "left") else found


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
    measure = aggregation.queries[number].measure
    tables = []
    for one in series:
        numbers = {}
        for name, leaves in (("exact", exact), ("bounded", bounded)):
            sums = [totals(one, component).astype(np.float64) for component in leaves]
            numbers[name] = pa.array(measure.estimate(sums).ravel(), from_pandas=True)
        tables.append(_by_number(aggregation, number, one, first_cell, exact.shape[2], numbers))
    return pa.concat_tables(tables)


def nodes_table(protected: Protected, aggregation: Aggregation, released: Released, first_cell: int) -> pa.Table:
    """Noisy nodes of some cells, in the measure's units: those that end in the timeline's new windows.

    The initial level comes with the first windows, if it is released.
    """
    query, timeline = aggregation.queries[released.query], aggregation.timeline
    cells = protected.nodes[0].shape[1]
    since = timeline.released // released.leaf if timeline.released else None
    nodes = released.strategy.nodes(timeline.windows // released.leaf, since=since)
    length = timeline.every * released.leaf
    starts, ends = ((timeline.start + at * length).repeat(cells) for at in (nodes.begin, nodes.end))
    initial = (nodes.begin == BEFORE_ALL).repeat(cells)
    rows = len(starts)
    weights = np.ones(cells) if released.over is None else released.over.weights()
    tables = []
    for component, values, distribution in zip(query.measure.components, protected.nodes, released.noise, strict=True):
        names = [query.name]
        names += [released.family] if released.family != "net" else []
        own = released.strategy.node_name(released.series)
        names += [own] if own else []
        names += [component.name] if len(released.noise) > 1 else []
        stretch = released.strategy.stretch(nodes)
        if stretch is None:
            scales = np.full(rows, distribution.scale)
        else:
            scales = np.array([widened(distribution, width).scale for width in stretch.tolist()]).repeat(cells)
        columns: dict[str, pa.Array] = {
            "query": _constant("/".join(names), rows),
            "layer": pa.array(nodes.layer.astype(np.int32).repeat(cells)),
            "node_start": pa.array(starts, type=pa.int64(), mask=initial).cast(TIME),
            "node_end": pa.array(ends, type=pa.int64()).cast(TIME),
            **(
                _keys(aggregation, released.query, first_cell, cells, rows)
                if released.over is None
                else _node_keys(aggregation, released.query, released.over, rows)
            ),
            "noisy_value": pa.array((values * (component.grid / weights)).ravel()),
            "scale": pa.array(scales * (component.grid / np.tile(weights, rows // cells))),
            "mechanism": _constant(distribution.name, rows),
        }
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


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
    ends = timeline.start + new.repeat(cells) * timeline.every
    rows = len(ends)
    columns = {
        "query": _constant(aggregation.queries[number].name, rows),
        "kind": _constant(series.kind, rows),
        "window_start": pa.array(ends - series.width * timeline.every, type=pa.int64()).cast(TIME),
        "window_end": pa.array(ends, type=pa.int64()).cast(TIME),
        **_keys(aggregation, number, first_cell, cells, rows),
        **numbers,
    }
    return pa.table(columns)


def _keys(aggregation: Aggregation, number: int, first_cell: int, cells: int, rows: int) -> dict[str, pa.Array]:
    """Key columns of all queries; this query's hold its cells' values, window after window."""
    query = aggregation.queries[number]
    cell = np.arange(first_cell, first_cell + cells)
    columns: dict[str, pa.Array] = {name: pa.nulls(rows, kind) for name, kind in key_types(aggregation.queries).items()}
    for key, listed in reversed(query.by):  # the last key runs fastest
        cell, place = np.divmod(cell, len(listed))
        kind = columns[key].type
        first, last = int(place.min()), int(place.max())  # a chunk may need few of many
        values = published_cells(listed, kind, first, last + 1)
        places = pa.array(np.tile((place - first).astype(np.int32), rows // cells))
        columns[key] = pa.DictionaryArray.from_arrays(places, values).cast(kind)
    return columns


def _node_keys(aggregation: Aggregation, number: int, over: Product, rows: int) -> dict[str, pa.Array]:
    """Key columns of nodes over cells: of a key with an order, the first and the last cell and the layer."""
    columns: dict[str, pa.Array] = {name: pa.nulls(rows, kind) for name, kind in key_types(aggregation.queries).items()}
    node = np.arange(over.nodes)
    for (name, key), axis in reversed(list(zip(aggregation.queries[number].by, over.axes, strict=True))):
        node, place = np.divmod(node, axis.nodes)
        kind = columns[name].type
        labels = published_cells(key, kind, 0, len(key))
        if isinstance(key, OrderedKey):
            begin, end = axis.ranges()
            layer = pc.binary_join_element_wise("layer ", pa.array(axis.layer()).cast(pa.string()), "")
            ends = pc.binary_join_element_wise(labels.take(begin), labels.take(end - 1), " to ")
            labels = pc.binary_join_element_wise(ends, layer, ", ")
        places = pa.array(np.tile(place.astype(np.int32), rows // over.nodes))
        columns[name] = pa.DictionaryArray.from_arrays(places, labels).cast(kind)
    return columns


def published_cells(key: Sequence[Scalar] | OrderedKey, kind: pa.DataType, first: int, last: int) -> pa.Array:
    """Cells `first` to `last - 1` of a key as they stand in the tables."""
    if isinstance(key, OrderedKey):
        return key.labels(first, last)
    listed = key[first:last]
    if pa.types.is_integer(kind):
        return pa.array(listed, type=kind)
    return pa.array([str(v).lower() if isinstance(v, bool) else str(v) for v in listed], type=pa.string())


def key_types(queries: Sequence[Query]) -> dict[str, pa.DataType]:
    """Every key of the release and its published type: whole numbers if all its values are, else text."""
    kinds: dict[str, set[type]] = {}
    for query in queries:
        for name, key in query.by:
            kinds.setdefault(name, set()).update({OrderedKey} if isinstance(key, OrderedKey) else map(type, key))
    return {name: pa.int64() if found <= {int} else pa.string() for name, found in kinds.items()}


def _constant(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([text])).cast(pa.string())
