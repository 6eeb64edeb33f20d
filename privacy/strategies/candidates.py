"""What the planner passes to each kind of strategy, and the candidates that it gets for numbers of net changes."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from privacy.noise.kinds import Accounting, Mechanism
from privacy.problems import RuleError
from privacy.series import Series
from privacy.strategies.base import Strategy
from privacy.strategies.choice import Choice

LARGEST_STATE = 2**37
"""Largest state for a strategy that is not sparse, in steps: 64 bits have room for 16 million of them in one node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A strategy and the series that it publishes.

    Attributes:
        leaf: number of windows that form one leaf of the strategy.
        series: published series, in windows.
    """

    leaf: int
    strategy: Strategy
    series: tuple[Series, ...]


Candidate = tuple[Piece, ...]
"""One way to publish numbers. Series that no piece publishes are published window by window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Needs for which candidates are made.

    Attributes:
        series: series of net changes, in windows.
        windows: the horizon, or None if the release has no end.
        nominal: number of windows over which errors are averaged.
        initial_level: whether the initial level is published.
        choice: settings of the spec.
        boundaries: if a span of time is protected, the number of consecutive window ends at which neighbours can
            differ; None if everything that a unit ever does is protected.
        counted: whether the changes of an entry are bounded, in total or in each block of time.
        power: power of a ratio of widths that a part costs (privacy.noise.kinds).
        size: largest value that a state has in one column, in grid steps.
        squared_norm: squared L2 norm of one entry's nodes, for a strategy and the number of windows in its leaf.
        error: root mean square error of a candidate, for comparison with others.
    """

    series: tuple[Series, ...]
    windows: int | None
    nominal: int
    initial_level: bool
    choice: Choice
    boundaries: int | None
    counted: bool
    power: int
    size: int
    squared_norm: Callable[[Strategy, int], float]
    error: Callable[[Candidate], float]

    @property
    def leaf(self) -> int:
        """Number of windows in one leaf, if one strategy publishes all series."""
        return leaf_of(self.series)

    @property
    def in_span(self) -> bool:
        """Whether a span of time is protected."""
        return self.boundaries is not None

    def horizon(self, leaf: int) -> int | None:
        """Return the horizon in leaves of `leaf` windows; None if the release has no end."""
        return None if self.windows is None else self.windows // leaf


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryNumbers:
    """Properties of a query's published numbers on which rules depend.

    Attributes:
        name: name of the query.
        levels: whether it publishes levels and nothing else.
        slides: whether it publishes sliding sums.
    """

    name: str
    levels: bool
    slides: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyTerms:
    """Terms on which the rules of strategies depend.

    Attributes:
        published: the numbers of each query to which the choice applies.
        windows: the horizon; None if the release has no end.
        everything: whether everything that a unit ever does is protected.
        renewed: whether changes of a unit are bounded in blocks of time.
        mechanism: kind of noise; `auto` for any.
        delta: whether the budget has a delta.
        accounting: how parts are composed; None for the default.
    """

    published: tuple[QueryNumbers, ...]
    windows: int | None
    everything: bool
    renewed: bool
    mechanism: Mechanism | Literal["auto"]
    delta: bool
    accounting: Accounting | None


def no_problems(choice: Choice, terms: StrategyTerms) -> Iterator[RuleError]:
    """Yield no rule, for strategies that support any query."""
    yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """How candidates of one strategy name are made; privacy.strategies.table lists all offers.

    Attributes:
        sparse: `Strategy.sparse` of its strategies.
        candidates: yields the allowed candidates that are worth comparing.
        problems: yields the rules that a choice of this name breaks.
        finds_keys: whether keys may be found with its strategies (privacy.discovery).
    """

    sparse: bool
    candidates: Callable[[Needs], Iterator[Candidate]]
    problems: Callable[[Choice, StrategyTerms], Iterator[RuleError]] = no_problems
    finds_keys: bool = False


def leaf_of(series: Sequence[Series]) -> int:
    """Return the number of windows in one leaf: above 1 only if every series is a sliding sum."""
    if any(s.kind != "sliding" for s in series):
        return 1
    return math.gcd(*(length for s in series for length in (s.width, s.every)))


def whole(asked: Needs, strategy: Strategy) -> Candidate:
    """Return the candidate that publishes all series from one strategy."""
    return (Piece(leaf=asked.leaf, strategy=strategy, series=asked.series),)
