"""What the planner asks of a kind of strategy, and what it gets: candidates for the numbers of net changes."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from privacy.series import Series
from privacy.strategies.base import Strategy
from privacy.strategies.choice import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A strategy and what is published from it.

    Attributes:
        leaf: windows that are merged into one leaf of the strategy.
        series: in windows.
    """

    leaf: int
    strategy: Strategy
    series: tuple[Series, ...]


Candidate = tuple[Piece, ...]
"""One way to publish numbers. What its pieces leave out is published window by window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What candidates are made for.

    Attributes:
        series: of net changes, in windows.
        windows: the horizon, or None if the release has no end.
        nominal: over how many windows errors are averaged.
        initial_level: whether it is published.
        choice: what the spec says.
        boundaries: at how many ends of windows in a row neighbours can differ, where a span of time is protected; None
            where all that a unit ever does is.
        counted: whether the changes of an entry are bounded, in all or in each block of time.
        power: of a ratio, that a part costs (privacy.noise.kinds).
        squared_norm: of one entry's nodes in L2, under a strategy of leaves of so many windows.
        error: the root mean square error of a candidate, to compare it with others.
    """

    series: tuple[Series, ...]
    windows: int | None
    nominal: int
    initial_level: bool
    choice: Choice
    boundaries: int | None
    counted: bool
    power: int
    squared_norm: Callable[[Strategy, int], float]
    error: Callable[[Candidate], float]

    @property
    def leaf(self) -> int:
        """Windows in one leaf, if all series are made from one strategy."""
        return leaf_of(self.series)

    @property
    def in_span(self) -> bool:
        """Whether a span of time is protected."""
        return self.boundaries is not None

    def horizon(self, leaf: int) -> int | None:
        """In leaves."""
        return None if self.windows is None else self.windows // leaf


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """How candidates of one name come about; privacy.strategies.table has all of them.

    Attributes:
        sparse: as its strategies are.
        candidates: those that a choice allows and that are worth a look.
        lacking: what is missing where there are none; names the `form` that was asked for.
    """

    sparse: bool
    candidates: Callable[[Asked], Iterator[Candidate]]
    lacking: str


def leaf_of(series: Sequence[Series]) -> int:
    """Windows in one leaf: all that sliding windows ever need, if nothing else is published."""
    if any(s.kind != "sliding" for s in series):
        return 1
    return math.gcd(*(length for s in series for length in (s.width, s.every)))


def whole(asked: Asked, strategy: Strategy) -> Candidate:
    """All series from one strategy."""
    return (Piece(leaf=asked.leaf, strategy=strategy, series=asked.series),)
