"""The tables that are published, and their private twins: one row a number and cell, whatever the data.

    estimates   query, kind, window_start, window_end, <keys>, value, stddev, ci_low, ci_high
    nodes       query, layer, node_start, node_end, <keys>, noisy_value, scale, mechanism
    truth       query, kind, window_start, window_end, <keys>, exact, bounded          (private)

All queries of a release share the columns: a key that a query does not have is null. A query with several components
or parts names its nodes `query`, `query/count`, `query/entered/sum` and so on. The opening node has no `node_start`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from privacy.consistency import consistent
from privacy.estimates import Estimates, confidence_of, estimate
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.weighted import spreads
from privacy.planning.plan import Released
from privacy.series import BEFORE_ALL, Series, totals
from privacy.strategies.base import Strategy
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query, Scalar

TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """What one part of a release makes public of one chunk of cells in one run, in grid steps.

    Attributes:
        nodes: for each component [nodes, cells], those that the windows of the run complete.
        sums: for each series and component [numbers, cells], those that end in them.
    """

    nodes: list[np.ndarray]
    sums: list[list[np.ndarray]]


def estimates_table(protected: Protected, aggregation: Aggregation, released: Released, first_cell: int) -> pa.Table:
    """Published numbers of one chunk."""
    tables = []
    for series, sums in zip(released.series, protected.sums, strict=True):
        told = estimates_of(series, sums, aggregation, released)
        numbers = {
            "value": told.value.ravel(),
            "stddev": told.stddev.ravel(),
            "ci_low": told.ci_low.ravel(),
            "ci_high": told.ci_high.ravel(),
        }
        tables.append(_by_number(aggregation, released.query, series, first_cell, sums[0].shape[1], numbers))
    return pa.concat_tables(tables)


def estimates_of(series: Series, sums: Sequence[np.ndarray], aggregation: Aggregation, released: Released) -> Estimates:
    """The numbers of one series with their errors, [numbers, cells]."""
    query = aggregation.queries[released.query]
    leaves = aggregation.timeline.windows // released.leaf
    first = len(series.ends(aggregation.timeline.released))
    spread = [
        _spreads(
            distribution, released.strategy, series.merged(released.leaf), leaves, confidence_of(len(released.noise))
        )
        for distribution in released.noise
    ]
    found = estimate(query.measure, sums, [d[first:] for d, _ in spread], [w[first:] for _, w in spread])
    return consistent(found) if query.consistent and series.kind in ("level", "entered", "left") else found


@lru_cache(maxsize=256)
def _spreads(
    distribution: NoiseDistribution, strategy: Strategy, series: Series, windows: int, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviation and half width of each number, in grid steps; the same for all chunks."""
    return spreads(
        distribution,
        variances=strategy.variances(series, windows),
        weights=lambda: strategy.weights(series, windows),
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
    """Noisy nodes of one chunk, in the measure's units; the opening node only if it is released."""
    query, timeline = aggregation.queries[released.query], aggregation.timeline
    cells = protected.nodes[0].shape[1]
    nodes = released.strategy.nodes(timeline.windows // released.leaf)
    new = slice(len(nodes.end) - len(protected.nodes[0]), None)
    length = timeline.every * released.leaf
    starts, ends = ((timeline.start + at[new] * length).repeat(cells) for at in (nodes.begin, nodes.end))
    untold = (nodes.begin[new] == BEFORE_ALL).repeat(cells)
    rows = len(starts)
    tables = []
    for component, values, distribution in zip(query.measure.components, protected.nodes, released.noise, strict=True):
        names = [query.name]
        names += [released.family] if released.family != "net" else []
        own = released.strategy.node_name(released.series)
        names += [own] if own else []
        names += [component.name] if len(released.noise) > 1 else []
        columns: dict[str, pa.Array] = {
            "query": _constant("/".join(names), rows),
            "layer": pa.array(nodes.layer[new].astype(np.int32).repeat(cells)),
            "node_start": pa.array(starts, type=pa.int64(), mask=untold).cast(TIME),
            "node_end": pa.array(ends, type=pa.int64()).cast(TIME),
            **_keys(aggregation, released.query, first_cell, cells, rows),
            "noisy_value": pa.array(values.ravel() * component.grid),
            "scale": pa.array(np.full(rows, distribution.scale * component.grid)),
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
    numbers: dict[str, np.ndarray],
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
    keys = query.cell_keys()[first_cell : first_cell + cells]
    own = [key for key, _ in query.by]
    columns = {}
    for name, kind in key_types(aggregation.queries).items():
        if name in own:
            place = own.index(name)
            values = [_as(key[place], kind) for key in keys]
            column = pa.array(values, type=kind).dictionary_encode()
            indices = pa.array(np.tile(column.indices.to_numpy(), rows // cells if cells else 0))
            columns[name] = pa.DictionaryArray.from_arrays(indices, column.dictionary).cast(kind)
        else:
            columns[name] = pa.nulls(rows, kind)
    return columns


def key_types(queries: Sequence[Query]) -> dict[str, pa.DataType]:
    """Every key of the release and its published type: whole numbers if all its values are, else text."""
    values: dict[str, list[Scalar]] = {}
    for query in queries:
        for key, listed in query.by:
            values.setdefault(key, []).extend(listed)
    return {key: pa.int64() if all(type(v) is int for v in listed) else pa.string() for key, listed in values.items()}


def _as(value: Scalar, kind: pa.DataType) -> Scalar:
    if pa.types.is_integer(kind):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _constant(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([text])).cast(pa.string())
