"""Where the nodes of a c-ary forest lie, which of them have noise by a boundary, and which a step must remember.

Node j of layer i spans the windows from boundary j c^i to (j + 1) c^i; a horizon may cut the last one of each layer.
A node's noise is sampled in the step in which it is first of use:

    node      when its own first window closes: sums that are still open are carried with their noise
    family    with its siblings, when the first window of its parent closes; a top node by itself
    root      with all nodes of its tree, when the first window of the tree closes

All three follow from how many windows have closed, so the same nodes have noise however the windows came.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privacy.series import Ints, Series
from privacy.strategies.base import Nodes

Ahead = Literal["node", "family", "root"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layering:
    """
    Attributes:
        layers: at least one; those of the top have no parents.
        windows: the horizon, None without end.
        cut: whether the last node of each layer is there even where the horizon cuts it.
        ahead: with what a node's noise is sampled.
    """

    branching: int
    layers: int
    windows: int | None
    cut: bool
    ahead: Ahead

    @property
    def top(self) -> int:
        return self.layers - 1

    def span(self, layer: int) -> int:
        return int(self.branching**layer)

    def complete(self, layer: int, windows: int) -> int:
        """How many nodes of a layer end by a boundary."""
        span = self.span(layer)
        return windows // span + int(self.cut and windows == self.windows and windows % span > 0)

    def sampled(self, layer: int, windows: int) -> int:
        """How many nodes of a layer have noise when so many windows have closed."""
        over = {"node": layer, "family": min(layer + 1, self.top), "root": self.top}[self.ahead]
        return self.complete(layer, self.end(over, windows))

    def end(self, layer: int, windows: int) -> int:
        """Where the node of a layer ends that the last of so many windows is in."""
        span = self.span(layer)
        end = -(-windows // span) * span
        return end if self.windows is None else min(end, self.windows)

    def roots_end(self, windows: int) -> int:
        """Where the last tree ends that has begun: the nodes up to there are a forest of their own."""
        return self.end(self.top, windows)

    def sizes(self, windows: int) -> list[int]:
        """How many nodes of each layer end by a boundary."""
        return [self.complete(layer, windows) for layer in range(self.layers)]

    def nodes(self, layer: int, first: int, last: int) -> Nodes:
        """Nodes first, ..., last - 1 of a layer."""
        begin = np.arange(first, last, dtype=np.int64) * self.span(layer)
        end = begin + self.span(layer)
        return Nodes(
            layer=np.full_like(begin, layer),
            begin=begin,
            end=end if self.windows is None else np.minimum(end, self.windows),
        )

    def completed(self, start: int, stop: int) -> Nodes:
        """Nodes that end after one boundary and by another, layer by layer."""
        return joined(
            self.nodes(layer, self.complete(layer, start), self.complete(layer, stop)) for layer in range(self.layers)
        )

    def kept(self, layer: int, windows: int, series: Iterable[Series]) -> Ints:
        """Places on a layer, increasing, that later numbers use: place j is where node j begins.

        Every later number is a path of nodes from a boundary b to its own end. From b the path goes to b's neighbours
        on a layer, and to the ends of the families that they are in; and it comes to its end from such places again.
        So for each b where an open number begins, and for the last boundary, these are remembered, and all places from
        the last complete node on.
        """
        count, sampled = self.complete(layer, windows), self.sampled(layer, windows)
        begins = np.concatenate([np.array([windows]), *(one.open_begins(windows) for one in series)])
        place = begins // self.span(layer)
        family = begins // self.span(layer + 1) * self.branching if layer < self.top else place
        marks = np.concatenate([place, place + 1, family, family + self.branching])
        return np.union1d(marks[marks <= count], np.arange(count, sampled + 1))


def joined(parts: Iterable[Nodes]) -> Nodes:
    """Nodes one after another."""
    parts = list(parts)
    return Nodes(
        layer=np.concatenate([part.layer for part in parts]),
        begin=np.concatenate([part.begin for part in parts]),
        end=np.concatenate([part.end for part in parts]),
    )
