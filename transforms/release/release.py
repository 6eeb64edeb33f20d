"""Add noise to every node, once, and turn noisy nodes into what is published. The only file that samples noise.

    in    (NodeKey, bytes)         exact sums (transforms.aggregation.bounded_sums)
    out   (part name, bytes)       under `nodes` and `estimates`: Arrow IPC streams of published tables
          (file name, bytes)       under `state`: what the next run needs (transforms.release.noise_state); private

A chunk is all windows of some cells. It is worked on in blocks of windows, one step of its strategies each, so that
memory is bounded however many windows a run closes; a table and its file hold one block. Many steps give what one
gives, so blocks, epochs and streams publish the same numbers on the same noise.

Which nodes get noise follows from the plan alone: every window and every cell, so an empty changelog gives the same
rows as a full one. A runner may run any step twice, so noise is followed by a Reshuffle: what comes after it sees one
sample. A second attempt of a whole run samples again, and nothing of the first may have been published.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import apache_beam as beam
import numpy as np
import pyarrow as pa

from privacy.noise.choices import Choice
from privacy.noise.distributions import NoiseDistribution, widened
from privacy.planning.adaptive_part import AdaptivePart
from privacy.planning.demand import Demand
from privacy.planning.document import digest
from privacy.planning.plan import Plan, Released
from privacy.protection import Protection, Span
from privacy.series import BEFORE_ALL, Ints
from privacy.strategies.base import Nodes, before_each
from transforms.aggregation.node_sums import Aggregation, NodeKey, Summed, dense, gathered
from transforms.aggregation.queries import Query, Timeline
from transforms.aggregation.shard_state import STATE
from transforms.common.ipc import to_bytes
from transforms.common.joined import refuse_other
from transforms.common.payloads import pack, unpack
from transforms.common.several import Collections
from transforms.common.sinks import read_bytes
from transforms.release.adaptive_groups import groups_from_bytes, groups_to_bytes, publish_groups
from transforms.release.adaptive_levels import RunningLevel, levels_from_bytes, levels_to_bytes, publish_levels
from transforms.release.adaptive_sketches import levels_of, publish_sketches, sketches_from_bytes, sketches_to_bytes
from transforms.release.file_names import noise_file, part_names
from transforms.release.level_state import level_from_bytes, level_to_bytes
from transforms.release.node_tables import nodes_table
from transforms.release.noise_state import Held, state_from_bytes, state_to_bytes
from transforms.release.protected import Protected, columns_of, protected_from_bytes, protected_to_bytes
from transforms.release.published_tables import adaptive_table, estimates_table

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
        refuse_mismatch(self.plan, self.aggregation)
        if self.aggregation.exact:
            raise ValueError("the aggregation is also to sum without contribution bounding, which is never released")


def refuse_mismatch(plan: Plan, aggregation: Aggregation) -> None:
    """
    Raises:
        ValueError: what the plan's guarantee rests on is not what the aggregation enforces.
    """
    planned = [_of_nodes(demand) for demand in plan.demands]
    summed = [_of_nodes(query.demand) for query in aggregation.queries]
    if planned != summed:
        raise ValueError("the plan's demands and the aggregation's queries differ; make both from the same queries")
    for released in plan.released:
        if released.over is not None and aggregation.chunks(released.query) > 1:
            name = plan.demands[released.query].name
            raise ValueError(
                f"query {name}: a strategy over cells works on all of them at once; say so in `Query.over`"
            )
    for query in aggregation.queries:
        if query.adaptive is not None and query.consistent:
            raise ValueError(f"query {query.name}: adaptive publication does not go with consistent")
        if columns_of_near := _seen(query, plan.promise.protects):
            raise ValueError(
                f"query {query.name}: reads {', '.join(columns_of_near)}, of which only ranges may be read where the "
                "plan protects places"
            )
    if plan.promise.constraint != aggregation.constraint:
        raise ValueError("the plan was made for another constraint than the one that is enforced")
    if plan.promise.owner != (aggregation.owner is not None):
        unit, other = ("owners", "entries") if plan.promise.owner else ("entries", "owners")
        raise ValueError(f"the plan protects {unit}, and {other} are bounded; name an owner in both, or in neither")
    timeline = aggregation.timeline
    if plan.promise.window != timeline.every or (
        plan.promise.windows is not None and plan.promise.windows < timeline.windows
    ):
        raise ValueError("the plan was made for other or for fewer windows than the aggregation has")
    if timeline.bounds.slack > plan.promise.slack and plan.promise.counts_windows:
        raise ValueError("the plan was made for windows of equal lengths, or longer ones; give it their slack")


def _of_nodes(demand: Demand) -> object:
    """What nodes are made of, and how their cells are arranged."""
    return demand.name, demand.measure, demand.cells, demand.axes, demand.apart, demand.series, demand.adaptive


def _seen(query: Query, protects: Protection) -> list[str]:
    """Columns in which neighbours are near, and that a query reads otherwise than as ranges that are near."""
    near = {column for column, _ in protects.near} if isinstance(protects, Span) else set()
    ranges = {name for name, _ in query.ordered}
    where = query.where.columns if query.where is not None else frozenset()
    listed = {name for name, _ in query.by} - ranges
    moved = {name for (name, _), apart in zip(query.by, query.apart, strict=False) if apart}
    return sorted((near & (where | listed | {query.column})) | ((near & ranges) ^ moved))


class ReleaseSums(beam.PTransform):
    """Exact sums in, published tables out.

    Args:
        past: the folder with the state that the run before left; None in the first.
        keep: whether to leave a state for the next run, under `STATE`.

    Raises:
        ValueError: the sums are not those of the plan's aggregation, or are made from another state.
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
    """Sample the noise of one chunk. A second call samples anew: the release store lets one of them count.

    Args:
        payloads: exact sums of the chunk, from all shards.
        past: the folder with the state that the run before left; None in the first.
        keep: whether to make a state for the next run.

    Returns:
        the key with each block and with the state, for `tables` and `remember`.
    """
    _, number, family, _ = key
    plan, timeline, parts = digest(release.plan), release.aggregation.timeline, release.plan.of(number, family)
    cells = len(release.aggregation.cells_of(key))
    before = None if past is None else read_bytes(f"{past}/{noise_file(key)}")
    blocks = _blocks(release.aggregation, key, payloads)
    decided = release.plan.adaptive_of(number)
    if decided is not None:
        yield from _publish_adaptively(decided, key, blocks, before, timeline, plan=plan, cells=cells, keep=keep)
        return
    held: list[list[Held]] | None = None
    if before is not None:
        held = state_from_bytes(
            before,
            [released.leaf for released in parts],
            windows=timeline.released,
            columns=[columns_of(released, cells) for released in parts],
            plan=plan,
        )
    for block, leaves in enumerate(blocks):
        stepped = [step(part, None if held is None else held[p], leaves) for p, part in enumerate(parts)]
        held = [after for after, _ in stepped]
        yield key, pack([str(block).encode(), protected_to_bytes([protected for _, protected in stepped])])
    if keep and held is not None:
        yield key, pack([STATE.encode(), state_to_bytes(held, windows=timeline.windows, plan=plan)])


