"""Positions of the nodes of a c-ary forest, which nodes have noise by a boundary, and what a step must remember.

Node j of layer i spans the windows from boundary j c^i to (j + 1) c^i; a horizon may cut the last one of each layer.
A node's noise is sampled in the step that first uses it:

    node      when its own first window closes: open sums are carried with their noise
    family    with its siblings, when the first window of its parent closes; a top node separately
    root      with all nodes of its tree, when the first window of the tree closes

All three follow from the number of closed windows, so the same nodes have noise however the windows arrived.
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
    """Positions of the nodes of a forest, and when their noise is sampled.

    Attributes:
        branching: children of a node.
        layers: number of layers, at least one; nodes of the top layer have no parents.
        windows: the horizon, None if the release has no end.
        cut: whether the last node of each layer exists even if the horizon cuts it.
        ahead: the nodes together with which a node's noise is sampled.
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
        """Return the number of nodes of a layer that end by a boundary."""
        span = self.span(layer)
        return windows // span + int(self.cut and windows == self.windows and windows % span > 0)

    def sampled(self, layer: int, windows: int) -> int:
        """Return the number of nodes of a layer that have noise when `windows` windows have closed."""
        over = {"node": layer, "family": min(layer + 1, self.top), "root": self.top}[self.ahead]
        return self.complete(layer, self.end(over, windows))

    def end(self, layer: int, windows: int) -> int:
        """Return the end of the node of a layer that contains the last of `windows` windows."""
        span = self.span(layer)
        end = -(-windows // span) * span
        return end if self.windows is None else min(end, self.windows)

    def roots_end(self, windows: int) -> int:
        """Return the end of the last tree that has begun: the nodes up to this boundary form a forest."""
        return self.end(self.top, windows)

    def sizes(self, windows: int) -> list[int]:
        """Return the number of nodes of each layer that end by a boundary."""
        return [self.complete(layer, windows) for layer in range(self.layers)]

    def nodes(self, layer: int, first: int, last: int) -> Nodes:
        """Return nodes first, ..., last - 1 of a layer.

        Args:
            layer: the layer, 0 for leaves.
            first: number of the first node.
            last: number after the last node.
        """
        begin = np.arange(first, last, dtype=np.int64) * self.span(layer)
        end = begin + self.span(layer)
        return Nodes(
            layer=np.full_like(begin, layer),
            begin=begin,
            end=end if self.windows is None else np.minimum(end, self.windows),
        )

    def completed(self, start: int, stop: int) -> Nodes:
        """Return the nodes that end after `start` and by `stop`, layer by layer."""
        return joined(
            self.nodes(layer, self.complete(layer, start), self.complete(layer, stop)) for layer in range(self.layers)
        )

    def kept(self, layer: int, windows: int, series: Iterable[Series]) -> Ints:
        """Return the places on a layer, increasing, that later numbers use: place j is where node j begins.

        Every later number is a path of nodes from a boundary b to its end. From b the path goes to the neighbours of b
        on a layer, and to the ends of their families; it reaches its end from such places again. So these places are
        remembered for the last boundary and for each b at which an open number begins, and all places from the last
        complete node on.

        Args:
            layer: the layer, 0 for leaves.
            windows: number of closed windows.
            series: the published series.
        """
        count, sampled = self.complete(layer, windows), self.sampled(layer, windows)
        begins = np.concatenate([np.array([windows]), *(one.open_begins(windows) for one in series)])
        place = begins // self.span(layer)
        family = begins // self.span(layer + 1) * self.branching if layer < self.top else place
        marks = np.concatenate([place, place + 1, family, family + self.branching])
        return np.union1d(marks[marks <= count], np.arange(count, sampled + 1))


def joined(parts: Iterable[Nodes]) -> Nodes:
    """Return the nodes of all parts, concatenated."""
    parts = list(parts)
    return Nodes(
        layer=np.concatenate([part.layer for part in parts]),
        begin=np.concatenate([part.begin for part in parts]),
        end=np.concatenate([part.end for part in parts]),
    )
