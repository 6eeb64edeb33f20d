"""The stages of a release in one process, without a runner: files to exact sums to nodes, epoch by epoch.

These are the functions that a run calls on its workers: the reader, the projection, the shards, contribution bounding
with the state between epochs, and the release step with its own state. Only their arguments come from here. Noise comes
from `transforms.release.noise`, which the caller may have replaced by zeros in a process that does nothing else.

A query that finds keys is released twice: by its own step, and as if all keys of the synthetic changelog were listed.
The second release has the nodes that its privacy claim is about (docs/proofs/discovery.md).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.audit.files import write
from pipelines.audit.synthetic import Mutation, Pools
from pipelines.epochs.job import Job, job_of
from pipelines.epochs.plans import plan_of
from pipelines.spec.load import Spec
from privacy.noise.distributions import widened
from privacy.planning.linear_part import LinearPart
from privacy.series import Ints
from privacy.strategies.base import Floats
from transforms.aggregation.bounded_sums import advance
from transforms.aggregation.discovered_key import decode_sums, layers_of, split_texts
from transforms.aggregation.node_sums import BOUNDED, Aggregation, NodeKey, dense, gathered
from transforms.aggregation.projection import project
from transforms.aggregation.queries import Timeline
from transforms.aggregation.shard_state import STATE, file_of
from transforms.aggregation.sharding import shard_table
from transforms.common.ipc import from_bytes
from transforms.common.kinds import one_chunk
from transforms.common.payloads import unpack
from transforms.release.file_names import noise_file
from transforms.release.linear_chunk import LinearChunk
from transforms.release.noise_state import HeldNoise
from transforms.release.protected import Protected, protected_from_bytes
from transforms.release.release import protect
from transforms.sources.changelog import read_split, splits
from transforms.sources.columns.normalise import Place
from transforms.sources.columns.usable_rows import UsableRows

SHARDS = 3

Epochs = Sequence[tuple[Sequence[Mutation], int]]
"""For each epoch its new rows, and the number of windows that have closed after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """A copy of a spec, ready to release synthetic rows.

    Attributes:
        spec: The copy.
        columns: Columns of its states.
        job: Layout, plan and aggregation, after a first file was inspected.
        folder: Folder for files.
        universe: For each query that finds keys, by its number, the texts of all keys that states can have.
    """

    spec: Spec
    columns: Pools
    job: Job
    folder: Path
    universe: Mapping[int, pa.Array] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: Spec, columns: Pools, timeline: Timeline, first: Sequence[Mutation]) -> "Stages":
        """Write a first file and inspect it as a first run does.

        Args:
            spec: The copy.
            columns: Columns of its states.
            timeline: All windows that can be released.
            first: Rows of the first file.
        """
        folder = spec.base / "stages"
        data = Path(spec.changelog.source.paths[0]).parent
        data.mkdir(parents=True, exist_ok=True)
        path = data / f"00-first{Path(spec.changelog.source.paths[0]).suffix}"
        write(spec, columns, first, path)
        job = job_of(spec, timeline, shards=SHARDS, plan=plan_of(spec))
        path.unlink()
        stages = cls(spec=spec, columns=columns, job=job, folder=folder)
        return replace(stages, universe=stages._universe())

    def _universe(self) -> dict[int, pa.Array]:
        """Project a row for each value of each column, and return the keys that queries may find among them."""
        queries = [number for number, query in enumerate(self.job.aggregation.queries) if query.discovers]
        if not queries:
            return {}
        inside = {name: pool.inside[0] for name, pool in self.columns.items()}
        pools = {name: (*pool.inside, *pool.beyond, *pool.alone) for name, pool in self.columns.items()}
        states = [{**inside, name: value} for name, values in pools.items() for value in values]
        owner, start = self.spec.privacy.owner, self.job.aggregation.timeline.start
        rows = [
            Mutation(f"key-{n}", start, n, None, {**({owner: "all"} if owner else {}), **state}, owner and "all")
            for n, state in enumerate(states)
        ]
        self.folder.mkdir(parents=True, exist_ok=True)
        tables = list(self.projected(rows, 0))
        found = {}
        for number in queries:
            texts = pa.concat_arrays([one_chunk(table[f"after.{number}.cell"]) for table in tables]).drop_null()
            query = self.job.aggregation.queries[number]
            found[number] = (split_texts(texts)[0] if query.known else texts).unique()
        return found

    @property
    def thresholds(self) -> dict[int, int]:
        """The threshold of each query that finds keys, by its number, in grid steps."""
        parts = map(self.job.plan.discovered_of, self.universe)
        return {part.query: part.threshold for part in parts if part is not None}

    @property
    def keys(self) -> list[NodeKey]:
        """All chunks of the release; a query that finds keys has one for each family of numbers."""
        queries = self.job.aggregation.queries
        return [
            (variant, number, family, chunk)
            for variant, number, own, chunk in self.job.aggregation.node_keys()
            for family in (queries[number].families if queries[number].discovers else (own,))
        ]

    def cells(self, key: NodeKey) -> int:
        """Return the number of cells of a chunk; a query that finds keys has those of all keys."""
        number = key[1]
        if number in self.universe:
            return len(self.universe[number]) * self.job.aggregation.queries[number].each
        return len(self.job.aggregation.cells_of(key))

    def release(self, epochs: Epochs) -> "Released":
        """Release some epochs, each from its own file, and return their nodes and sums."""
        rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        found = Released(self, defaultdict(list), defaultdict(list), [], defaultdict(list))
        released, past = 0, None
        held: dict[NodeKey, list[list[HeldNoise]]] = {}
        for number, (rows, windows) in enumerate(epochs):
            timeline = replace(self.job.aggregation.timeline, released=released, windows=windows)
            aggregation = replace(self.job.aggregation, timeline=timeline)
            kept = self.folder / f"state-{number}"
            kept.mkdir()
            sums = self._summed(rows, number, aggregation, past, kept)
            for key in self.keys:
                if key[1] not in self.universe:
                    found.sums[key].append(self._dense(aggregation, key, sums[key]))
                    found.blocks[key] += self._protected(aggregation, key, sums[key], past, kept)
                    continue
                leaves = self._of_keys(aggregation, key, sums[(BOUNDED, key[1], "net", 0)])
                held[key], content = LinearChunk(found.parts(key), self.cells(key)).step(held.get(key), leaves)
                found.sums[key].append(leaves)
                found.blocks[key].append((released, windows, content))
            for number in self.universe:
                key = (BOUNDED, number, "net", 0)
                blocks = self._protected(aggregation, key, sums[key], past, kept)
                found.shown[number] += [from_bytes(content) for *_, content in blocks]
            found.timelines.append(timeline)
            released, past = windows, str(kept)
        return found

    def projected(self, rows: Sequence[Mutation], number: int) -> Iterator[pa.Table]:
        """Yield projected tables of the rows of a file."""
        suffix = Path(self.spec.changelog.source.paths[0]).suffix
        path = self.folder / f"rows-{number:03d}{suffix}"
        write(self.spec, self.columns, rows, path)
        layout = self.job.layout
        for split in splits(Place(str(path), number), layout.source.format):
            read = UsableRows(read_split(layout, split, 262_144))
            for batch in read:
                table, _, _ = project(batch.table, self.job.aggregation.projection)
                if table.num_rows:
                    yield table
            if read.dead.num_rows:
                raise ValueError("synthetic rows are unusable")

    def _summed(
        self, rows: Sequence[Mutation], number: int, aggregation: Aggregation, past: str | None, kept: Path
    ) -> dict[NodeKey, list[bytes]]:
        payloads: dict[int, list[bytes]] = defaultdict(list)
        if rows:
            for table in self.projected(rows, number):
                for shard, payload in shard_table(table, shards=SHARDS):
                    payloads[shard].append(payload)
        sums: dict[NodeKey, list[bytes]] = defaultdict(list)
        for shard in range(SHARDS):
            for key, payload in advance((shard, payloads[shard]), aggregation, past, True, None):
                if key[0] == STATE:
                    (kept / file_of(key[1])).write_bytes(payload)
                else:
                    sums[key].append(payload)
        return sums

    def _protected(
        self, aggregation: Aggregation, key: NodeKey, sums: list[bytes], past: str | None, kept: Path
    ) -> Iterator[tuple[int, int, bytes]]:
        """Yield first and last window of each block with its public bytes, and write the state."""
        release = replace(self.job.release, aggregation=aggregation)
        for _, packed in protect(release, key, sums, past=past, keep=True):
            kind, content = unpack(packed)
            if kind == STATE.encode():
                (kept / noise_file(key)).write_bytes(content)
            else:
                yield (*aggregation.blocks(key[1])[int(kind)], content)

    def _dense(self, aggregation: Aggregation, key: NodeKey, sums: list[bytes]) -> Ints:
        """Return the exact sums of the windows of an epoch, [components, windows, cells]; the first has row 0 too."""
        first, last = aggregation.timeline.released, aggregation.timeline.windows
        rows = range(first + 1 if first else 0, last + 1)
        query = aggregation.queries[key[1]]
        return dense(gathered(sums), query, rows=rows, cells=aggregation.cells_of(key))

    def _of_keys(self, aggregation: Aggregation, key: NodeKey, sums: list[bytes]) -> Ints:
        """Return the same of all keys of a query that finds some."""
        _, number, family, _ = key
        query, keys, found = aggregation.queries[number], self.universe[number], decode_sums(sums)
        if pc.index_in(found.keys, value_set=keys).null_count:
            raise ValueError("a synthetic key is unknown")
        first, last = aggregation.timeline.released, aggregation.timeline.windows
        layers = layers_of(query.families, len(query.measure.components), family)
        whole = np.stack([found.dense(keys, last, query.each, layer) for layer in layers])
        return whole[:, first + 1 if first else 0 :]


