"""The noisy nodes that are published beside the numbers made from them: one row a node and cell, whatever the data.

    nodes       query, layer, node_start, node_end, <keys>, noisy_value, scale, mechanism

A query with several components or parts names its nodes `query`, `query/count`, `query/entered/sum` and so on. The node
of a level, the initial one or one by itself, has no `node_start`.

Under a strategy over cells nodes are sums over several of them: a key with an order then says from which cell to which,
and in which layer of its tree. `noisy_value` and `scale` are those of the sum itself, whatever its weight; a sum whose
cells have weights of their own (privacy.cells.mixed) stays weighted, as the plan has it.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privacy.cells.product import Product
from privacy.cells.quadtree import Quadtree
from privacy.noise.distributions import widened
from privacy.planning.plan import Released
from privacy.series import BEFORE_ALL
from transforms.aggregation.node_sums import Aggregation
from transforms.aggregation.ordered_key import OrderedKey
from transforms.release.protected import Protected
from transforms.release.published_columns import TIME, constant, key_columns, key_types, published_cells


def nodes_table(protected: Protected, aggregation: Aggregation, released: Released, first_cell: int) -> pa.Table:
    """Noisy nodes of some cells, in the measure's units: those that end in the timeline's new windows.

    The initial level comes with the first windows, if it is released.
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
    """Key columns of nodes over cells: of a key with an order, the first and the last cell and the layer."""
    columns: dict[str, pa.Array] = {name: pa.nulls(rows, kind) for name, kind in key_types(aggregation.queries).items()}
    by = aggregation.queries[number].by
    if isinstance(over.axes[0], Quadtree):
        for (name, key), (begin, end) in zip(by, over.axes[0].boxes(), strict=True):
            labels = published_cells(key, columns[name].type, 0, len(key))
            if isinstance(key, OrderedKey):
                labels = _node_ranges(labels, begin, end, over.axes[0].layer())
                begin = np.arange(over.nodes)
            columns[name] = pa.DictionaryArray.from_arrays(
                pa.array(np.tile(begin.astype(np.int32), rows // over.nodes)), labels
            ).cast(columns[name].type)
        return columns
    node = np.arange(over.nodes)
    for (name, key), axis in reversed(list(zip(by, over.axes, strict=True))):
        node, place = np.divmod(node, axis.nodes)
        kind = columns[name].type
        labels = published_cells(key, kind, 0, len(key))
        if isinstance(key, OrderedKey):
            labels = _node_ranges(labels, *axis.ranges(), axis.layer())
        places = pa.array(np.tile(place.astype(np.int32), rows // over.nodes))
        columns[name] = pa.DictionaryArray.from_arrays(places, labels).cast(kind)
    return columns


def _node_ranges(labels: pa.Array, begin: np.ndarray, end: np.ndarray, layer: np.ndarray) -> pa.Array:
    """Of nodes along an ordered key: their first and last cells, and their layers."""
    layers = pc.binary_join_element_wise("layer ", pa.array(layer).cast(pa.string()), "")
    ends = pc.binary_join_element_wise(labels.take(begin), labels.take(end - 1), " to ")
    return pc.binary_join_element_wise(ends, layers, ", ")
