"""Sliding windows as nodes (SWCR): each sliding window is a node, and each published number is one node.

Sliding windows overlap, so a change lies in up to ceil(width / every) nodes. Compared with a tree on the windows this
is better if few windows overlap.
A node's noise is sampled when its first window closes. The carry of an open node is its noisy sum, `noisy`, which is
published once the node is complete; the carry holds no exact sum.
Source: M. Pan, "Differentially-private Continual Releases against Dynamic Databases", section 4.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least
from privacy.problems import RuleError
from privacy.series import Ints, Series
from privacy.states import States
from privacy.strategies.base import Carry, Floats, Moved, Nodes, SampleNodes, StepResult, before_each, within
from privacy.strategies.candidates import Candidate, Needs, Offer, Piece, StrategyTerms, leaf_of
from privacy.strategies.choice import Choice
from privacy.touched import Touched, at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliding:
    """Strategy of sliding windows (privacy.strategies.base.Strategy); `width` and `every` as in privacy.series.Series.

    It publishes that series alone. `windows` is the horizon, None if the release has no end.

    >>> weekly = Sliding(width=7, every=7, windows=None)
    >>> weekly.nodes(30).end.tolist()
    [7, 14, 21, 28]
    """

    kind: ClassVar[str] = "sliding"
    name: ClassVar[str] = "sliding"
    variant: ClassVar[str] = ""
    in_advance: ClassVar[bool] = False
    bounded: ClassVar[bool] = True
    disjoint_layers: ClassVar[tuple[int, ...]] = ()
    sparse: ClassVar[bool] = True
    of_levels: ClassVar[bool] = False
    summed_levels: ClassVar[bool] = False
    certifiable: ClassVar[bool] = False
    width: int
    every: int
    windows: int | None

    def __post_init__(self) -> None:
        at_least("width", self.width, 1)
        at_least("every", self.every, 1)
        at_least("windows", self.windows, self.width)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"width": self.width, "every": self.every}

    def node_name(self, series: Sequence[Series]) -> str:
        (own,) = series
        return f"sliding-{own.width}-{own.every}"

    def settled(self) -> "Sliding":
        return self

    def nodes(self, windows: int, *, since: int | None = None) -> Nodes:
        return self._nodes(self._complete(since or 0), self._complete(windows))

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: SampleNodes) -> StepResult:
        """Return the nodes and numbers that end with these leaves, and the next carry (`Strategy.step`)."""
        for one in series:
            self._own(one)
        if carry is None:  # row 0 is the initial level, which is in no sliding window
            start, leaves, noisy = 0, leaves[1:], leaves[:0]
        else:
            start, noisy = carry.windows, carry.integers["noisy"]
        stop, since = start + len(leaves), before_each(leaves)
        first, last = self._complete(start), self._complete(stop)
        fresh = sample(self._nodes(self._begun(start), self._begun(stop)))
        noisy = np.concatenate([noisy, fresh])
        there = self._nodes(first, self._begun(stop))
        noisy += since[np.minimum(there.end, stop) - start] - since[np.maximum(there.begin - start, 0)]
        nodes = noisy[: last - first]
        numbers = tuple(nodes.astype(np.float64) for _ in series)
        return nodes, numbers, Carry(windows=stop, integers={"noisy": noisy[last - first :].copy()}, floats={})

    def carried(self, windows: int, series: Sequence[Series]) -> int:
        return self._begun(windows) - self._complete(windows)

    def stretch(self, nodes: Nodes) -> None:
        return None

    def variances(self, series: Series, windows: int, *, since: int = 0) -> Floats:
        """Return the variance of each number in units of one node's, float64 [numbers] (`Strategy.variances`)."""
        self._own(series)
        return np.ones(self._complete(windows) - self._complete(since))

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        """Return the sizes of the non-zero weights of nodes in each number, float64 [nodes] (`Strategy.weights`)."""
        self._own(series)
        return [np.broadcast_to(1.0, 1)] * (self._complete(windows) - self._complete(since))

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        """Return a bound for the nodes that one entry moves (`Strategy.norm`)."""
        met = self._touched(leaves)
        appearing = self._overlap * (states.radius + (met.appearing - 1) * states.diameter)
        present = self._overlap * met.present * states.diameter
        return min(max(appearing, present), self._nodes_met(leaves) * states.diameter)

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        """Return `norm` for entries of 1, 2, ..., `changes` changes at any leaves."""
        return [self.norm(states, at_most(j)) for j in range(1, changes + 1)]

    def moved(self, leaves: Touched, *, cells: int, each: int, largest: Sequence[int], shared: bool) -> Moved:
        """Return the bounds of a unit's effect on nodes that norms do not state (`Strategy.moved`)."""
        nodes = self._nodes_met(leaves)
        places = leaves.appearing * self._overlap if shared else nodes
        return Moved(nodes=nodes, coordinates=places * min(cells, 2 * each) * len(largest))

    def norm_apart(self, states: States, boundaries: int) -> Fraction:
        one, both = self._ends(boundaries)
        bound = one * states.radius + both * states.diameter
        if self.windows is None:
            return bound
        return min(bound, self._complete(self.windows) * states.diameter)

    def moved_apart(self, boundaries: int, *, cells: int, each: int, largest: Sequence[int], entries: int) -> Moved:
        """Return the bounds of the effect of a unit that differs at boundaries (`Strategy.moved_apart`)."""
        nodes = 2 * -(-boundaries // self.every)
        if self.windows is not None:
            nodes = min(nodes, self._complete(self.windows))
        return Moved(nodes=nodes, coordinates=nodes * min(cells, 2 * entries * each) * len(largest))

    def so_far(self, leaves: int) -> "Sliding | None":
        return replace(self, windows=leaves) if leaves >= self.width else None

    @property
    def _overlap(self) -> int:
        """Largest number of sliding windows that one leaf lies in: G(a, a) of pairing."""
        return -(-self.width // self.every)

    def _touched(self, leaves: Touched) -> Touched:
        return leaves.nodes(1, math.inf if self.windows is None else self.windows)

    def _nodes_met(self, leaves: Touched) -> int:
        """Return the number of sliding windows that one entry can move."""
        moved = self._touched(leaves).appearing
        met = -(-(self.width + moved - 1) // self.every) if leaves.in_a_row else self._overlap * moved
        return met if self.windows is None else min(met, self._complete(self.windows))

    def _ends(self, boundaries: int) -> tuple[int, int]:
        """Return how many sliding windows have one end, and how many both, among consecutive boundaries, at worst.

        At most ceil(boundaries / every) windows begin among these boundaries and as many end, and a node with both ends
        among them costs no less than two nodes with one end.
        """
        ends = 2 * -(-boundaries // self.every)
        both = max(0, -(-(boundaries - self.width) // self.every))
        return ends - 2 * both, both

    def _own(self, series: Series) -> None:
        if (series.kind, series.width, series.every) != ("sliding", self.width, self.every):
            raise ValueError(f"sliding windows of {self.width} every {self.every} hold no other numbers than their own")

    def _complete(self, windows: int) -> int:
        """Return the number of nodes that end by a boundary."""
        return max(0, (within(windows, self.windows) - self.width) // self.every + 1)

    def _begun(self, windows: int) -> int:
        """Return the number of nodes that begin before a boundary and will be complete within the horizon."""
        begun = -(-windows // self.every)
        return begun if self.windows is None else min(begun, self._complete(self.windows))

    def _nodes(self, first: int, last: int) -> Nodes:
        begin = np.arange(first, last, dtype=np.int64) * self.every
        return Nodes(layer=np.zeros_like(begin), begin=begin, end=begin + self.width)


def _candidates(asked: Needs) -> Iterator[Candidate]:
    """Yield a strategy for each sliding series."""
    pieces = []
    for series in asked.series:
        if series.kind == "sliding":
            leaf = leaf_of([series])
            sliding = Sliding(width=series.width // leaf, every=series.every // leaf, windows=asked.horizon(leaf))
            pieces.append(Piece(leaf=leaf, strategy=sliding, series=(series,)))
    if pieces:
        yield tuple(pieces)


def _problems(choice: Choice, terms: StrategyTerms) -> Iterator[RuleError]:
    if not any(query.slides for query in terms.published):
        yield RuleError("no sliding numbers are published; add {sliding: 7d} to publish, or use auto")


SLIDING = Offer(sparse=Sliding.sparse, candidates=_candidates, problems=_problems)
