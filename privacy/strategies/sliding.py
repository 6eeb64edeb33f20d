"""Sliding windows by themselves (SWCR): every one is a node of its own, and a published number is one node.

Sliding windows overlap, so a change lies in up to ceil(width / every) nodes: against a tree on the windows this pays
off where few overlap.
A node's noise is sampled when its first window closes: what is carried of each open node is a noisy sum, `noisy`, that
is published once it is complete, and nothing exact.
Source: M. Pan, "Differentially-private Continual Releases against Dynamic Databases", section 4.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least
from privacy.series import Ints, Series
from privacy.states import States
from privacy.strategies.base import Carry, Floats, Moved, Nodes, Sample, Stepped, before_each
from privacy.strategies.candidates import Asked, Candidate, Offer, Piece, leaf_of
from privacy.strategies.touched import Touched, at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliding:
    """A strategy, see privacy.strategies.base.Strategy; `width` and `every` in windows, as in privacy.series.Series.

    It publishes that series alone. `windows` is the horizon, None if there is none.

    >>> weekly = Sliding(width=7, every=7, windows=None)
    >>> weekly.nodes(30).end.tolist()
    [7, 14, 21, 28]
    """

    kind: ClassVar[str] = "sliding"
    sparse: ClassVar[bool] = True
    certifiable: ClassVar[bool] = False
    width: int
    every: int
    windows: int | None

    def __post_init__(self) -> None:
        at_least("width", self.width, 1)
        at_least("every", self.every, 1)
        if self.windows is not None:
            at_least("windows", self.windows, self.width)

    @property
    def name(self) -> str:
        return "sliding"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"width": self.width, "every": self.every}

    @property
    def variant(self) -> str:
        return ""

    def node_name(self, series: Sequence[Series]) -> str:
        (own,) = series
        return f"sliding-{own.width}-{own.every}"

    @property
    def in_advance(self) -> bool:
        return False

    def settled(self) -> "Sliding":
        return self

    @property
    def bounded(self) -> bool:
        return True

    def nodes(self, windows: int, *, since: int | None = None) -> Nodes:
        return self._nodes(self._complete(since or 0), self._complete(windows))

    def step(self, carry: Carry | None, leaves: Ints, *, series: Sequence[Series], sample: Sample) -> Stepped:
        for one in series:
            self._own(one)
        if carry is None:  # row 0 is the initial level, which no sliding window holds
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
        self._own(series)
        return np.ones(self._complete(windows) - self._complete(since))

    def weights(self, series: Series, windows: int, *, since: int = 0) -> list[Floats]:
        self._own(series)
        return [np.broadcast_to(1.0, 1)] * (self._complete(windows) - self._complete(since))

    @property
    def disjoint_layers(self) -> tuple[int, ...]:
        return ()

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        met = self._touched(leaves)
        appearing = self._overlap * (states.radius + (met.appearing - 1) * states.diameter)
        present = self._overlap * met.present * states.diameter
        return min(max(appearing, present), self._nodes_met(leaves) * states.diameter)

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        return [self.norm(states, at_most(j)) for j in range(1, changes + 1)]

    def moved(self, leaves: Touched, *, cells: int, each: int, largest: Sequence[int], shared: bool) -> Moved:
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
        nodes = 2 * -(-boundaries // self.every)
        if self.windows is not None:
            nodes = min(nodes, self._complete(self.windows))
        return Moved(nodes=nodes, coordinates=nodes * min(cells, 2 * entries * each) * len(largest))

    def so_far(self, leaves: int) -> "Sliding | None":
        return replace(self, windows=leaves) if leaves >= self.width else None

    @property
    def _overlap(self) -> int:
        """In so many sliding windows a leaf lies at most: G(a, a) of pairing."""
        return -(-self.width // self.every)

    def _touched(self, leaves: Touched) -> Touched:
        return leaves.nodes(1, math.inf if self.windows is None else self.windows)

    def _nodes_met(self, leaves: Touched) -> int:
        """How many sliding windows one entry can move."""
        moved = self._touched(leaves).appearing
        met = -(-(self.width + moved - 1) // self.every) if leaves.in_a_row else self._overlap * moved
        return met if self.windows is None else min(met, self._complete(self.windows))

    def _ends(self, boundaries: int) -> tuple[int, int]:
        """How many sliding windows have one end, and how many both, among so many boundaries in a row, at worst.

        Among these are at most ceil(boundaries / every) beginnings and as many ends, and a node with both costs no less
        than two with one.
        """
        ends = 2 * -(-boundaries // self.every)
        both = max(0, -(-(boundaries - self.width) // self.every))
        return ends - 2 * both, both

    def _own(self, series: Series) -> None:
        if (series.kind, series.width, series.every) != ("sliding", self.width, self.every):
            raise ValueError(f"sliding windows of {self.width} every {self.every} hold no other numbers than their own")

    def _complete(self, windows: int) -> int:
        """How many nodes end by a boundary."""
        if self.windows is not None and windows > self.windows:
            raise ValueError(f"{windows} windows are more than the horizon of {self.windows}")
        return max(0, (windows - self.width) // self.every + 1)

    def _begun(self, windows: int) -> int:
        """How many nodes that will be complete begin before a boundary."""
        begun = -(-windows // self.every)
        return begun if self.windows is None else min(begun, self._complete(self.windows))

    def _nodes(self, first: int, last: int) -> Nodes:
        begin = np.arange(first, last, dtype=np.int64) * self.every
        return Nodes(layer=np.zeros_like(begin), begin=begin, end=begin + self.width)


def _candidates(asked: Asked) -> Iterator[Candidate]:
    """Every sliding series by itself."""
    pieces = []
    for series in asked.series:
        if series.kind == "sliding":
            leaf = leaf_of([series])
            sliding = Sliding(width=series.width // leaf, every=series.every // leaf, windows=asked.horizon(leaf))
            pieces.append(Piece(leaf=leaf, strategy=sliding, series=(series,)))
    if pieces:
        yield tuple(pieces)


SLIDING = Offer(sparse=Sliding.sparse, candidates=_candidates, lacking="no sliding numbers are published")
