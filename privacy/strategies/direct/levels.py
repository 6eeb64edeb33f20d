"""The common part of strategies whose nodes are levels: each level is one node, and a unit that stays moves all."""

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from privacy.series import BEFORE_ALL, Series
from privacy.states import States
from privacy.strategies.base import Moved, Nodes, within
from privacy.touched import Touched


class OfLevels:
    """Part of strategies of direct levels (privacy.strategies.base.Strategy).

    Attributes:
        initial: number of levels before the end of the first window: 1 if the level at the start is a node.
        windows: the horizon, None if the release has no end.
    """

    __slots__ = ()

    name: ClassVar[str] = "direct"
    in_advance: ClassVar[bool] = False
    bounded: ClassVar[bool] = True
    disjoint_layers: ClassVar[tuple[int, ...]] = ()
    sparse: ClassVar[bool] = True
    of_levels: ClassVar[bool] = True
    summed_levels: ClassVar[bool] = False
    certifiable: ClassVar[bool] = False
    initial: ClassVar[int]
    windows: int | None

    @abstractmethod
    def most(self, boundaries: int, states: States) -> Fraction:
        """Return the norm of a unit that is apart at consecutive boundaries: L1, or squared L2, as `states` are.

        Args:
            boundaries: number of these boundaries.
            states: sizes of an entry's states, in normalised units.
        """

    def node_name(self, series: Sequence[Series]) -> str:
        return ""

    def settled(self) -> Self:
        return self

    def nodes(self, windows: int, *, since: int | None = None) -> Nodes:
        first = 1 - self.initial if since is None else since + 1
        end = np.arange(first, within(windows, self.windows) + 1, dtype=np.int64)
        return Nodes(layer=np.zeros_like(end), begin=np.full_like(end, BEFORE_ALL), end=end)

    def norm(self, states: States, leaves: Touched, *, closely: bool = False) -> Fraction:
        """Return the norm of an entry that stays: all levels, for any changes (`Strategy.norm`)."""
        return self.most(self._all, states)

    def norms(self, states: States, changes: int, *, closely: bool = False) -> list[Fraction]:
        """Return `norm` for entries of 1, 2, ..., `changes` changes."""
        return [self.most(self._all, states)] * changes

    def moved(self, leaves: Touched, *, cells: int, each: int, largest: Sequence[int], shared: bool) -> Moved:
        """Return the bounds of a unit's effect on nodes that norms do not state (`Strategy.moved`)."""
        visited = min(cells, leaves.appearing * each) if shared else each
        return Moved(nodes=self._all, coordinates=self._all * visited * len(largest))

    def norm_apart(self, states: States, boundaries: int) -> Fraction:
        return self.most(boundaries, states)

    def moved_apart(self, boundaries: int, *, cells: int, each: int, largest: Sequence[int], entries: int) -> Moved:
        """Return the bounds of the effect of a unit that differs at boundaries (`Strategy.moved_apart`)."""
        nodes = self.apart(boundaries)
        return Moved(nodes=nodes, coordinates=nodes * min(cells, entries * each) * len(largest))

    def apart(self, boundaries: int) -> int:
        """Return the number of levels at consecutive boundaries, at most all."""
        return boundaries if self.windows is None else min(boundaries, self._all)

    @property
    def _all(self) -> int:
        if self.windows is None:
            raise ValueError("direct: without an end, a unit that stays moves all levels; protect a span of time")
        return self.windows + self.initial
