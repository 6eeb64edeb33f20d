"""The tables that are published, and their private twins: one row a window and cell, whatever the data.

    estimates   query, kind, window_start, window_end, <keys>, value, stddev, ci_low, ci_high
    nodes       query, layer, node_start, node_end, <keys>, noisy_value, scale, mechanism
    truth       query, kind, window_start, window_end, <keys>, exact, bounded          (private)

All queries of a release share the columns: a key that a query does not have is null. A query with several components
or families names its nodes `query`, `query/count`, `query/entered/sum` and so on. The opening node has no `node_start`.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from privacy import disjoint
from privacy.disjoint import Kind
from privacy.estimates import estimate
from privacy.mechanisms import Mechanism
from privacy.sensitivity import Family
from transforms.bounded_sums import Aggregation
from transforms.queries import Query, Scalar

TIME = pa.timestamp("us", tz="UTC")


def estimates_table(
    noisy: np.ndarray,
    aggregation: Aggregation,
    number: int,
    kinds: Sequence[Kind],
    first_cell: int,
    noise: Sequence[Mechanism],
) -> pa.Table:
    """Published numbers of one chunk; `noisy` [components, 1 + windows, cells] in grid steps."""
    measure = aggregation.queries[number].measure
    tables = []
    for kind in kinds:
        sums = [disjoint.combine(kind, nodes) for nodes in noisy]
        told = estimate(measure, sums, noise, disjoint.terms(kind, aggregation.timeline.windows))
        numbers = {
            "value": told.value.ravel(),
            "stddev": told.stddev.ravel(),
            "ci_low": told.ci_low.ravel(),
            "ci_high": told.ci_high.ravel(),
        }
        tables.append(_by_window(aggregation, number, kind, first_cell, noisy.shape[2], numbers))
    return pa.concat_tables(tables)


def truth_table(
    exact: np.ndarray,
    bounded: np.ndarray,
    aggregation: Aggregation,
    number: int,
    kinds: Sequence[Kind],
    first_cell: int,
) -> pa.Table:
    """The same rows without noise, for the owner's eyes; a ratio over nothing is null."""
    measure = aggregation.queries[number].measure
    tables = []
    for kind in kinds:
        numbers = {}
        for name, nodes in (("exact", exact), ("bounded", bounded)):
            sums = [disjoint.combine(kind, component).astype(np.float64) for component in nodes]
            numbers[name] = pa.array(measure.estimate(sums).ravel(), from_pandas=True)
        tables.append(_by_window(aggregation, number, kind, first_cell, exact.shape[2], numbers))
    return pa.concat_tables(tables)


def nodes_table(
    noisy: np.ndarray,
    aggregation: Aggregation,
    number: int,
    family: Family,
    first_cell: int,
    noise: Sequence[Mechanism],
    opening: bool,
) -> pa.Table:
    """Noisy nodes of one chunk, in the measure's units; the opening node only if it is released."""
    query, timeline = aggregation.queries[number], aggregation.timeline
    cells = noisy.shape[2]
    first = 0 if opening else 1
    index = np.arange(first, timeline.windows + 1).repeat(cells)
    starts = timeline.start + (index - 1) * timeline.every
    tables = []
    for component, nodes, law in zip(query.measure.components, noisy, noise, strict=True):
        names = [query.name]
        names += [family] if family != "net" else []
        names += [component.name] if len(noise) > 1 else []
        rows = len(index)
        columns: dict[str, pa.Array] = {
            "query": _constant("/".join(names), rows),
            "layer": pa.array(np.zeros(rows, dtype=np.int32)),
            "node_start": pa.array(starts, type=pa.int64(), mask=index == 0).cast(TIME),
            "node_end": pa.array(starts + timeline.every, type=pa.int64()).cast(TIME),
            **_keys(aggregation, number, first_cell, cells, rows),
            "noisy_value": pa.array(nodes[first:].ravel() * component.grid),
            "scale": pa.array(np.full(rows, law.scale * component.grid)),
            "mechanism": _constant(law.name, rows),
        }
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def _by_window(
    aggregation: Aggregation,
    number: int,
    kind: Kind,
    first_cell: int,
    cells: int,
    numbers: dict[str, np.ndarray],
) -> pa.Table:
    timeline = aggregation.timeline
    starts = (timeline.start + np.arange(timeline.windows) * timeline.every).repeat(cells)
    rows = len(starts)
    columns = {
        "query": _constant(aggregation.queries[number].name, rows),
        "kind": _constant(kind, rows),
        "window_start": pa.array(starts, type=pa.int64()).cast(TIME),
        "window_end": pa.array(starts + timeline.every, type=pa.int64()).cast(TIME),
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
