"""What is settled of a query: what it makes of a state, and what is published of that."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from privacy.adaptive.choice import AdaptiveChoice
from privacy.cells.choice import CellChoice
from privacy.cells.space import Axis, Space
from privacy.counted import counted
from privacy.measure import Measure
from privacy.planning.demand import Demand
from privacy.planning.plan import Plan
from privacy.series import Family, Series
from privacy.strategies.choice import Choice
from transforms.aggregation.expression import Condition
from transforms.aggregation.ordered_key import OrderedKey
from transforms.common.windows import Windows

Scalar = str | int | bool
Box = tuple[tuple[int, int], ...]
"""Cells of each ordered key of a query: the first, and one past the last."""

OTHER = "other"
"""The word in a list of cells that catches every value that is not listed, null among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A linear query over entries' states.

    Attributes:
        name: the query's name in what is published.
        measure: what is added up; `measure.fine` says on which grid. A plan may ask for another one (`planned`).
        column: the state's column that is measured; None for counts.
        invalid: what null and NaN count as: nothing, or one of the bounds.
        where: which states satisfy the query; None for all.
        by: public keys with their listed values, or with ranges; a query has one cell for each combination.
        publish: which numbers, without repeats; widths and steps in windows.
        weight, expected, strategy, over, apart, adaptive: as in the plan's `Demand`.
        quantiles: of the values of the one ordered key, for each number that is published.
        ranges: cells whose sums are published, for each number and each combination of listed values.
        consistent: whether levels, entered and left are made non-negative, with sums that agree.
    """

    name: str
    measure: Measure
    column: str | None = None
    invalid: Literal["drop", "min", "max"] = "drop"
    where: Condition | None = None
    by: tuple[tuple[str, tuple[Scalar, ...] | OrderedKey], ...] = ()
    publish: tuple[Series, ...] = (Series(kind="change"),)
    weight: float = 1.0
    expected: float | None = None
    quantiles: tuple[float, ...] = ()
    ranges: tuple[Box, ...] = ()
    consistent: bool = False
    strategy: Choice = field(default_factory=Choice)
    over: CellChoice = field(default_factory=CellChoice)
    apart: tuple[int, ...] = ()
    adaptive: AdaptiveChoice | None = None

    @property
    def demand(self) -> Demand:
        """What the query asks of a plan, which knows nothing of columns."""
        return Demand(
            name=self.name,
            measure=self.measure,
            cells=self.cells,
            axes=self.axes if self.ordered else (),
            series=self.publish,
            weight=self.weight,
            choice=self.strategy,
            over=self.over,
            apart=self.apart,
            expected=self.expected,
            adaptive=self.adaptive,
        )

    @property
    def families(self) -> tuple[Family, ...]:
        """The families of leaf sums that the numbers are made from."""
        return self.demand.families

    @property
    def cells(self) -> int:
        """How many cells the query has; at least one.

        >>> Query(name="beds", measure=Measure(kind="count"), by=(("ward", ("a", "b", "other")), ("ok", (True,)))).cells
        3
        """
        return math.prod(len(values) for _, values in self.by)

    @property
    def axes(self) -> Space:
        """How the cells are arranged: an axis for each key, the last one fastest."""
        return tuple(Axis(cells=len(key), ordered=isinstance(key, OrderedKey)) for _, key in self.by)

    @property
    def ordered(self) -> tuple[tuple[str, OrderedKey], ...]:
        """The keys whose cells have an order."""
        return tuple((name, key) for name, key in self.by if isinstance(key, OrderedKey))

    @property
    def together(self) -> bool:
        """Whether all cells of a window are worked on at once."""
        at_once = self.consistent or self.adaptive is not None or bool(self.quantiles or self.ranges)
        return at_once or self.over.asks or bool(self.apart)

    @property
    def columns(self) -> frozenset[str]:
        """State columns that the query reads."""
        read = {key for key, _ in self.by} | ({self.column} if self.column is not None else set())
        return frozenset(read | (self.where.columns if self.where is not None else set()))


def numbers_and_times(queries: Iterable[Query]) -> tuple[frozenset[str], frozenset[str]]:
    """State columns that must be numbers, since they are measured or have ranges, and those that must be times."""
    queries = tuple(queries)
    ordered = [(name, key.moments) for query in queries for name, key in query.ordered]
    measured = {query.column for query in queries if query.column is not None}
    numbers = measured | {name for name, moments in ordered if not moments}
    return frozenset(numbers), frozenset(name for name, moments in ordered if moments)


def planned(queries: Iterable[Query], plan: Plan) -> tuple[Query, ...]:
    """The queries of a plan, with their measures on the grids that its noise is scaled to."""
    pairs = zip(queries, plan.demands, strict=True)
    return tuple(replace(query, measure=demand.measure) for query, demand in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The windows of a run: window i = [start + (i - 1) * every, start + i * every), i = 1 .. windows; or a calendar's.

    Index 0 stands for everything before `start`: the initial level. Times are microseconds since the epoch, UTC.

    Attributes:
        start, every, ends: as of `bounds` (transforms.common.windows).
        windows: how many have closed in all.
        released: how many of them earlier runs have released.

    >>> timeline = Timeline(start=100, every=10, windows=6, released=4)
    >>> timeline.closed, timeline.until
    (140, 160)
    """

    start: int
    every: int
    windows: int
    released: int = 0
    ends: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        known = self.bounds.ends
        if known is not None and len(known) < self.windows:
            raise ValueError(f"ends: of {counted(len(known), 'window')}, not of windows={self.windows}")
        if not 0 <= self.released <= self.windows:
            raise ValueError(f"released={self.released} must lie between 0 and windows={self.windows}")

    @property
    def bounds(self) -> Windows:
        """Where its windows begin and end."""
        return Windows(start=self.start, every=self.every, ends=self.ends)

    @property
    def until(self) -> int:
        return self.bounds.end(self.windows)

    @property
    def closed(self) -> int:
        """Where this run begins: what happened before was due in an earlier one."""
        return self.bounds.end(self.released)
