"""Tables of the published noisy nodes: one row for each node and cell, with data or not.

    nodes       query, layer, node_start, node_end, <keys>, noisy_value, scale, mechanism

A query with several components or parts names its nodes `query`, `query/count`, `query/entered/sum` and so on. The node
of a level, the initial or a single one, has no `node_start`.

Under a strategy over cells nodes are sums over several of them: a key with an order then states the range of cells and
the layer of the strategy's tree, a key with a hierarchy the name of the inner node, and a listed key over which a node
adds up has the text `all`. `noisy_value` and `scale` are those of the sum itself, without its weight. A sum with
different weights for its cells (privacy.cells.mixed) stays weighted, as in the plan. A contrast
(privacy.cells.residuals) has the keys of the marginal's row that it belongs to.
"""

from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.cells.nested import Nested
from privacy.cells.product import Product
from privacy.noise.distributions import widened
from privacy.planning.linear_part import LinearPart
from privacy.series import BEFORE_ALL
from transforms.aggregation.hierarchy_key import Hierarchy
from transforms.aggregation.node_sums import Aggregation
from transforms.release.marginal_tables import ALL
from transforms.release.protected import Protected
from transforms.release.published_columns import TIME, constant, key_columns, key_types


def nodes_table(protected: Protected, aggregation: Aggregation, released: LinearPart, first_cell: int) -> pa.Table:
    """Return the noisy nodes of some cells that end in the timeline's new windows, in the measure's units.

    The initial level comes with the first windows, if it is released.

    Args:
        protected: Noisy nodes and numbers of a block.
        aggregation: Aggregation whose timeline ends with the block.
        released: Part of the plan.
        first_cell: First cell of the chunk.
    """
    query, timeline = aggregation.queries[released.query], aggregation.timeline
    cells = protected.nodes[0].shape[1]
    since = timeline.released // released.leaf if timeline.released else None
    nodes = released.strategy.nodes(timeline.windows // released.leaf, since=since)
    initial = (nodes.begin == BEFORE_ALL).repeat(cells)
    begin, end = (np.maximum(at, 0) * released.leaf for at in (nodes.begin, nodes.end))
    starts, ends = (timeline.bounds.at(at).repeat(cells) for at in (begin, end))
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
            "query": constant("/".join(names), rows),
            "layer": pa.array(nodes.layer.astype(np.int32).repeat(cells)),
            "node_start": pa.array(starts, type=pa.int64(), mask=initial).cast(TIME),
            "node_end": pa.array(ends, type=pa.int64()).cast(TIME),
            **(
                key_columns(aggregation, released.query, first_cell, cells, rows)
                if released.over is None
                else _node_keys(aggregation, released.query, released.over, rows)
            ),
            "noisy_value": pa.array((values * (component.grid / weights)).ravel()),
            "scale": pa.array(scales * (component.grid / np.tile(weights, rows // cells))),
            "mechanism": constant(distribution.name, rows),
        }
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def _node_keys(aggregation: Aggregation, number: int, over: Product, rows: int) -> dict[str, pa.Array]:
    """Return the key columns of nodes over cells; a key with an order has the first and the last cell and the layer."""
    columns: dict[str, pa.Array] = {name: pa.nulls(rows, kind) for name, kind in key_types(aggregation.queries).items()}
    query = aggregation.queries[number]
    node, keys, ordered = np.arange(over.nodes), list(query.known), dict(query.ordered)
    hierarchies = dict(query.hierarchies)
    for axis in reversed(over.axes):
        node, place = np.divmod(node, axis.matrix.nodes)
        for begin, end in reversed(axis.boxes()):
            name, key = keys.pop()
            kind = columns[name].type
            labels, at = key.published(0, len(key), kind), begin[place]
            if name in hierarchies:
                labels, at = _node_names(labels, hierarchies[name], cast(Nested, axis)), place
            elif name in ordered:
                labels, at = _node_ranges(labels, begin, end, axis.matrix.layer()), place
            elif len(key) > 1 and (end - begin).max() > 1:  # sums over all cells of a listed key
                labels, at = (
                    pa.concat_arrays([labels, pa.array([ALL])]),
                    np.where(end - begin > 1, len(key), begin)[place],
                )
            places = pa.array(np.tile(at.astype(np.int32), rows // over.nodes))
            columns[name] = pa.DictionaryArray.from_arrays(places, labels).cast(kind)
    return columns


def _node_names(labels: pa.Array, hierarchy: Hierarchy, axis: Nested) -> pa.Array:
    """Return the names of nodes of a hierarchy; a value that is a node of an upper level too states that level."""
    found = labels.to_pylist()
    for layer, (level, weight) in enumerate(zip(hierarchy.levels, axis.weights[1:], strict=True), start=1):
        if weight:
            names, ends = dict(zip(level.places, level.names, strict=True)), np.cumsum(axis.sizes()[layer])
            values = labels.take(pa.array(ends - 1)).to_pylist()
            found += [names.get(place, f"{value}, level {layer}") for place, value in enumerate(values)]
    return pa.array(found, pa.string())


def _node_ranges(labels: pa.Array, begin: np.ndarray, end: np.ndarray, layer: np.ndarray) -> pa.Array:
    """Return the first and last cells and the layers of nodes along an ordered key, as texts."""
    layers = pc.binary_join_element_wise("layer ", pa.array(layer).cast(pa.string()), "")
    ends = pc.binary_join_element_wise(labels.take(begin), labels.take(end - 1), " to ")
    return pc.binary_join_element_wise(ends, layers, ", ")
