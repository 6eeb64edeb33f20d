"""Columns that published tables share: names and types, which follow from the queries alone, and values of keys.

All queries of a release share the columns: a key that a query does not have is null.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Query, Scalar
from transforms.release.quantile_tables import QUANTILE

SAMPLED = "sampled"
SPREAD_OVER = "spread_over"
GROUPED = "grouped"

TIME = pa.timestamp("us", tz="UTC")


def estimates_types(queries: Sequence[Query]) -> dict[str, pa.DataType]:
    """All columns of `estimates` in a release of these queries, which follow from the queries alone."""
    return {
        **dict.fromkeys(("query", "kind"), pa.string()),
        **dict.fromkeys(("window_start", "window_end"), TIME),
        **key_types(queries),
        **dict.fromkeys(("value", "stddev", "ci_low", "ci_high"), pa.float64()),
        **_types_of_some(queries),
    }


def nodes_types(queries: Sequence[Query]) -> dict[str, pa.DataType]:
    """All columns of `nodes`, likewise."""
    return {
        "query": pa.string(),
        "layer": pa.int32(),
        **dict.fromkeys(("node_start", "node_end"), TIME),
        **key_types(queries),
        **dict.fromkeys(("noisy_value", "scale"), pa.float64()),
        "mechanism": pa.string(),
    }


def only_of_some(aggregation: Aggregation, rows: int) -> dict[str, np.ndarray | pa.Array]:
    """Columns that a release has only if one of its queries needs them, empty."""
    return {name: pa.nulls(rows, kind) for name, kind in _types_of_some(aggregation.queries).items()}


def _types_of_some(queries: Sequence[Query]) -> dict[str, pa.DataType]:
    kinds = {
        SAMPLED: pa.bool_() if any(query.adaptive is not None for query in queries) else None,
        GROUPED: pa.int64() if any(_groups(query) for query in queries) else None,
        SPREAD_OVER: pa.int64() if any(query.over.name == "kdtree" for query in queries) else None,
        QUANTILE: pa.float64() if any(query.quantiles for query in queries) else None,
    }
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _groups(query: Query) -> bool:
    return query.adaptive is not None and query.adaptive.policy == "pegasus"


def key_types(queries: Sequence[Query]) -> dict[str, pa.DataType]:
    """Every key of the release and its published type: whole numbers if all its values are, else text."""
    kinds: dict[str, set[type]] = {}
    for query in queries:
        for name, key in query.by:
            kinds.setdefault(name, set()).update({OrderedKey} if isinstance(key, OrderedKey) else map(type, key))
    return {name: pa.int64() if found <= {int} else pa.string() for name, found in kinds.items()}


def key_columns(aggregation: Aggregation, number: int, first_cell: int, cells: int, rows: int) -> dict[str, pa.Array]:
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


def published_cells(key: Sequence[Scalar] | OrderedKey, kind: pa.DataType, first: int, last: int) -> pa.Array:
    """Cells `first` to `last - 1` of a key as they stand in the tables."""
    if isinstance(key, OrderedKey):
        return key.labels(first, last)
    listed = key[first:last]
    if pa.types.is_integer(kind):
        return pa.array(listed, type=kind)
    return pa.array([str(v).lower() if isinstance(v, bool) else str(v) for v in listed], type=pa.string())


def constant(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([text])).cast(pa.string())