def _publish_adaptively(
    part: AdaptivePart,
    key: NodeKey,
    blocks: Iterable[Ints],
    before: bytes | None,
    timeline: Timeline,
    *,
    plan: str,
    cells: int,
    keep: bool,
) -> Iterator[tuple[NodeKey, bytes]]:
    """`protect` for a query whose levels are published anew or repeated; its chunk has all its cells."""
    held: RunningLevel | None = None
    if before is not None:
        held = level_from_bytes(
            before, windows=timeline.released, cells=cells, plan=plan, over=part.over, grouped=part.grouped
        )
    for block, leaves in enumerate(blocks):
        if part.grouped:
            held, levels = publish_groups(part, held, leaves[0], _sample_level)
            content = groups_to_bytes(levels)
        elif part.over is None:
            held, levels = publish_levels(part, held, leaves[0], _sample_level)
            content = levels_to_bytes(levels)
        else:
            held, sketches = publish_sketches(part, part.over, held, leaves[0], _sample_level)
            content = sketches_to_bytes(sketches)
        yield key, pack([str(block).encode(), content])
    if keep and held is not None and held.carry is not None:  # nobody goes on from a run that closed no window
        yield key, pack([STATE.encode(), level_to_bytes(held.level, held.carry, plan=plan)])


def _blocks(aggregation: Aggregation, key: NodeKey, payloads: Iterable[bytes]) -> Iterator[Ints]:
    """Exact sums of the chunk, block by block; row 0 of the first run is the initial level."""
    sums, number = gathered(payloads), key[1]
    for first, last in aggregation.blocks(number):
        rows = range(first + 1 if first else 0, last + 1)
        yield dense(sums, aggregation.queries[number], rows=rows, cells=aggregation.cells_of(key))