@dataclass(frozen=True, slots=True)
class Released:
    """The epochs of one release, in memory.

    Attributes:
        stages: What made it.
        sums: For each chunk and epoch its exact sums.
        blocks: For each chunk the first and last window of its blocks, with public bytes.
        timelines: Timeline of each epoch.
        shown: For each query that finds keys the public rows of each epoch.
    """

    stages: Stages
    sums: Mapping[NodeKey, list[Ints]]
    blocks: Mapping[NodeKey, list[tuple[int, int, bytes]]]
    timelines: list[Timeline]
    shown: Mapping[int, list[pa.Table]]

    def parts(self, key: NodeKey) -> tuple[LinearPart, ...]:
        """Return the linear parts that a chunk releases; none if the data decide."""
        _, query, family, _ = key
        return self.stages.job.plan.linear(query, family)

    def leaves(self, key: NodeKey) -> Ints:
        """Return the exact sums of all windows, [components, 1 + windows, cells]."""
        return np.concatenate(self.sums[key], axis=1)

    def nodes(self, key: NodeKey) -> list[list[Ints]]:
        """Return the released nodes of each part and component, int64 [nodes, columns], in grid steps."""
        found: list[list[list[Ints]]] = [[[] for _ in part.noise] for part in self.parts(key)]
        for block in self.protected(key):
            for place, protected in enumerate(block):
                for component, values in enumerate(protected.nodes):
                    found[place][component].append(values)
        return [[np.concatenate(of_component) for of_component in of_part] for of_part in found]

    def protected(self, key: NodeKey) -> Iterator[list[Protected]]:
        """Yield the noisy nodes and numbers of each block, by part; nothing if the data decide."""
        if parts := self.parts(key):
            for _, _, content in self.blocks[key]:
                yield protected_from_bytes(content, parts, self.stages.cells(key))

    def stretches(self, key: NodeKey) -> list[Floats]:
        """Return for each part the factor by which the noise of each node is wider, float64 [nodes]."""
        found = []
        for part in self.parts(key):
            widths: list[Floats] = []
            for first, last, _ in self.blocks[key]:
                since = first // part.leaf if first else None
                nodes = part.strategy.nodes(last // part.leaf, since=since)
                stretch = part.strategy.stretch(nodes)
                widths.append(np.ones(len(nodes.end)) if stretch is None else np.asarray(stretch, dtype=np.float64))
            found.append(np.concatenate(widths))
        return found


def scales_of(part: LinearPart, component: int, stretch: Floats) -> Floats:
    """Return the scale of the noise of each node, in grid steps."""
    known = {width: widened(part.noise[component], width).scale for width in np.unique(stretch).tolist() if width != 1}
    return np.array([known.get(width, part.noise[component].scale) for width in stretch.tolist()])
