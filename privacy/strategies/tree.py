"""Trees (HDCR): every complete node of a c-ary forest on the windows gets noise, and a number is a sum of few nodes.

The forest is that of privacy.strategies.tree_covers; one layer of it is the disjoint strategy (DCR), where each window
stands alone. What a number is made of:

    none           its minimal cover
    subtraction    the fewest nodes that add up to it when nodes may also be subtracted
    bottom_up      its cover, each node estimated from itself and all below it
    least_squares  its best linear estimate from all nodes

Levels are prefixes of the windows and the level at the start, `opening`, which is a node outside the tree, released
once. Without it row 0 of the leaves is ignored, and a level is what has changed since the start.

Exactness. With x the exact leaf sums, C x the exact nodes and z their noise, all integers, let W0 be the signed nodes
of the cover or walk: W0 C = A. A refinement F acts on the relations N z alone (privacy.strategies.tree_refine): N C =
0. What is told,

    A x + W0 z + F(N z) = W0 (C x + z) + F(N (C x + z))

is a function of the noisy nodes C x + z. A x + W0 z and N z are computed exactly in integers, and F may round as it
likes, since it is given the same integers on either side. Two databases whose noisy nodes are equal give equal bytes:
no guarantee rests on floating point.

Noise in advance. `subtraction` and `least_squares` use nodes that are not complete yet, so their noise is drawn when
the first window of their root's tree closes. Nodes are in the order of their ends, and that tree's end is the last, so
a node's row of noise is the same from its draw on, and an estimate uses no row that was drawn after it: it never
changes. Sound for Gaussian noise, and for Laplace noise when the changelog does not depend on what was published
(privacy.strategies.base).

The horizon. These two cut the last node of each layer there: it ends with the release, and is told then. The other two
have little use for it: a node that is not complete within the horizon is never told and never drawn.
Source: M. Pan, "Differentially-private Continual Releases against Dynamic Databases", section 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least
from privacy.exact import Json, Members
from privacy.series import BEFORE_ALL, Ints, Series, totals
from privacy.states import States
from privacy.strategies import tree_norms
from privacy.strategies.base import Floats, Moved, Nodes
from privacy.strategies.choice import REFINES, Refine
from privacy.strategies.touched import Touched, at_most
from privacy.strategies.tree_covers import Runs, cover_runs, walk_runs
from privacy.strategies.tree_refine import (
    Numbers,
    bottom_up,
    least_squares,
    least_squares_variances,
    least_squares_weights,
    node_variances,
)

LARGEST_NODE = 1 << 40
LARGEST_ADVANCE = 1 << 20
"""Most windows under one node of a tree without a horizon; the second where noise is drawn for all of them at once."""


@dataclass(frozen=True, slots=True)
class Carry:
    """What a tree remembers of the windows so far: O(height) numbers per cell.

    Attributes:
        windows: how many have closed.
        unfinished: [layers, cells], the sum of the leaves of each layer's unfinished node, 0 if there is none.
    """

    windows: int
    unfinished: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A strategy, see privacy.strategies.base.Strategy; `windows` is the horizon, None if there is none.

    >>> week = Tree(branching=7, height=2, refine="none", windows=28, opening=True)
    >>> week.variances(Series(kind="level"), 15).tolist()
    [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 3.0, 4.0]
    """

    kind: ClassVar[str] = "tree"
    sparse: ClassVar[bool] = True
    certifiable: ClassVar[bool] = False
    branching: int
    height: int
    refine: Refine
    windows: int | None
    opening: bool

    def __post_init__(self) -> None:
        at_least("branching", self.branching, 2)
        at_least("height", self.height, 1)
        if self.windows is not None:
            at_least("windows", self.windows, 1)
        elif self._span(self.height - 1) > (most := LARGEST_ADVANCE if self.cut else LARGEST_NODE):
            raise ValueError(
                f"branching={self.branching} and height={self.height}: with refine={self.refine} "
                f"a node may span at most {most:,} windows where the release has no end"
            )

    @property
    def name(self) -> str:
        return "disjoint" if self._disjoint else "tree"

    @property
    def parameters(self) -> dict[str, Any]:
        if self._disjoint:
            return {}
        return {"branching": self.branching, "height": self.height, "refine": self.refine}

    @property
    def variant(self) -> str:
        return "" if self._disjoint else self.refine

    def node_name(self, series: Sequence[Series]) -> str:
        return ""

    def to_json(self, *, exactly: bool) -> Json:
        return {
            "branching": self.branching,
            "height": self.height,
            "refine": self.refine,
            "windows": self.windows,
            "opening": self.opening,
        }

    @staticmethod
    def from_json(told: Members) -> "Tree":
        return Tree(
            branching=told.count("branching"),
            height=told.count("height"),
            refine=told.word("refine", REFINES),
            windows=told.optional_count("windows"),
            opening=told.flag("opening"),
        )

    @property
    def layers(self) -> int:
        """How many layers there are: those above would have no node, or repeat one that spans all windows."""
        if self.windows is None:
            return self.height
        longest = self.branching * self.windows - 1 if self.cut else self.windows
        return 1 + sum(self._span(layer) <= longest for layer in range(1, self.height))

    @property
    def cut(self) -> bool:
        """Whether the last node of each layer is drawn even where the horizon cuts it."""
        return self.refine in ("subtraction", "least_squares")

    @property
    def in_advance(self) -> bool:
        return self.cut and self.layers > 1

    @property
    def whole(self) -> int | None:
        """Windows of a forest of `layers` layers without cut nodes whose sensitivity bounds that of this one.

        A cut node holds what the whole one would if nothing changed after the horizon.
        """
        if self.windows is None or not self.cut:
            return self.windows
        span = self._span(self.layers - 1)
        return -(-self.windows // span) * span

    def draws(self, windows: int) -> int:
        return int(self.opening) + sum(self._sizes(self._drawn(windows)))

    def places(self, windows: int) -> Ints:
        """The node of each row of noise, [draws, 2]: its layer and index. The opening has index -1.

        >>> Tree(branching=2, height=2, refine="subtraction", windows=None, opening=False).places(1).tolist()
        [[0, 0], [0, 1], [1, 0]]
        """
        layer, end = self._completed(0, self._drawn(windows))
        nodes = np.stack([layer, (end - 1) // self.branching**layer], axis=1)
        return np.concatenate([np.array([[0, -1]]), nodes]) if self.opening else nodes

    def nodes(self, windows: int) -> Nodes:
        layer, end = self._completed(0, self._within(windows))
        begin = self._begin(layer, end)
        if self.opening:
            layer, begin, end = (np.concatenate([[o], a]) for o, a in ((0, layer), (BEFORE_ALL, begin), (0, end)))
        return Nodes(layer=layer, begin=begin, end=end)

    def advance(self, carry: Carry | None, leaves: Ints) -> tuple[Ints, Carry]:
        opening = leaves[:0]
        if carry is None:
            carry = Carry(0, np.zeros((self.layers, leaves.shape[1]), dtype=np.int64))
            opening, leaves = leaves[: int(self.opening)], leaves[1:]
        start, stop = carry.windows, self._within(carry.windows + len(leaves))
        since = _before_each(leaves)
        # A node that began earlier goes on from what is left of it; else it begins at a boundary among these leaves.
        layer, end = self._completed(start, stop)
        begin = self._begin(layer, end)
        told = since[end - start] - since[np.maximum(begin - start, 0)]
        early = np.flatnonzero(begin < start)  # at most one node a layer
        told[early] += carry.unfinished[layer[early]]
        # The carry may be nearly all the memory there is: no copies of it.
        unfinished = np.empty_like(carry.unfinished)
        for at, left in enumerate(unfinished):
            begun = stop - stop % self._span(at)
            if begun < start:
                np.add(carry.unfinished[at], since[-1], out=left)
            else:
                np.subtract(since[-1], since[begun - start], out=left)
        return np.concatenate([opening, told]), Carry(stop, unfinished)

    def publish(self, series: Series, leaves: Ints, noise: Ints) -> Floats:
        windows = self._within(len(leaves) - 1)
        if len(noise) != self.draws(windows):
            raise ValueError(f"{len(noise)} rows of noise for {self.draws(windows)} draws")
        exact = totals(series, leaves)
        if series.kind == "level":
            exact += noise[0] if self.opening else -leaves[0]
        layers = self._by_layer(noise, windows)
        runs = self._runs(series, windows)
        told: Floats = (exact + _along(runs, layers)).astype(np.float64)
        if self.refine == "bottom_up":
            told += _along(runs, bottom_up(layers, self.branching))
        elif self.refine == "least_squares":
            told += _along(runs, least_squares(layers, self.branching))
        return told

    def variances(self, series: Series, windows: int) -> Floats:
        opening = float(self.opening and series.kind == "level")
        if self.refine == "least_squares":
            begins, ends = _ranges(series, self._within(windows))
            drawn = self._drawn(windows)
            return opening + least_squares_variances(
                begins, ends, branching=self.branching, height=self.layers, windows=drawn
            )
        sizes = self._runs(series, self._within(windows)).sizes
        each = node_variances(self.branching, self.layers) if self.refine == "bottom_up" else np.ones(self.layers)
        variances: Floats = opening + each @ sizes
        return variances

    def weights(self, series: Series, windows: int) -> list[Floats]:
        opening = np.ones(int(self.opening and series.kind == "level"))
        if self.refine == "least_squares":
            begins, ends = _ranges(series, self._within(windows))
            nodes = self._sizes(self._drawn(windows))
            rows: list[Floats] = []
            for few in np.split(np.arange(len(ends)), range(256, len(ends), 256)):  # the whole may be too large
                held = least_squares_weights(begins[few], ends[few], branching=self.branching, nodes=nodes)
                rows.extend(np.concatenate([opening, np.abs(row[row != 0])]) for row in held)
            return rows
        sizes = self._runs(series, self._within(windows)).sizes.T
        if self.refine != "bottom_up":
            return [np.broadcast_to(1.0, len(opening) + size) for size in sizes.sum(axis=1)]  # no memory for each
        # A node of layer i holds the noise of c^(i - l) nodes of layer l, each times v_l and 1 - v of those between.
        own = node_variances(self.branching, self.layers)
        kinds = [(i, below) for i in range(self.layers) for below in range(i + 1)]
        held = np.array([own[below] * np.prod(1 - own[below + 1 : i + 1]) for i, below in kinds])
        count = np.array([self.branching ** (i - below) for i, below in kinds])
        layer = np.array([i for i, _ in kinds])
        return [np.concatenate([opening, np.repeat(held, count * size[layer])]) for size in sizes]

    @property
    def disjoint_layers(self) -> tuple[int, ...]:
        return self._forest.leaves

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        return tree_norms.norm(self._forest, states, leaves)

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        forest = self._forest
        return [tree_norms.norm(forest, states, at_most(j), most=changes) for j in range(1, changes + 1)]

    def moved(self, leaves: Touched, *, cells: int, largest: Sequence[int], shared: bool) -> Moved:
        nodes = tree_norms.nodes(self._forest, leaves)
        places = leaves.appearing * self.layers if shared else nodes
        return Moved(nodes=nodes, coordinates=places * min(cells, 2) * len(largest))

    def so_far(self, leaves: int) -> "Tree | None":
        if leaves == 0 and not self.opening:
            return None
        # An initial level is published before the first leaf closes; a leaf more only adds nodes.
        return replace(self, windows=self._drawn(max(leaves, 1)))

    @property
    def _forest(self) -> tree_norms.Forest:
        return tree_norms.Forest(branching=self.branching, layers=self.layers, windows=self.whole, initial=self.opening)

    @property
    def _disjoint(self) -> bool:
        return self.height == 1 and self.refine == "none"

    def _within(self, windows: int) -> int:
        if self.windows is not None and windows > self.windows:
            raise ValueError(f"{windows} windows are more than the horizon of {self.windows}")
        return windows

    def _span(self, layer: int) -> int:
        return int(self.branching**layer)

    def _begin(self, layer: Ints, end: Ints) -> Ints:
        """The boundary where the node that ends at one begins; a cut node ends early."""
        span = self.branching**layer
        begin: Ints = (end - 1) // span * span
        return begin

    def _sizes(self, boundary: int) -> list[int]:
        """How many nodes of each layer end by a boundary."""
        spans = [self._span(layer) for layer in range(self.layers)]
        cut = self.cut and boundary == self.windows
        return [boundary // span + (cut and boundary % span > 0) for span in spans]

    def _drawn(self, windows: int) -> int:
        """The boundary up to which nodes must have noise: with draws in advance, the end of the last root begun.

        The nodes up to it are whole trees, so they are a forest of their own, which later windows only extend.
        """
        if not self.cut:
            return self._within(windows)
        span = self._span(self.layers - 1)
        end = -(-self._within(windows) // span) * span
        return end if self.windows is None else min(end, self.windows)

    def _completed(self, start: int, stop: int) -> tuple[Ints, Ints]:
        """Layers and ends of the nodes that end after one boundary and by another, by (end, layer)."""
        before, by = self._sizes(start), self._sizes(stop)
        index = [np.arange(low, high, dtype=np.int64) for low, high in zip(before, by, strict=True)]
        end = np.concatenate([np.minimum((i + 1) * self._span(layer), stop) for layer, i in enumerate(index)])
        layer = np.repeat(np.arange(self.layers), [len(i) for i in index])
        order = np.lexsort((layer, end))
        return layer[order], end[order]

    def _by_layer(self, noise: Ints, windows: int) -> list[Ints]:
        layer, _ = self._completed(0, self._drawn(windows))
        nodes = noise[int(self.opening) :]
        return [nodes[layer == each] for each in range(self.layers)]

    def _runs(self, series: Series, windows: int) -> Runs:
        begins, ends = _ranges(series, windows)
        if self.refine == "subtraction":
            return walk_runs(begins, ends, branching=self.branching, nodes=self._sizes(self._drawn(windows)))
        return cover_runs(begins, ends, branching=self.branching, height=self.layers)


def _ranges(series: Series, windows: int) -> tuple[Ints, Ints]:
    """The ranges of windows of a series; that of a level begins at the start."""
    return np.maximum(series.begins(windows), 0), series.ends(windows)


def _before_each(values: Numbers) -> Numbers:
    """Sums of the rows before each boundary, [1 + rows, cells]."""
    sums: Numbers = np.concatenate([np.zeros_like(values[:1], shape=(1, values.shape[1])), np.cumsum(values, axis=0)])
    return sums


def _along(runs: Runs, layers: Sequence[Numbers]) -> Numbers:
    """Sums of nodes' values along runs, [ranges, cells]."""
    total: Numbers = np.zeros_like(layers[0], shape=(runs.first.shape[2], layers[0].shape[1]))
    for values, first, last in zip(layers, runs.first, runs.last, strict=True):
        before = _before_each(values)
        for side in (0, 1):
            total += before[last[side]] - before[first[side]]
    return total
