"""Columns that published tables share: names and types, which follow from the queries alone, and values of keys.

All queries of a release have the same columns: a key that a query does not have is null.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from privacy.adaptive import base
from privacy.columns import Column
from privacy.planning.adaptive_rules import EVERY_COLUMN, adaptive_columns
from privacy.problems import RuleError
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.queries import Query
from transforms.release.quantile_tables import QUANTILE

SAMPLED = base.SAMPLED.name

TIME = pa.timestamp("us", tz="UTC")

_TYPES = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}


OF_QUANTILES = Column(QUANTILE, float, "quantiles")

OF_SOME = (*EVERY_COLUMN, OF_QUANTILES)
"""All columns that a release has only if a query needs them."""


def estimates_types(queries: Sequence[Query]) -> dict[str, pa.DataType]:
    """Return all columns of `estimates` with their types; they follow from the queries alone."""
    return {
        **dict.fromkeys(("query", "kind"), pa.string()),
        **dict.fromkeys(("window_start", "window_end"), TIME),
        **key_types(queries),
        **dict.fromkeys(("value", "stddev", "ci_low", "ci_high"), pa.float64()),
        **types_of_some(queries),
    }


def nodes_types(queries: Sequence[Query]) -> dict[str, pa.DataType]:
    """Return all columns of `nodes` with their types; they follow from the queries alone."""
    return {
        "query": pa.string(),
        "layer": pa.int32(),
        **dict.fromkeys(("node_start", "node_end"), TIME),
        **key_types(queries),
        **dict.fromkeys(("noisy_value", "scale"), pa.float64()),
        "mechanism": pa.string(),
    }


def only_of_some(aggregation: Aggregation, rows: int) -> dict[str, np.ndarray | pa.Array]:
    """Return the columns that a release has only if one of its queries needs them, with nulls."""
    return {name: pa.nulls(rows, kind) for name, kind in types_of_some(aggregation.queries).items()}


def types_of_some(queries: Sequence[Query]) -> dict[str, pa.DataType]:
    """Return names and types of `columns_of_some`."""
    return {column.name: _TYPES[column.type] for column in columns_of_some(queries)}


def columns_of_some(queries: Sequence[Query]) -> tuple[Column, ...]:
    """Return the columns that a release has only if one of these queries needs them, each once."""
    found = [adaptive_columns(query.adaptive, query.over.name) for query in queries]
    found += [(OF_QUANTILES,) for query in queries if query.quantiles]
    return tuple(dict.fromkeys(column for of_query in found for column in of_query))


def key_types(queries: Sequence[Query]) -> dict[str, pa.DataType]:
    """Return every key of the release and its published type: int64 if all its values are integers, else text.

    A key is text if a marginal adds up over it, since it then also has the value `all`, or if it has a hierarchy.
    """
    kinds: dict[str, set[type]] = {name: set() for query in queries for name, _ in query.by}
    for query in queries:
        for marginal in query.marginals:
            for name in dict(query.by).keys() - set(marginal):
                kinds[name].add(str)
        for name, _ in query.hierarchies:
            kinds[name].add(str)
        for name, _ in query.ordered:
            kinds[name].add(str)
        for name, cells in query.listed:
            kinds[name].update(map(type, cells))
        if query.found_by is not None:
            kinds[query.found_by].add(str)
    return {name: pa.int64() if found <= {int} else pa.string() for name, found in kinds.items()}


def key_columns(aggregation: Aggregation, number: int, first_cell: int, cells: int, rows: int) -> dict[str, pa.Array]:
    """Return the key columns of all queries; this query's hold the values of its cells, window after window.

    Args:
        aggregation: The aggregation.
        number: Number of the query.
        first_cell: First cell of the chunk.
        cells: Number of cells.
        rows: Number of rows.
    """
    query = aggregation.queries[number]
    cell = np.arange(first_cell, first_cell + cells)
    columns: dict[str, pa.Array] = {name: pa.nulls(rows, kind) for name, kind in key_types(aggregation.queries).items()}
    for name, key in reversed(query.known):  # the last key varies fastest
        cell, place = np.divmod(cell, len(key))
        kind = columns[name].type
        first, last = int(place.min()), int(place.max())  # a chunk can need few of many cells
        values = key.published(first, last + 1, kind)
        places = pa.array(np.tile((place - first).astype(np.int32), rows // cells))
        columns[name] = pa.DictionaryArray.from_arrays(places, values).cast(kind)
    return columns


def constant(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([text])).cast(pa.string())


PUBLISHED = frozenset({*estimates_types(()), *nodes_types(()), "exact", "bounded"})
"""Columns of published files, and of `evaluate`, without the keys of queries and the columns that some queries add."""


def name_problems(keys: Iterable[str], some: Iterable[Column]) -> Iterator[RuleError]:
    """Yield the keys of a query that have the name of a published column.

    Args:
        keys: Keys of the query.
        some: Columns that queries of the release add.
    """
    taken = {column.name: column.of for column in some}
    for key in keys:
        if key.lower() in PUBLISHED:
            yield RuleError("the published files have a column of this name; rename it in the source", "by", key)
        elif (what := taken.get(key.lower())) is not None:
            message = f"the published files have a column {key.lower()}, for {what}; rename it in the source"
            yield RuleError(message, "by", key)
