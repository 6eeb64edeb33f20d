"""Add noise to every node once, and turn noisy nodes into published tables.

    in    (NodeKey, bytes)         exact sums (transforms.aggregation.bounded_sums)
    out   (part name, bytes)       under `nodes` and `estimates`: Arrow IPC streams of published tables
          (file name, bytes)       under `state`: state for the next run (transforms.release.noise_state); private

A chunk is all windows of some cells. It is processed in blocks of windows, one step of its strategies each, so that
memory is bounded even if a run closes many windows; a table and its file hold one block. Many steps give the result of
one step, so blocks, epochs and streams publish the same numbers for the same noise.

Which nodes get noise follows from the plan alone: every window and every cell, so an empty changelog gives the same
rows as a full one. A runner may run any step twice, so noise is followed by a Reshuffle: later steps see one sample. A
second attempt of a whole run samples again, and nothing of the first may have been published.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam

from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.discovered_part import DiscoveredPart
from privacy.planning.document import digest
from privacy.planning.linear_part import LinearPart
from privacy.planning.part import Part
from privacy.planning.plan import Plan
from transforms.aggregation.node_sums import Aggregation, NodeKey, Summed
from transforms.aggregation.shard_state import STATE
from transforms.common.ipc import to_bytes
from transforms.common.joined import refuse_other
from transforms.common.payloads import pack, unpack
from transforms.common.several import Collections
from transforms.common.sinks import read_bytes
from transforms.release.chunk import Chunk
from transforms.release.discovered_chunk import DiscoveredChunk
from transforms.release.file_names import noise_file, part_names
from transforms.release.linear_chunk import LinearChunk
from transforms.release.mismatch import refuse_mismatch
from transforms.release.sampled_chunk import SampledChunk

NODES = "nodes"
ESTIMATES = "estimates"

CHUNKS: Mapping[type[Part], Callable[[Any, int], Chunk[Any, Any]]] = {
    LinearPart: LinearChunk,
    AdaptivePart: lambda parts, _: SampledChunk(*parts),
    DiscoveredPart: lambda parts, _: DiscoveredChunk(parts),
}
"""How parts of each kind are released; made from the parts of a query and family, and the number of cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """Plan and the aggregation whose sums it protects.

    Raises:
        ValueError: They do not fit, so that the plan's guarantee would not hold.
    """

    plan: Plan
    aggregation: Aggregation

    def __post_init__(self) -> None:
        refuse_mismatch(self.plan, self.aggregation)
        if self.aggregation.exact:
            raise ValueError("the aggregation also sums without contribution bounding, which is never released")


class ReleaseSums(beam.PTransform):
    """Transform from exact sums to published tables.

    Args:
        release: Plan and aggregation.
        past: Folder with the state that the previous run left; None in the first run.
        keep: Whether to output a state for the next run, under `STATE`.

    Raises:
        ValueError: The sums are not those of the plan's aggregation, or are made from another state.
    """

    def __init__(self, release: ReleasePlan, *, past: str | None = None, keep: bool = False) -> None:
        super().__init__()
        self._release = release
        self._past = past
        self._keep = keep

    def expand(self, sums: beam.PCollection[tuple[NodeKey, bytes]]) -> Collections:
        summed = Summed(self._release.aggregation, self._past, self._keep)
        refuse_other(sums, summed, part="ReleaseSums", before="BoundedSums")
        every = sums.pipeline | "EveryChunk" >> beam.Create(
            [(key, b"") for key in self._release.aggregation.node_keys()],
            reshuffle=False,
        ).with_output_types(tuple[NodeKey, bytes])
        noisy = (
            (sums, every)
            | "WithEmptyOnes" >> beam.Flatten()
            | "GatherChunks" >> beam.GroupByKey()
            | "AddNoise"
            >> beam.ParDo(_AddNoise(self._release, self._past, self._keep)).with_output_types(tuple[NodeKey, bytes])
            | "OneSample" >> beam.Reshuffle()
        )
        return {
            NODES: noisy | "PublishNodes" >> beam.FlatMap(tables, release=self._release, side=NODES),
            ESTIMATES: noisy | "Estimate" >> beam.FlatMap(tables, release=self._release, side=ESTIMATES),
            STATE: noisy | "Remember" >> beam.FlatMap(remember).with_output_types(tuple[str, bytes]),
        }


class _AddNoise(beam.DoFn):
    def __init__(self, release: ReleasePlan, past: str | None, keep: bool) -> None:
        self._release = release
        self._past = past
        self._keep = keep

    def process(self, chunk: tuple[NodeKey, Iterable[bytes]]) -> Iterator[tuple[NodeKey, bytes]]:
        key, payloads = chunk
        yield from protect(self._release, key, (p for p in payloads if p), past=self._past, keep=self._keep)


def protect(
    release: ReleasePlan, key: NodeKey, payloads: Iterable[bytes], *, past: str | None, keep: bool
) -> Iterator[tuple[NodeKey, bytes]]:
    """Sample the noise of one chunk. A second call samples again; the release store commits only one of them.

    Neighbours, sensitivity, guarantee and source: `transforms.release.linear_chunk.step` and
    `transforms.release.sampled_chunk.publish`.

    Args:
        release: Plan and aggregation.
        key: Key of the chunk.
        payloads: Exact sums of the chunk, from all shards.
        past: Folder with the state that the previous run left; None in the first run.
        keep: Whether to output a state for the next run.

    Returns:
        The key with each block and with the state, for `tables` and `remember`.
    """
    plan, timeline, chunk = digest(release.plan), release.aggregation.timeline, chunk_of(release, key)
    held = None
    if past is not None:
        held = chunk.opened(read_bytes(f"{past}/{noise_file(key)}"), windows=timeline.released, plan=plan)
    for block, leaves in enumerate(chunk.blocks(release.aggregation, key, payloads)):
        held, content = chunk.step(held, leaves)
        yield key, pack([str(block).encode(), content])
    state = None if not keep or held is None else chunk.kept(held, windows=timeline.windows, plan=plan)
    if state is not None:
        yield key, pack([STATE.encode(), state])


def chunk_of(release: ReleasePlan, key: NodeKey) -> Chunk[Any, Any]:
    """Return the chunk that releases the parts of a key."""
    _, number, family, _ = key
    discovers = release.aggregation.queries[number].discovers
    parts = release.plan.of_query(number, None if discovers else family)
    return CHUNKS[type(parts[0])](parts, len(release.aggregation.cells_of(key)))


def tables(noisy: tuple[NodeKey, bytes], release: ReleasePlan, side: str) -> Iterator[tuple[str, bytes]]:
    """Yield a block as one kind of published table, with the name of its part; nothing for a state.

    Args:
        noisy: Key, and a block or a state.
        release: Plan and aggregation.
        side: `nodes` or `estimates`.
    """
    key, payload = noisy
    kind, content = unpack(payload)
    if kind == STATE.encode():
        return
    block, aggregation, chunk = int(kind), release.aggregation, chunk_of(release, key)
    first, last = aggregation.blocks(key[1])[block]
    name, cells = part_names(aggregation, key)[block], aggregation.cells_of(key)
    aggregation = replace(aggregation, timeline=replace(aggregation.timeline, released=first, windows=last))
    table_of = chunk.nodes if side == NODES else chunk.estimates
    if (found := table_of(content, aggregation, cells.start)) is not None:
        yield name, to_bytes(found)


def remember(noisy: tuple[NodeKey, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the state for the next run, with its file's name; nothing for a block."""
    key, payload = noisy
    kind, content = unpack(payload)
    if kind == STATE.encode():
        yield noise_file(key), content
