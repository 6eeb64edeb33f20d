"""Direct sliding windows (SWCR): every sliding window is a node of its own, and a published number is one node.

Sliding windows overlap, so a change lies in up to ceil(width / every) nodes: against a tree on the windows this pays
off where few overlap.
Source: M. Pan, "Differentially-private Continual Releases against Dynamic Databases", section 4.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privacy.checks import at_least
from privacy.exact import Json, Members
from privacy.series import Ints, Series, totals
from privacy.states import States
from privacy.strategies.base import Floats, Moved, Nodes
from privacy.strategies.candidates import Asked, Candidate, Offer, Piece, leaf_of
from privacy.strategies.touched import Touched, at_most


@dataclass(frozen=True, slots=True)
class Carry:
    """How many windows have closed, and the leaves of the last of them, at most width - 1: [rows, cells]."""

    windows: int
    last: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """A strategy, see privacy.strategies.base.Strategy; `width` and `every` in windows, as in privacy.series.Series.

    It publishes that series alone. `windows` is the horizon, None if there is none.

    >>> weekly = Direct(width=7, every=7, windows=None)
    >>> weekly.draws(30)
    4
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

    def to_json(self, *, exactly: bool) -> Json:
        return {"width": self.width, "every": self.every, "windows": self.windows}

    @staticmethod
    def from_json(told: Members) -> "Direct":
        return Direct(width=told.count("width"), every=told.count("every"), windows=told.optional_count("windows"))

    def draws(self, windows: int) -> int:
        return len(self._ends(windows))

    def nodes(self, windows: int) -> Nodes:
        ends = self._ends(windows)
        return Nodes(layer=np.zeros_like(ends), begin=ends - self.width, end=ends)

    def advance(self, carry: Carry | None, leaves: Ints) -> tuple[Ints, Carry]:
        if carry is None:  # row 0 is the opening, which no sliding window holds
            carry, leaves = Carry(0, leaves[:0]), leaves[1:]
        windows = carry.windows + len(leaves)
        rows = np.concatenate([carry.last, leaves])
        since = np.concatenate([np.zeros_like(rows, shape=(1, rows.shape[1])), np.cumsum(rows, axis=0)])
        ends = self._ends(windows)
        ends = ends[ends > carry.windows] - (carry.windows - len(carry.last))
        return since[ends] - since[ends - self.width], Carry(windows, rows[max(0, len(rows) - self.width + 1) :].copy())

    def publish(self, series: Series, leaves: Ints, noise: Ints) -> Floats:
        self._own(series)
        exact = totals(series, leaves)
        if len(noise) != len(exact):
            raise ValueError(f"{len(noise)} rows of noise for {len(exact)} draws")
        told: Floats = (exact + noise).astype(np.float64)
        return told

    def variances(self, series: Series, windows: int) -> Floats:
        self._own(series)
        return np.ones(self.draws(windows))

    def weights(self, series: Series, windows: int) -> list[Floats]:
        self._own(series)
        return [np.broadcast_to(1.0, 1)] * self.draws(windows)

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

    def moved(self, leaves: Touched, *, cells: int, largest: Sequence[int], shared: bool) -> Moved:
        nodes = self._nodes_met(leaves)
        places = leaves.appearing * self._overlap if shared else nodes
        return Moved(nodes=nodes, coordinates=places * min(cells, 2) * len(largest))

    def so_far(self, leaves: int) -> "Direct | None":
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
        return met if self.windows is None else min(met, len(self._ends(self.windows)))

    def _own(self, series: Series) -> None:
        if (series.kind, series.width, series.every) != ("sliding", self.width, self.every):
            raise ValueError(f"sliding windows of {self.width} every {self.every} hold no other numbers than their own")

    def _ends(self, windows: int) -> Ints:
        if self.windows is not None and windows > self.windows:
            raise ValueError(f"{windows} windows are more than the horizon of {self.windows}")
        return Series(kind="sliding", width=self.width, every=self.every).ends(windows)


def _candidates(asked: Asked) -> Iterator[Candidate]:
    """Every sliding series by itself."""
    pieces = []
    for series in asked.series:
        if series.kind == "sliding":
            leaf = leaf_of([series])
            direct = Direct(width=series.width // leaf, every=series.every // leaf, windows=asked.horizon(leaf))
            pieces.append(Piece(leaf=leaf, strategy=direct, series=(series,)))
    if pieces:
        yield tuple(pieces)


SLIDING = Offer(sparse=Direct.sparse, candidates=_candidates, lacking="no sliding numbers are published")