def step(released: Released, held: Sequence[Held] | None, leaves: np.ndarray) -> tuple[list[Held], Protected]:
    """One part's noisy nodes and published numbers for some windows, and what the next ones need.

    Neighbours, sensitivity, guarantee and source: privacy.strategies.base, privacy.planning.sensitivity and
    privacy.accounting. The noise of component i is `released.noise[i]`, independent for each node and cell, and as many
    times as wide as the strategy says. Under a strategy over cells the columns are its nodes, and numbers are made from
    theirs.

    Args:
        held: what the step before left, by component; None in the first, whose row 0 is the initial level.
        leaves: exact sums of these windows, [components, windows, cells].
    """
    series = [one.merged(released.leaf) for one in released.series]
    leaves = leaves if released.over is None else released.over.spread(leaves)
    after, nodes, sums = [], [], []
    for component, distribution in enumerate(released.noise):
        before = None if held is None else held[component]
        whole, rest, windows = merged(leaves[component], before, released.leaf)

        def sample(nodes: Nodes, distribution: NoiseDistribution = distribution, component: int = component) -> Ints:
            stretch = released.strategy.stretch(nodes)
            if stretch is None:
                return sample_noise(distribution, nodes, component=component, cells=leaves.shape[2])
            noise = np.empty((len(nodes.end), leaves.shape[2]), dtype=np.int64)
            for width in np.unique(stretch):
                rows = stretch == width
                noise[rows] = sample_noise(
                    widened(distribution, float(width)), nodes.of(rows), component=component, cells=leaves.shape[2]
                )
            return noise

        found, numbers, carry = released.strategy.step(
            None if before is None else before.carry, whole, series=series, sample=sample
        )
        after.append(Held(carry=carry, leaf=rest, windows=windows))
        nodes.append(found)
        sums.append(numbers if released.over is None else [released.over.gather(one) for one in numbers])
    return after, Protected(nodes=nodes, sums=[list(parts) for parts in zip(*sums, strict=True)])


def sample_noise(distribution: NoiseDistribution | Choice, nodes: Nodes, *, component: int, cells: int) -> Ints:
    """Fresh independent noise, [nodes, cells], whichever nodes and component it is for. All noise comes from here."""
    return distribution.noise(len(nodes.end) * cells).reshape(-1, cells)


def _sample_level(window: int, distribution: NoiseDistribution | Choice, size: int) -> Ints:
    """Noise of the level at the end of a window, or of what is asked about it: that is all one number."""
    ends = np.array([window])
    level = Nodes(layer=np.zeros_like(ends), begin=np.full_like(ends, BEFORE_ALL), end=ends)
    return sample_noise(distribution, level, component=0, cells=size).ravel()


def merged(leaves: Ints, held: Held | None, leaf: int) -> tuple[Ints, Ints, int]:
    """Sums of `leaf` windows each; the windows that are left over, as one row or none, and how many these are.

    >>> whole, rest, windows = merged(np.array([[9], [1], [2], [3]]), None, 2)
    >>> whole.ravel().tolist(), rest.ravel().tolist(), windows
    ([9, 3], [3], 1)
    """
    initial, rows = (leaves[:1], leaves[1:]) if held is None else (leaves[:0], leaves)
    if leaf == 1:
        return leaves, rows[:0], 0
    before = 0 if held is None else held.windows
    sums = before_each(rows) + (0 if held is None else held.leaf.sum(axis=0))
    ends = np.arange(leaf, before + len(rows) + 1, leaf) - before
    whole, left = sums[ends], (before + len(rows)) % leaf
    whole[1:] -= sums[ends[:-1]]
    rest = sums[-1:] - (sums[ends[-1]] if len(ends) else 0)
    return np.concatenate([initial, whole]), rest[: int(left > 0)], left


def add_noise(exact: np.ndarray, released: Released) -> Protected:
    """`step` for a release that is made at once, from [components, 1 + windows, cells]."""
    return step(released, None, exact)[1]


def tables(noisy: tuple[NodeKey, bytes], release: ReleasePlan, side: str) -> Iterator[tuple[str, bytes]]:
    """A block as one kind of published table, with the name of its part; nothing of a state."""
    key, payload = noisy
    _, number, family, _ = key
    kind, content = unpack(payload)
    if kind == STATE.encode():
        return
    block, aggregation, decided = int(kind), release.aggregation, release.plan.adaptive_of(number)
    cells = aggregation.cells_of(key)
    first, last = aggregation.blocks(number)[block]
    name, timeline = part_names(aggregation, key)[block], replace(aggregation.timeline, released=first, windows=last)
    aggregation = replace(aggregation, timeline=timeline)
    if decided is not None:
        if side == ESTIMATES:
            if decided.grouped:
                levels = groups_from_bytes(content, decided, len(cells))
            elif decided.over is None:
                levels = levels_from_bytes(content, len(cells))
            else:
                levels = levels_of(decided.over, sketches_from_bytes(content))
            yield name, to_bytes(adaptive_table(levels, aggregation, decided))
        return
    parts = release.plan.of(number, family)
    table_of = nodes_table if side == NODES else estimates_table
    found = [
        table_of(protected, aggregation, released, cells.start)
        for protected, released in zip(protected_from_bytes(content, parts, len(cells)), parts, strict=True)
    ]
    yield name, to_bytes(pa.concat_tables(found))


def remember(noisy: tuple[NodeKey, bytes]) -> Iterator[tuple[str, bytes]]:
    """The state for the next run, with its file's name."""
    key, payload = noisy
    kind, content = unpack(payload)
    if kind == STATE.encode():
        yield noise_file(key), content
