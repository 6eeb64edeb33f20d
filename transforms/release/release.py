"""Add noise to every node, once, and turn noisy nodes into what is published. The only file that adds noise.

    in    (NodeKey, bytes)         exact sums (transforms.aggregation.bounded_sums)
    out   (part name, bytes)       under `nodes` and `estimates`: Arrow IPC streams of published tables
          (file name, bytes)       under `state`: what the next run needs, leaf sums and noise so far; private

Which nodes are drawn for follows from the plan alone: every window and every cell, so an empty changelog gives the same
rows as a full one. A runner may run any step twice, so the draw is followed by a Reshuffle: what comes
after it sees one draw. A second attempt of a whole run draws again, and nothing of the first may have been published.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import pyarrow as pa

from privacy.planning.document import digest
from privacy.planning.plan import Plan, Released
from transforms.aggregation.node_sums import Aggregation, NodeKey, Summed, dense
from transforms.aggregation.shard_state import STATE
from transforms.common.ipc import from_bytes, to_bytes
from transforms.common.joined import refuse_other
from transforms.common.parquet_state import from_parquet, list_of, to_parquet
from transforms.common.payloads import pack, unpack
from transforms.common.several import Collections
from transforms.common.sinks import read_bytes
from transforms.release.published_tables import Protected, estimates_table, nodes_table

NODES = "nodes"
ESTIMATES = "estimates"

PLAN = b"plan"
"""In the metadata of state: the digest of the plan that it was made under."""


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
            raise ValueError("the aggregation is also to sum without the constraint, which is never released")


def refuse_mismatch(plan: Plan, aggregation: Aggregation) -> None:
    """
    Raises:
        ValueError: what the plan's guarantee rests on is not what the aggregation enforces.
    """
    planned = [(d.name, d.measure, d.cells, d.series) for d in plan.demands]
    summed = [(q.name, q.measure, q.cells, q.publish) for q in aggregation.queries]
    if planned != summed:
        raise ValueError("the plan's demands and the aggregation's queries differ; make both from the same queries")
    if plan.constraint != aggregation.constraint:
        raise ValueError("the plan was made for another constraint than the one that is enforced")
    if plan.owner != (aggregation.owner is not None):
        unit, other = ("owners", "entries") if plan.owner else ("entries", "owners")
        raise ValueError(f"the plan protects {unit}, and {other} are bounded; name an owner in both, or in neither")
    timeline = aggregation.timeline
    if plan.window != timeline.every or (plan.windows is not None and plan.windows < timeline.windows):
        raise ValueError("the plan was made for other or for fewer windows than the aggregation has")


class Release(beam.PTransform):
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
        refuse_other(sums, summed, part="Release", before="BoundedSums")
        every = sums.pipeline | "EveryChunk" >> beam.Create(
            [(key, b"") for key in self._release.aggregation.node_keys()],
            reshuffle=False,
        ).with_output_types(tuple[NodeKey, bytes])
        drawn = (
            (sums, every)
            | "WithEmptyOnes" >> beam.Flatten()
            | "GatherChunks" >> beam.GroupByKey()
            | "AddNoise"
            >> beam.ParDo(_AddNoise(self._release, self._past, self._keep)).with_output_types(tuple[NodeKey, bytes])
            | "OneDraw" >> beam.Reshuffle()
        )
        return {
            NODES: drawn | "TellNodes" >> beam.Map(tell, release=self._release, side=NODES),
            ESTIMATES: drawn | "Estimate" >> beam.Map(tell, release=self._release, side=ESTIMATES),
            STATE: drawn | "Remember" >> beam.FlatMap(remember).with_output_types(tuple[str, bytes]),
        }


class _AddNoise(beam.DoFn):
    def __init__(self, release: ReleasePlan, past: str | None, keep: bool) -> None:
        self._release = release
        self._past = past
        self._keep = keep

    def process(self, chunk: tuple[NodeKey, Iterable[bytes]]) -> Iterator[tuple[NodeKey, bytes]]:
        key, payloads = chunk
        yield key, protect(self._release, key, (p for p in payloads if p), past=self._past, keep=self._keep)


def protect(release: ReleasePlan, key: NodeKey, payloads: Iterable[bytes], *, past: str | None, keep: bool) -> bytes:
    """Draw the noise of one chunk. A second call draws anew: it is the release store that lets one draw count.

    Args:
        payloads: exact sums of the chunk, from all shards.
        past: the folder with the state that the run before left; None in the first.
        keep: whether to make a state for the next run.

    Returns:
        for `tell` and `remember`.
    """
    _, number, family, _ = key
    aggregation, parts = release.aggregation, release.plan.of(number, family)
    exact = dense(payloads, aggregation, key)
    before = None if past is None else _unpack_state(read_bytes(f"{past}/{noise_file(key)}"), exact, release.plan)
    drawn = []
    for place, released in enumerate(parts):
        noise = None if before is None else before[place]
        drawn.append(draw(exact, released, aggregation.timeline.released, noise))
    state = _pack_state(exact, [noise for noise, _ in drawn], release.plan) if keep else b""
    return pack([_pack([protected for _, protected in drawn]), state])


Noise = list[np.ndarray]
"""For each component [draws, cells]: all rows that were drawn so far."""


def draw(exact: np.ndarray, released: Released, windows: int, past: Noise | None = None) -> tuple[Noise, Protected]:
    """One part's noise, and its noisy nodes and published numbers for the windows of this run.

    Neighbours, sensitivity, guarantee and source: privacy.strategies.base, privacy.planning.sensitivity and
    privacy.accounting. The noise of component i is `released.noise[i]`, one independent draw for each node and cell,
    also for those drawn in advance. Rows of noise that an earlier run drew are used again, since nodes and numbers told
    before are made from them; what was told before is not told again.

    Args:
        exact: leaf sums [components, 1 + windows, cells] since the start, row 0 the opening.
        windows: how many were released before.
        past: the noise drawn before.
    """
    strategy, earlier = released.strategy, windows // released.leaf
    noises, nodes, sums = [], [], []
    for component, distribution in enumerate(released.noise):
        leaves = merge(exact[component], released.leaf)
        rows, cells = strategy.draws(len(leaves) - 1), leaves.shape[1]
        noise = np.empty((0, cells), dtype=np.int64) if past is None else past[component]
        fresh = distribution.noise((rows - len(noise)) * cells).reshape(-1, cells)
        noise = np.concatenate([noise, fresh])
        exact_nodes, _ = strategy.advance(None, leaves)
        told = 0 if windows == 0 else len(strategy.nodes(earlier).end)
        noises.append(noise)
        nodes.append((exact_nodes + noise[: len(exact_nodes)])[told:])
        numbers = [
            (series, strategy.publish(series.merged(released.leaf), leaves, noise)) for series in released.series
        ]
        sums.append([values[len(series.ends(windows)) :] for series, values in numbers])
    return noises, Protected(nodes=nodes, sums=[list(parts) for parts in zip(*sums, strict=True)])


def add_noise(exact: np.ndarray, released: Released) -> Protected:
    """`draw` for a release that is made in one run."""
    return draw(exact, released, 0)[1]


def merge(leaves: np.ndarray, windows: int) -> np.ndarray:
    """Leaf sums of `windows` windows each; the opening stays, an unfinished leaf is left out.

    >>> merge(np.array([[9], [1], [2], [3]]), 2).ravel().tolist()
    [9, 3]
    """
    if windows == 1:
        return leaves
    whole = (len(leaves) - 1) // windows
    merged = leaves[1 : 1 + whole * windows].reshape(whole, windows, leaves.shape[1]).sum(axis=1)
    return np.concatenate([leaves[:1], merged])


def remember(drawn: tuple[NodeKey, bytes]) -> Iterator[tuple[str, bytes]]:
    """The state for the next run, with its file's name, if one was made."""
    key, payload = drawn
    _, state = unpack(payload)
    if state:
        yield noise_file(key), state


