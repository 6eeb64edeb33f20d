"""Trees (HDCR): every complete node of a c-ary forest on the windows gets noise, and a number is a sum of few nodes.

The forest is that of privacy.strategies.tree.covers; a forest of one layer is the disjoint strategy (DCR), in which
each window is a node. A number is estimated from nodes in one of these ways:

    none           its minimal cover
    subtraction    the fewest nodes that add up to it when nodes may also be subtracted
    bottom_up      its cover, each node estimated from itself and all nodes below it
    least_squares  its best linear estimate from all nodes

Levels are prefixes of the windows plus the initial level, `initial_level`, which is a node outside the tree, released
once. Without it row 0 of the leaves is ignored, and a level is the net change since the start.

Exactness. With x the exact leaf sums, C x the exact nodes and z their noise, all integers, let W0 be the signed nodes
of the cover or walk: W0 C = A. A refinement F acts on the relations N z alone (privacy.strategies.tree.refine): N C =
0. The published number

    A x + W0 z + F(N z) = W0 (C x + z) + F(N (C x + z))

is a function of the noisy nodes C x + z. A x + W0 z and N z are computed exactly in integers, and F may round in any
way, since it gets the same integers on either side. Two databases whose noisy nodes are equal give equal bytes: no
guarantee depends on floating point.

When noise is sampled (privacy.strategies.tree.layering, privacy.strategies.tree.step). `none` and `bottom_up` use only
complete nodes. They sample a node's noise when its first window closes, so that the open sum is carried as a noisy sum,
which stays private until the node is published. `subtraction` uses nodes that are not complete yet: the node that
contains the current window, and its later siblings; noise is sampled for a whole family when its parent begins.
`least_squares` uses every node of a root's tree from its first window on, and samples noise for all of them then. A
node has one row of noise, in the carry until the node is published and no later number uses it, so a number never
changes. Numbers that use nodes before these are complete are sound for Gaussian noise if the changelog does not depend
on published numbers, and for Laplace noise always (docs/proofs/strategies.md#adaptive). Nodes that neither a published
node nor a published number has used yet reveal nothing, whenever their noise was sampled.

The horizon. `subtraction` and `least_squares` cut the last node of each layer at the horizon: it ends with the release,
and is published then. The other two rarely gain from such nodes: a node that is not complete within the horizon is
never published and gets no noise.
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
from privacy.strategies.base import Carry, Floats, Moved, Nodes, SampleNodes, StepResult, within
from privacy.strategies.choice import Refine
from privacy.strategies.tree import apart as tree_apart
from privacy.strategies.tree import norms as tree_norms
from privacy.strategies.tree.layering import Ahead, Layering, joined
from privacy.strategies.tree.refine import (
    least_squares_variances,
    least_squares_weights,
    node_variances,
)
from privacy.strategies.tree.step import INITIAL, carried, paths, ranges, step
from privacy.touched import Touched, at_most

AHEAD: dict[Refine, Ahead] = {
    "none": "node",
    "bottom_up": "node",
    "subtraction": "family",
    "least_squares": "root",
}

KEPT = 1 << 11
"""Largest number of windows whose variances are cached."""

LARGEST_NODE = 1 << 40
LARGEST_ADVANCE = 1 << 20
"""Most windows under one node of a tree without a horizon; the second if nodes have noise before they begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Strategy of trees (privacy.strategies.base.Strategy); `windows` is the horizon, None if the release has no end.

    >>> week = Tree(branching=7, height=2, refine="none", windows=28, initial_level=True)
    >>> week.variances(Series(kind="level"), 15).tolist()
    [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 3.0, 4.0]
    """

    kind: ClassVar[str] = "tree"
    bounded: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    of_levels: ClassVar[bool] = False
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

    @property
    def summed_levels(self) -> bool:
        return self.refine == "none"

    def node_name(self, series: Sequence[Series]) -> str:
        return ""

    @property
    def layers(self) -> int:
        """Number of layers with nodes; a layer above them would be empty, or repeat a node that spans all windows."""
        if self.windows is None:
            return self.height
        longest = self.branching * self.windows - 1 if self.cut else self.windows
        return 1 + sum(self._span(layer) <= longest for layer in range(1, self.height))

    @property
    def cut(self) -> bool:
        """Whether the last node of each layer has noise even if the horizon cuts it."""
        return self.refine in ("subtraction", "least_squares")

    @property
    def in_advance(self) -> bool:
        return self.cut and self.layers > 1

    @property
    def whole(self) -> int | None:
        """Number of windows of a forest of `layers` layers without cut nodes whose sensitivity bounds this one's.

        A cut node has the value of the whole node if nothing changes after the horizon.
        """
        if self.windows is None or not self.cut:
            return self.windows
        span = self._span(self.layers - 1)
        return -(-self.windows // span) * span

    def settled(self) -> "Tree":
        return self

    @property
    def layering(self) -> Layering:
        """Positions of the nodes."""
        return Layering(
            branching=self.branching, layers=self.layers, windows=self.windows, cut=self.cut, ahead=AHEAD[self.refine]
        )

    def nodes(self, windows: int, *, since: int | None = None) -> Nodes:
        found = self.layering.completed(since or 0, within(windows, self.windows))
        order = np.lexsort((found.layer, found.end))
        ordered = Nodes(layer=found.layer[order], begin=found.begin[order], end=found.end[order])
        return joined([INITIAL, ordered]) if self.initial_level and since is None else ordered

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: SampleNodes) -> StepResult:
        """Return the nodes and numbers that end with these leaves, and the next carry (`Strategy.step`)."""
        within(len(leaves) - 1 if carry is None else carry.windows + len(leaves), self.windows)
        return step(
            self.layering, self.refine, carry, leaves, with_initial=self.initial_level, series=series, sample=sample
        )

    def carried(self, windows: int, series: Sequence[Series]) -> int:
        return carried(self.layering, self.refine, within(windows, self.windows), series)

    def stretch(self, nodes: Nodes) -> None:
        return None

    def variances(self, series: Series, windows: int, *, since: int = 0) -> Floats:
        """Return the variance of each number in units of one node's, float64 [numbers] (`Strategy.variances`)."""
        made = _variances if windows - since <= KEPT else _variances.__wrapped__
        return made(self, series, windows, since)

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        """Return the sizes of the non-zero weights of nodes in each number, float64 [nodes] (`Strategy.weights`)."""
        initial_level = np.ones(int(self.initial_level and series.kind == "level"))
        begins, ends = ranges(series, since, within(windows, self.windows))
        if self.refine == "least_squares":
            nodes = self.layering.sizes(self.layering.roots_end(windows))
            rows: list[Floats] = []
            for few in np.split(np.arange(len(ends)), range(256, len(ends), 256)):  # all at once may exceed memory
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
        """Return a bound for the nodes that one entry moves (`Strategy.norm`)."""
        return tree_norms.norm(self._forest, states, leaves)

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        """Return `norm` for entries of 1, 2, ..., `changes` changes at any leaves."""
        forest = self._forest
        return [tree_norms.norm(forest, states, at_most(j), most=changes) for j in range(1, changes + 1)]

    def moved(self, leaves: Touched, *, cells: int, each: int, largest: Sequence[int], shared: bool) -> Moved:
        """Return the bounds of a unit's effect on nodes that norms do not state (`Strategy.moved`)."""
        nodes = tree_norms.nodes(self._forest, leaves)
        places = leaves.appearing * self.layers if shared else nodes
        return Moved(nodes=nodes, coordinates=places * min(cells, 2 * each) * len(largest))

    def norm_apart(self, states: States, boundaries: int) -> Fraction:
        return tree_apart.norm(self._forest, states, boundaries, cut=self.windows if self.cut else None)

    def moved_apart(self, boundaries: int, *, cells: int, each: int, largest: Sequence[int], entries: int) -> Moved:
        """Return the bounds of the effect of a unit that differs at boundaries (`Strategy.moved_apart`)."""
        nodes = tree_apart.nodes(self._forest, boundaries)
        return Moved(nodes=nodes, coordinates=nodes * min(cells, 2 * entries * each) * len(largest))

    def so_far(self, leaves: int) -> "Tree | None":
        if leaves == 0 and not self.initial_level:
            return None
        # The initial level is published before the first leaf closes; one leaf more only adds nodes. Numbers may use
        # all nodes of a tree that has begun.
        windows = within(max(leaves, 1), self.windows)
        return replace(self, windows=self.layering.roots_end(windows) if self.cut else windows)

    @property
    def _forest(self) -> tree_norms.Forest:
        return tree_norms.Forest(
            branching=self.branching, layers=self.layers, windows=self.whole, initial=self.initial_level
        )

    @property
    def _disjoint(self) -> bool:
        return self.height == 1 and self.refine == "none"

    def _span(self, layer: int) -> int:
        return int(self.branching**layer)


@lru_cache(maxsize=512)
def _variances(tree: Tree, series: Series, windows: int, since: int) -> Floats:
    """Return the variances of one tree; cached, since a plan requests them for each mechanism, bound and query."""
    initial_level = float(tree.initial_level and series.kind == "level")
    begins, ends = ranges(series, since, within(windows, tree.windows))
    if tree.refine == "least_squares":
        variances: Floats = initial_level + least_squares_variances(
            begins, ends, branching=tree.branching, height=tree.layers, windows=tree.layering.roots_end(windows)
        )
        variances.setflags(write=False)
        return variances
    sizes = paths(tree.layering, begins, ends, windows).sizes
    each = node_variances(tree.branching, tree.layers) if tree.refine == "bottom_up" else np.ones(tree.layers)
    variances = np.full(len(ends), initial_level)
    for variance, count in zip(each, sizes, strict=True):  # one by one, so that rounding is equal in any run
        variances += variance * count
    variances.setflags(write=False)  # the cache shares this array
    return variances
