"""Trees (HDCR): every complete node of a c-ary forest on the windows gets noise, and a number is a sum of few nodes.

The forest is that of privacy.strategies.tree_covers; one layer of it is the disjoint strategy (DCR), where each window
stands alone. What a number is made of:

    none           its minimal cover
    subtraction    the fewest nodes that add up to it when nodes may also be subtracted
    bottom_up      its cover, each node estimated from itself and all below it
    least_squares  its best linear estimate from all nodes

Levels are prefixes of the windows and the level at the start, `initial_level`, which is a node outside the tree,
released once. Without it row 0 of the leaves is ignored, and a level is what has changed since the start.

Exactness. With x the exact leaf sums, C x the exact nodes and z their noise, all integers, let W0 be the signed nodes
of the cover or walk: W0 C = A. A refinement F acts on the relations N z alone (privacy.strategies.tree_refine): N C =
0. What is published,

    A x + W0 z + F(N z) = W0 (C x + z) + F(N (C x + z))

is a function of the noisy nodes C x + z. A x + W0 z and N z are computed exactly in integers, and F may round as it
likes, since it is given the same integers on either side. Two databases whose noisy nodes are equal give equal bytes:
no guarantee rests on floating point.

When noise is sampled (privacy.strategies.tree_layering, privacy.strategies.tree_step). `none` and `bottom_up` use nodes
that are complete. They sample a node's noise when its first window closes, so that the open sum is carried as a noisy
one; nobody sees it before the node is published. `subtraction` uses nodes that are not complete yet: the one that a
window is in, and its siblings to come; noise is sampled for a whole family when its parent begins. `least_squares` uses
every node of a root's tree from its first window on, and samples for all of them then. A node has one row of noise, in
the carry until the node is published and no later number uses it, so a number never changes. What numbers use before
nodes are complete is sound for Gaussian noise where the changelog does not depend on what was published, and for
Laplace noise always (docs/proofs/strategies.md#adaptive); of nodes that neither a node nor a number has used yet
nothing is known, whenever their noise was sampled.

The horizon. `subtraction` and `least_squares` cut the last node of each layer there: it ends with the release, and is
published then. The other two have little use for it: a node that is not complete within the horizon is never published
and gets no noise.
Source: M. Pan, "Differentially-private Continual Releases against Dynamic Databases", section 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least
from privacy.series import Ints, Series
from privacy.states import States
from privacy.strategies import tree_apart, tree_norms
from privacy.strategies.base import Carry, Floats, Moved, Nodes, Sample, Stepped
from privacy.strategies.choice import Refine
from privacy.strategies.touched import Touched, at_most
from privacy.strategies.tree_layering import Ahead, Layering, joined
from privacy.strategies.tree_refine import (
    least_squares_variances,
    least_squares_weights,
    node_variances,
)
from privacy.strategies.tree_step import INITIAL, carried, paths, ranges, step

AHEAD: dict[Refine, Ahead] = {
    "none": "node",
    "bottom_up": "node",
    "subtraction": "family",
    "least_squares": "root",
}

KEPT = 1 << 11
"""Variances of up to so many windows are kept in memory."""

LARGEST_NODE = 1 << 40
LARGEST_ADVANCE = 1 << 20
"""Most windows under one node of a tree without a horizon; the second where nodes have noise before they begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A strategy, see privacy.strategies.base.Strategy; `windows` is the horizon, None if there is none.

    >>> week = Tree(branching=7, height=2, refine="none", windows=28, initial_level=True)
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
    initial_level: bool

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

    @property
    def layers(self) -> int:
        """How many layers there are: those above would have no node, or repeat one that spans all windows."""
        if self.windows is None:
            return self.height
        longest = self.branching * self.windows - 1 if self.cut else self.windows
        return 1 + sum(self._span(layer) <= longest for layer in range(1, self.height))

    @property
    def cut(self) -> bool:
        """Whether the last node of each layer has noise even where the horizon cuts it."""
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

    def settled(self) -> "Tree":
        return self

    @property
    def bounded(self) -> bool:
        return True

    @property
    def layering(self) -> Layering:
        """Where the nodes lie."""
        return Layering(
            branching=self.branching, layers=self.layers, windows=self.windows, cut=self.cut, ahead=AHEAD[self.refine]
        )

    def nodes(self, windows: int, *, since: int | None = None) -> Nodes:
        found = self.layering.completed(since or 0, self._within(windows))
        order = np.lexsort((found.layer, found.end))
        ordered = Nodes(layer=found.layer[order], begin=found.begin[order], end=found.end[order])
        return joined([INITIAL, ordered]) if self.initial_level and since is None else ordered

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: Sample) -> Stepped:
        self._within(len(leaves) - 1 if carry is None else carry.windows + len(leaves))
        return step(
            self.layering, self.refine, carry, leaves, with_initial=self.initial_level, series=series, sample=sample
        )

    def carried(self, windows: int, series: Sequence[Series]) -> int:
        return carried(self.layering, self.refine, self._within(windows), series)

    def stretch(self, nodes: Nodes) -> None:
        return None

    def variances(self, series: Series, windows: int, *, since: int = 0) -> Floats:
        made = _variances if windows - since <= KEPT else _variances.__wrapped__
        return made(self, series, windows, since)

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        initial_level = np.ones(int(self.initial_level and series.kind == "level"))
        begins, ends = ranges(series, since, self._within(windows))
        if self.refine == "least_squares":
            nodes = self.layering.sizes(self.layering.roots_end(windows))
            rows: list[Floats] = []
            for few in np.split(np.arange(len(ends)), range(256, len(ends), 256)):  # the whole may be too large
                held = least_squares_weights(begins[few], ends[few], branching=self.branching, nodes=nodes)
                rows.extend(np.concatenate([initial_level, np.abs(row[row != 0])]) for row in held)
            return rows
        sizes = paths(self.layering, begins, ends, windows).sizes.T
        if self.refine != "bottom_up":
            return [np.broadcast_to(1.0, len(initial_level) + size) for size in sizes.sum(axis=1)]  # no memory for each
        # A node of layer i holds the noise of c^(i - l) nodes of layer l, each times v_l and 1 - v of those between.
        own = node_variances(self.branching, self.layers)
        kinds = [(i, below) for i in range(self.layers) for below in range(i + 1)]
        held = np.array([own[below] * np.prod(1 - own[below + 1 : i + 1]) for i, below in kinds])
        count = np.array([self.branching ** (i - below) for i, below in kinds])
        layer = np.array([i for i, _ in kinds])
        return [np.concatenate([initial_level, np.repeat(held, count * size[layer])]) for size in sizes]

    @property
    def disjoint_layers(self) -> tuple[int, ...]:
        return self._forest.leaves

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        return tree_norms.norm(self._forest, states, leaves)

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        forest = self._forest
        return [tree_norms.norm(forest, states, at_most(j), most=changes) for j in range(1, changes + 1)]

    def moved(self, leaves: Touched, *, cells: int, each: int, largest: Sequence[int], shared: bool) -> Moved:
        nodes = tree_norms.nodes(self._forest, leaves)
        places = leaves.appearing * self.layers if shared else nodes
        return Moved(nodes=nodes, coordinates=places * min(cells, 2 * each) * len(largest))

    def norm_apart(self, states: States, boundaries: int) -> Fraction:
        return tree_apart.norm(self._forest, states, boundaries, cut=self.windows if self.cut else None)

    def moved_apart(self, boundaries: int, *, cells: int, each: int, largest: Sequence[int], entries: int) -> Moved:
        nodes = tree_apart.nodes(self._forest, boundaries)
        return Moved(nodes=nodes, coordinates=nodes * min(cells, 2 * entries * each) * len(largest))

    def so_far(self, leaves: int) -> "Tree | None":
        if leaves == 0 and not self.initial_level:
            return None
        # An initial level is published before the first leaf closes; a leaf more only adds nodes. Of a tree that has
        # begun, numbers may hold all nodes.
        windows = self._within(max(leaves, 1))
        return replace(self, windows=self.layering.roots_end(windows) if self.cut else windows)

    @property
    def _forest(self) -> tree_norms.Forest:
        return tree_norms.Forest(
            branching=self.branching, layers=self.layers, windows=self.whole, initial=self.initial_level
        )

    @property
    def _disjoint(self) -> bool:
        return self.height == 1 and self.refine == "none"

    def _within(self, windows: int) -> int:
        if self.windows is not None and windows > self.windows:
            raise ValueError(f"{windows} windows are more than the horizon of {self.windows}")
        return windows

    def _span(self, layer: int) -> int:
        return int(self.branching**layer)


@lru_cache(maxsize=512)
def _variances(tree: Tree, series: Series, windows: int, since: int) -> Floats:
    """Of one tree: a plan asks for the same ones with each mechanism, bound and query."""
    initial_level = float(tree.initial_level and series.kind == "level")
    begins, ends = ranges(series, since, tree._within(windows))
    if tree.refine == "least_squares":
        variances: Floats = initial_level + least_squares_variances(
            begins, ends, branching=tree.branching, height=tree.layers, windows=tree.layering.roots_end(windows)
        )
        variances.setflags(write=False)
        return variances
    sizes = paths(tree.layering, begins, ends, windows).sizes
    each = node_variances(tree.branching, tree.layers) if tree.refine == "bottom_up" else np.ones(tree.layers)
    variances = np.full(len(ends), initial_level)
    for variance, count in zip(each, sizes, strict=True):  # one by one, so that they round alike in any run
        variances += variance * count
    variances.setflags(write=False)  # others are given it too
    return variances