def noise_file(key: NodeKey) -> str:
    """What the state of a chunk is called."""
    _, number, family, part = key
    return f"release-{number}-{family}-{part:05d}.parquet"


def part_name(aggregation: Aggregation, key: NodeKey) -> str:
    """What the published tables of a chunk are called."""
    _, number, family, part = key
    return f"{aggregation.queries[number].name}-{family}-{part:05d}"


def _pack_state(exact: np.ndarray, noises: list[Noise], plan: Plan) -> bytes:
    """Exact leaf sums and all noise sampled so far under a plan: private, the most secret of all."""
    columns = {f"leaves.{c}": leaves for c, leaves in enumerate(exact)}
    for place, noise in enumerate(noises):
        columns |= {f"noise.{place}.{c}": rows for c, rows in enumerate(noise)}
    metadata = {PLAN: digest(plan).encode()}
    return to_parquet({name: list_of(values.ravel()) for name, values in columns.items()}, metadata=metadata)


def _unpack_state(payload: bytes, exact: np.ndarray, plan: Plan) -> list[Noise]:
    """The noise of each part; the leaf sums of the windows before are put into `exact`.

    Raises:
        ValueError: the noise was sampled under another plan, whose nodes and scales are not those of this one.
    """
    table = from_parquet(payload)
    if (table.schema.metadata or {}).get(PLAN) != digest(plan).encode():
        raise ValueError(
            "the noise so far was sampled under another plan; go on with that one (privacy.planning.document)"
        )
    found: dict[int, Noise] = {}
    for name in table.column_names:
        values = table[name].combine_chunks().values.to_numpy().reshape(-1, exact.shape[2])
        what, *numbers = name.split(".")
        if what == "leaves":
            exact[int(numbers[0]), : len(values)] += values
        else:
            found.setdefault(int(numbers[0]), []).append(values)
    return [found[place] for place in sorted(found)]


def _pack(protected: list[Protected]) -> bytes:
    """One row, a list for each array: a payload that a runner moves as bytes."""
    columns = {}
    for place, part in enumerate(protected):
        for component, nodes in enumerate(part.nodes):
            columns[f"{place}.nodes.{component}"] = nodes
        for number, sums in enumerate(part.sums):
            for component, values in enumerate(sums):
                columns[f"{place}.{number}.{component}"] = values
    return to_bytes(pa.table({name: list_of(values.ravel()) for name, values in columns.items()}))


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


def tell(drawn: tuple[NodeKey, bytes], release: ReleasePlan, side: str) -> tuple[str, bytes]:
    """What was drawn of one chunk as one kind of published table, with the name of its part."""
    key, payload = drawn
    _, number, family, part = key
    told, _ = unpack(payload)
    aggregation, parts = release.aggregation, release.plan.of(number, family)
    first_cell = part * aggregation.chunk_cells(number)
    cells = min(aggregation.chunk_cells(number), aggregation.queries[number].cells - first_cell)
    table_of = nodes_table if side == NODES else estimates_table
    tables = [
        table_of(protected, aggregation, released, first_cell)
        for protected, released in zip(_unpack(told, parts, cells), parts, strict=True)
    ]
    return part_name(aggregation, key), to_bytes(pa.concat_tables(tables))
