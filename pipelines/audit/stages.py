"""The stages of a release in one process, without a runner: files to exact sums to nodes, epoch by epoch.

These are the functions that a run calls on its workers: the reader, the projection, the shards, contribution bounding
with the state between epochs, and the release step with its own state. Only their arguments come from here. Noise comes
from `transforms.release.noise`, which the caller may have replaced by zeros in a process that does nothing else.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree

import numpy as np
import pyarrow as pa

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
from transforms.aggregation.node_sums import Aggregation, NodeKey, dense, gathered
from transforms.aggregation.projection import project
from transforms.aggregation.queries import Timeline
from transforms.aggregation.shard_state import STATE, file_of
from transforms.aggregation.sharding import shard_table
from transforms.common.payloads import unpack
from transforms.release.file_names import noise_file
from transforms.release.protected import protected_from_bytes
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
    """

    spec: Spec
    columns: Pools
    job: Job
    folder: Path

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
        return cls(spec=spec, columns=columns, job=job, folder=folder)

    @property
    def keys(self) -> list[NodeKey]:
        """All chunks of the release."""
        return self.job.aggregation.node_keys()

    def release(self, epochs: Epochs) -> "Released":
        """Release some epochs, each from its own file, and return their nodes and sums."""
        rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        found = Released(self, defaultdict(list), defaultdict(list), [])
        released, past = 0, None
        for number, (rows, windows) in enumerate(epochs):
            timeline = replace(self.job.aggregation.timeline, released=released, windows=windows)
            aggregation = replace(self.job.aggregation, timeline=timeline)
            kept = self.folder / f"state-{number}"
            kept.mkdir()
            sums = self._summed(rows, number, aggregation, past, kept)
            for key in self.keys:
                found.sums[key].append(self._dense(aggregation, key, sums[key]))
                found.blocks[key] += self._protected(aggregation, key, sums[key], past, kept)
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


@dataclass(frozen=True, slots=True)
class Released:
    """The epochs of one release, in memory.

    Attributes:
        stages: What made it.
        sums: For each chunk and epoch its exact sums.
        blocks: For each chunk the first and last window of its blocks, with public bytes.
        timelines: Timeline of each epoch.
    """

    stages: Stages
    sums: Mapping[NodeKey, list[Ints]]
    blocks: Mapping[NodeKey, list[tuple[int, int, bytes]]]
    timelines: list[Timeline]

    def parts(self, key: NodeKey) -> tuple[LinearPart, ...]:
        """Return the linear parts that a chunk releases; none if the data decide."""
        _, query, family, _ = key
        return self.stages.job.plan.linear(query, family)

    def leaves(self, key: NodeKey) -> Ints:
        """Return the exact sums of all windows, [components, 1 + windows, cells]."""
        return np.concatenate(self.sums[key], axis=1)

    def nodes(self, key: NodeKey) -> list[list[Ints]]:
        """Return the released nodes of each part and component, int64 [nodes, columns], in grid steps."""
        parts, cells = self.parts(key), len(self.stages.job.aggregation.cells_of(key))
        found: list[list[list[Ints]]] = [[[] for _ in part.noise] for part in parts]
        for _, _, content in self.blocks[key] if parts else ():
            for place, protected in enumerate(protected_from_bytes(content, parts, cells)):
                for component, values in enumerate(protected.nodes):
                    found[place][component].append(values)
        return [[np.concatenate(of_component) for of_component in of_part] for of_part in found]

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
