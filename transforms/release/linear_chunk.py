"""Chunk that strategies release: each node gets noise, and numbers are made from noisy nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from privacy.noise.distributions import NoiseDistribution, widened
from privacy.planning.linear_part import LinearPart
from privacy.series import Ints
from privacy.strategies.base import Nodes, before_each
from transforms.aggregation.node_sums import Aggregation
from transforms.release import noise
from transforms.release.blocks import OfDenseBlocks
from transforms.release.node_tables import nodes_table
from transforms.release.noise_state import HeldNoise, state_from_bytes, state_to_bytes
from transforms.release.protected import Protected, columns_of, protected_from_bytes, protected_to_bytes
from transforms.release.published_tables import estimates_table


@dataclass(frozen=True, slots=True)
class LinearChunk(OfDenseBlocks):
    """All parts of a family, over some cells.

    Attributes:
        parts: Parts of one query.
        cells: Cells of the chunk.
    """

    parts: tuple[LinearPart, ...]
    cells: int

    def opened(self, payload: bytes, *, windows: int, plan: str) -> list[list[HeldNoise]]:
        """Return the state that `kept` has written (see `Chunk.opened`)."""
        return state_from_bytes(
            payload,
            [part.leaf for part in self.parts],
            windows=windows,
            columns=[columns_of(part, self.cells) for part in self.parts],
            plan=plan,
        )

    def step(self, held: list[list[HeldNoise]] | None, leaves: np.ndarray) -> tuple[list[list[HeldNoise]], bytes]:
        """Publish some windows (see `Chunk.step`); leaves are int64 [components, windows, cells]."""
        stepped = [step(part, None if held is None else held[p], leaves) for p, part in enumerate(self.parts)]
        return [after for after, _ in stepped], protected_to_bytes([protected for _, protected in stepped])

    def kept(self, held: list[list[HeldNoise]], *, windows: int, plan: str) -> bytes:
        """Return the state for the next run (see `Chunk.kept`)."""
        return state_to_bytes(held, windows=windows, plan=plan)

    def nodes(self, content: bytes, aggregation: Aggregation, first_cell: int) -> pa.Table:
        """Return the published table of nodes (see `Chunk.nodes`)."""
        return pa.concat_tables(
            nodes_table(protected, aggregation, part, first_cell) for protected, part in self._protected(content)
        )

    def estimates(self, content: bytes, aggregation: Aggregation, first_cell: int) -> pa.Table:
        """Return the published table of numbers (see `Chunk.estimates`)."""
        return pa.concat_tables(
            estimates_table(protected, aggregation, part, first_cell) for protected, part in self._protected(content)
        )

    def _protected(self, content: bytes) -> list[tuple[Protected, LinearPart]]:
        return list(zip(protected_from_bytes(content, self.parts, self.cells), self.parts, strict=True))


def step(
    released: LinearPart, held: Sequence[HeldNoise] | None, leaves: np.ndarray
) -> tuple[list[HeldNoise], Protected]:
    """Return the state for the next windows, and one part's noisy nodes and published numbers for some windows.

    Neighbours, sensitivity, guarantee and source: privacy.strategies.base, privacy.planning.sensitivity and
    privacy.accounting. The noise of component i is `released.noise[i]`, independent for each node and cell, and as many
    times as wide as the strategy requires. Under a strategy over cells the columns are the strategy's nodes, and
    numbers are made from them.

    Args:
        released: Part of the plan.
        held: State of the previous step, by component; None in the first, whose row 0 is the initial level.
        leaves: Exact sums of these windows, int64 [components, windows, cells].
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
                return noise.sample_noise(distribution, nodes, component=component, cells=leaves.shape[2])
            sampled = np.empty((len(nodes.end), leaves.shape[2]), dtype=np.int64)
            for width in np.unique(stretch):
                rows = stretch == width
                sampled[rows] = noise.sample_noise(
                    widened(distribution, float(width)), nodes.of(rows), component=component, cells=leaves.shape[2]
                )
            return sampled

        found, numbers, carry = released.strategy.step(
            None if before is None else before.carry, whole, series=series, sample=sample
        )
        after.append(HeldNoise(carry=carry, leaf=rest, windows=windows))
        nodes.append(found)
        sums.append(numbers if released.over is None else [released.over.gather(one) for one in numbers])
    return after, Protected(nodes=nodes, sums=[list(parts) for parts in zip(*sums, strict=True)])


def merged(leaves: Ints, held: HeldNoise | None, leaf: int) -> tuple[Ints, Ints, int]:
    """Return sums of `leaf` windows each; the sum of the remaining windows, as one row or none; and their number.

    Args:
        leaves: Exact sums of windows, int64 [windows, cells].
        held: State with the windows that remained before; None for none.
        leaf: Windows in a leaf.

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


def add_noise(exact: np.ndarray, released: LinearPart) -> Protected:
    """Return `step` for a release that is made at once, from sums int64 [components, 1 + windows, cells]."""
    return step(released, None, exact)[1]
