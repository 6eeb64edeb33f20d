"""Add noise to every node, once, and turn noisy nodes into what is published. The only file that adds noise.

    in    (NodeKey, bytes)         exact sums (transforms.bounded_sums)
    out   (part name, bytes)       under `nodes` and `estimates`: Arrow IPC streams of published tables

Which nodes are drawn for follows from the plan alone: every window and every cell, so an empty changelog gives the same
rows as a full one. A runner may run any step twice, so the draw is followed by a Reshuffle: what comes
after it sees one draw. A second attempt of a whole run draws again, and nothing of the first may have been published.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import pyarrow as pa

from privacy.plan import Plan, Released
from transforms.bounded_sums import Aggregation, NodeKey, dense
from transforms.published import Protected, estimates_table, nodes_table
from transforms.sharding import from_bytes, to_bytes

NODES = "nodes"
ESTIMATES = "estimates"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """The plan, and the aggregation whose sums it protects.

    Raises:
        ValueError: they do not belong together, so that the plan's guarantee would not hold.
    """

    plan: Plan
    aggregation: Aggregation

    def __post_init__(self) -> None:
        plan, aggregation = self.plan, self.aggregation
        planned = [(d.name, d.measure, d.cells, d.families) for d in plan.demands]
        summed = [(q.name, q.measure, q.cells, q.families) for q in aggregation.queries]
        if planned != summed:
            raise ValueError("the plan's demands and the aggregation's queries differ; make both from the same queries")
        if plan.constraint != aggregation.constraint:
            raise ValueError("the plan was made for another constraint than the one that is enforced")
        timeline = aggregation.timeline
        if plan.window != timeline.every or (plan.windows is not None and plan.windows < timeline.windows):
            raise ValueError("the plan was made for other or for fewer windows than the aggregation has")


class Release(beam.PTransform):
    """Exact sums in, published tables out."""

    def __init__(self, release: ReleasePlan) -> None:
        super().__init__()
        self._release = release

    def expand(self, sums: beam.PCollection[tuple[NodeKey, bytes]]) -> dict[str, beam.PCollection]:
        every = sums.pipeline | "EveryChunk" >> beam.Create(
            [(key, b"") for key in self._release.aggregation.node_keys()]
        ).with_output_types(tuple[NodeKey, bytes])
        noisy = (
            (sums, every)
            | "WithEmptyOnes" >> beam.Flatten()
            | "GatherChunks" >> beam.GroupByKey()
            | "AddNoise" >> beam.ParDo(_AddNoise(self._release)).with_output_types(tuple[NodeKey, bytes])
            | "OneDraw" >> beam.Reshuffle()
        )
        return {
            NODES: noisy | "TellNodes" >> beam.ParDo(_Tell(self._release, NODES)),
            ESTIMATES: noisy | "Estimate" >> beam.ParDo(_Tell(self._release, ESTIMATES)),
        }


class _AddNoise(beam.DoFn):
    def __init__(self, release: ReleasePlan) -> None:
        self._release = release

    def process(self, chunk: tuple[NodeKey, Iterable[bytes]]) -> Iterator[tuple[NodeKey, bytes]]:
        key, payloads = chunk
        _, number, family, _ = key
        exact = dense((p for p in payloads if p), self._release.aggregation, key)
        yield key, _pack([add_noise(exact, released) for released in self._release.plan.of(number, family)])


def add_noise(exact: np.ndarray, released: Released) -> Protected:
    """One part's noisy nodes and the numbers that are published from the same draws.

    Neighbours, sensitivity, guarantee and source: privacy.strategies, privacy.sensitivity and privacy.accounting. The
    noise of component i is `released.noise[i]`, one independent draw for each node and cell, also for those drawn in
    advance.

    Args:
        exact: leaf sums [components, 1 + windows, cells], row 0 the opening.
    """
    strategy = released.strategy
    nodes, sums = [], []
    for component, law in zip(exact, released.noise, strict=True):
        leaves = merge(component, released.leaf)
        shape = strategy.draws(len(leaves) - 1), leaves.shape[1]
        noise = law.noise(shape[0] * shape[1]).reshape(shape)
        exact_nodes, _ = strategy.advance(None, leaves)
        nodes.append(exact_nodes + noise[: len(exact_nodes)])
        sums.append([strategy.publish(series.merged(released.leaf), leaves, noise) for series in released.series])
    return Protected(nodes=nodes, sums=[list(parts) for parts in zip(*sums, strict=True)])


def merge(leaves: np.ndarray, windows: int) -> np.ndarray:
    """Leaf sums of `windows` windows each; the opening stays, an unfinished leaf is left out.

    >>> merge(np.array([[9], [1], [2], [3]]), 2).ravel().tolist()
    [9, 3]
    """
    if windows == 1:
        return leaves
    whole = (len(leaves) - 1) // windows
    merged = leaves[1 : 1 + whole * windows].reshape(whole, windows, -1).sum(axis=1)
    return np.concatenate([leaves[:1], merged])


def _pack(protected: list[Protected]) -> bytes:
    """One row, a list for each array: a payload that a runner moves as bytes."""
    columns = {}
    for place, part in enumerate(protected):
        for component, nodes in enumerate(part.nodes):
            columns[f"{place}.nodes.{component}"] = nodes
        for number, sums in enumerate(part.sums):
            for component, values in enumerate(sums):
                columns[f"{place}.{number}.{component}"] = values
    return to_bytes(pa.table({name: _one_list(values.ravel()) for name, values in columns.items()}))


def _one_list(values: np.ndarray) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], type=pa.int64()), pa.array(values))


def _unpack(payload: bytes, parts: tuple[Released, ...], cells: int) -> list[Protected]:
    table = from_bytes(payload)

    def array(name: str) -> np.ndarray:
        return table[name].combine_chunks().values.to_numpy(zero_copy_only=False).reshape(-1, cells)

    return [
        Protected(
            nodes=[array(f"{place}.nodes.{c}") for c in range(len(part.noise))],
            sums=[[array(f"{place}.{n}.{c}") for c in range(len(part.noise))] for n in range(len(part.series))],
        )
        for place, part in enumerate(parts)
    ]


class _Tell(beam.DoFn):
    """What was drawn to one kind of published table."""

    def __init__(self, release: ReleasePlan, side: str) -> None:
        self._release = release
        self._side = side

    def process(self, chunk: tuple[NodeKey, bytes]) -> Iterator[tuple[str, bytes]]:
        key, payload = chunk
        _, number, family, part = key
        aggregation, parts = self._release.aggregation, self._release.plan.of(number, family)
        first_cell = part * aggregation.chunk_cells(number)
        cells = min(aggregation.chunk_cells(number), aggregation.queries[number].cells - first_cell)
        tell = nodes_table if self._side == NODES else estimates_table
        tables = [
            tell(protected, aggregation, released, first_cell)
            for protected, released in zip(_unpack(payload, parts, cells), parts, strict=True)
        ]
        yield f"{aggregation.queries[number].name}-{family}-{part:05d}", to_bytes(pa.concat_tables(tables))
