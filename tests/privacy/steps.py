"""Strategies step by step, with known noise for each node."""

from collections.abc import Sequence

import numpy as np

from privacy.series import BEFORE_ALL, Ints, Series
from privacy.strategies.base import Carry, Floats, Nodes, Strategy

Node = tuple[int, int, int]
"""Layer, begin, end."""


def listed(nodes: Nodes) -> list[Node]:
    return list(zip(nodes.layer.tolist(), nodes.begin.tolist(), nodes.end.tolist(), strict=True))


class Recorded:
    """Noise by node, independent of the time and order of requests; no node may be requested twice."""

    def __init__(self, cells: int, *, bits: int = 30, salt: int = 0) -> None:
        self.cells, self.bits, self.salt = cells, bits, salt
        self.asked: list[Node] = []

    def row(self, node: Node) -> Ints:
        rng = np.random.default_rng([self.salt, *(number + 1 for number in node)])
        return rng.integers(-(1 << self.bits), 1 << self.bits, self.cells)

    def __call__(self, nodes: Nodes) -> Ints:
        found = listed(nodes)
        assert len({*found, *self.asked}) == len(found) + len(self.asked)
        self.asked += found
        return np.array([self.row(node) for node in found], dtype=np.int64).reshape(len(found), self.cells)


class Given(Recorded):
    """Noise from a table: a column of unit vectors, or any other; 0 for nodes without an entry."""

    def __init__(self, rows: dict[Node, Ints], cells: int) -> None:
        super().__init__(cells)
        self.rows = rows

    def row(self, node: Node) -> Ints:
        return self.rows.get(node, np.zeros(self.cells, dtype=np.int64))


def stepped(
    strategy: Strategy, leaves: Ints, noise: Recorded, series: Sequence[Series], cuts: Sequence[int] = ()
) -> tuple[Ints, list[Floats], list[Carry]]:
    """Return nodes and numbers of all steps; row 0 of the leaves is the initial level, and cuts are rows above 0."""
    carry, carries, nodes, numbers = None, [], [], []
    for rows in np.split(leaves, sorted(cuts)):
        found, told, carry = strategy.step(carry, rows, series=series, sample=noise)
        nodes.append(found)
        numbers.append(told)
        carries.append(carry)
    return np.concatenate(nodes), [np.concatenate(parts) for parts in zip(*numbers, strict=True)], carries


def exact_nodes(strategy: Strategy, leaves: Ints) -> Ints:
    """Return C x, for the complete nodes."""
    return strategy.step(None, leaves, series=(), sample=Given({}, leaves.shape[1]))[0]


def publish(strategy: Strategy, series: Series, leaves: Ints, noise: Recorded) -> Floats:
    """Return the numbers of one series, in one step."""
    return strategy.step(None, leaves, series=[series], sample=noise)[1][0]


def sampled(strategy: Strategy, windows: int) -> list[Node]:
    """Return the nodes that have noise by then."""
    noise = Given({}, 1)
    strategy.step(None, np.zeros((1 + windows, 1), dtype=np.int64), series=(), sample=noise)
    return noise.asked


def nodes_matrix(nodes: Sequence[Node], windows: int) -> Ints:
    """Return C of nodes that are sums of leaves, [nodes, 1 + windows], from their layers and boundaries."""
    column = np.arange(1 + windows)
    begin, end = (np.array([node[place] for node in nodes])[:, None] for place in (1, 2))
    return ((begin < column) & (column <= end) & ((begin == BEFORE_ALL) == (column == 0))).astype(np.int64)


def noise_matrix(strategy: Strategy, series: Series, windows: int, nodes: Sequence[Node], *, scale: int = 1) -> Floats:
    """Return W, [numbers, nodes]: the effect of each node's noise in a step."""
    unit = dict(zip(nodes, np.eye(len(nodes), dtype=np.int64) * scale, strict=True))
    nothing = np.zeros((1 + windows, len(nodes)), dtype=np.int64)
    return publish(strategy, series, nothing, Given(unit, len(nodes))) / scale
