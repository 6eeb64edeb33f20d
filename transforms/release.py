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

from privacy import disjoint
from privacy.disjoint import Kind
from privacy.plan import Plan
from transforms.bounded_sums import Aggregation, NodeKey, dense
from transforms.published import estimates_table, nodes_table
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
        exact = dense((p for p in payloads if p), self._release.aggregation, key)
        noisy = add_noise(exact, self._release.plan, key)
        yield key, to_bytes(pa.table({f"noisy.{i}": row.ravel() for i, row in enumerate(noisy)}))


def add_noise(exact: np.ndarray, plan: Plan, key: NodeKey) -> np.ndarray:
    """Noisy node values, [components, 1 + windows, cells]; the opening node stays 0 where it is not released.

    Neighbours, sensitivity, guarantee and source: privacy.sensitivity and privacy.accounting; the noise of component
    i is `plan.released[...].noise[i]`, one independent draw for each node and cell.
    """
    _, number, family, _ = key
    released = plan.of(number, family)
    nodes = np.stack([disjoint.advance(None, component)[0] for component in exact])
    noisy = nodes + np.stack([law.noise(nodes[0].size).reshape(nodes[0].shape) for law in released.noise])
    if family != "net" or not plan.demands[number].opening:
        noisy[:, 0] = 0
    return noisy


class _Tell(beam.DoFn):
    """Noisy nodes to one kind of published table."""

    def __init__(self, release: ReleasePlan, side: str) -> None:
        self._release = release
        self._side = side

    def process(self, chunk: tuple[NodeKey, bytes]) -> Iterator[tuple[str, bytes]]:
        key, payload = chunk
        _, number, family, part = key
        aggregation, plan = self._release.aggregation, self._release.plan
        query = aggregation.queries[number]
        table = from_bytes(payload)
        shape = aggregation.timeline.windows + 1, -1
        noisy = np.stack([column.to_numpy().reshape(shape) for column in table.columns])
        first_cell = part * aggregation.chunk_cells(number)
        name = f"{query.name}-{family}-{part:05d}"
        if self._side == NODES:
            opening = family == "net" and plan.demands[number].opening
            told = nodes_table(
                noisy,
                aggregation,
                number,
                family,
                first_cell,
                plan.of(number, family).noise,
                opening,
            )
        else:
            kinds: list[Kind] = [k for k in plan.demands[number].kinds if disjoint.family_of(k) == family]
            told = estimates_table(noisy, aggregation, number, kinds, first_cell, plan.of(number, family).noise)
        yield name, to_bytes(told)
