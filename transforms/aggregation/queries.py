"""Queries over states and the windows of a run: the part of a spec that the transforms need."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from privacy.adaptive.base import Policy
from privacy.cells.choice import CellChoice
from privacy.cells.space import Axis, Space
from privacy.counted import counted
from privacy.measure import Measure
from privacy.planning.demand import Demand
from privacy.planning.plan import Plan
from privacy.series import Family, Ints, Series
from privacy.strategies.choice import Choice
from transforms.aggregation.discovered_key import DiscoveredKey
from transforms.aggregation.expression import Condition
from transforms.aggregation.hierarchy_key import Hierarchy
from transforms.aggregation.listed_key import ListedKey, Scalar
from transforms.aggregation.ordered_key import OrderedKey
from transforms.common.windows import Windows

Box = tuple[tuple[int, int], ...]
"""Cells of each ordered key of a query: (first, one past the last)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Linear query over the states of entries.

    Attributes:
        name: Name of the query in published files.
        measure: What is added up; `measure.fine` selects its grid. A plan may require another one (`planned`).
        column: Column of the state that is measured; None for counts.
        invalid: How null and NaN count: as nothing, or as one of the bounds.
        where: Condition on states; None for all states.
        by: Public keys with their listed values or ranges; a query has one cell for each combination. The values of
            one key may be found privately.
        publish: Series to publish, without repeats; widths and steps in windows.
        weight, expected, strategy, over, apart, adaptive: As in the plan's `Demand`.
        quantiles: Quantiles of the one ordered key, for each published number.
        ranges: Cells whose sums are published, for each number and each combination of listed values.
        marginals: Keys that each published marginal keeps, in the order of `by`; it adds up over the other keys.
        hierarchies: Keys with a hierarchy of their listed values; inner nodes are published, and `over` gives noise.
        consistent: Whether levels, entered and left are made non-negative and consistent with each other.
    """

    name: str
    measure: Measure
    column: str | None = None
    invalid: Literal["drop", "min", "max"] = "drop"
    where: Condition | None = None
    by: tuple[tuple[str, tuple[Scalar, ...] | OrderedKey | DiscoveredKey], ...] = ()
    publish: tuple[Series, ...] = (Series(kind="change"),)
    weight: float = 1.0
    expected: float | None = None
    quantiles: tuple[float, ...] = ()
    ranges: tuple[Box, ...] = ()
    marginals: tuple[tuple[str, ...], ...] = ()
    hierarchies: tuple[tuple[str, Hierarchy], ...] = ()
    consistent: bool = False
    strategy: Choice = field(default_factory=Choice)
    over: CellChoice = field(default_factory=CellChoice)
    apart: tuple[int, ...] = ()
    adaptive: Policy | None = None

    @property
    def demand(self) -> Demand:
        """Demand of the query on a plan; a plan knows no columns."""
        return Demand(
            name=self.name,
            measure=self.measure,
            cells=self.cells,
            axes=self.axes if self._arranged else (),
            series=self.publish,
            weight=self.weight,
            choice=self.strategy,
            over=self.over,
            discover=self.discovers,
            apart=self.apart,
            expected=self.expected,
            adaptive=self.adaptive,
        )

    @property
    def _arranged(self) -> bool:
        """Whether the arrangement of the cells matters; noise of keys that are found does not depend on it."""
        return not self.discovers and bool(self.ordered or self.over.marginals or self.hierarchies)

    @property
    def families(self) -> tuple[Family, ...]:
        """Families of leaf sums from which the numbers are made."""
        return self.demand.families

    @property
    def chunked(self) -> tuple[Family, ...]:
        """Families that are released separately; if keys are found, all families are released with the levels."""
        return ("net",) if self.discovers else self.families

    @property
    def cells(self) -> int:
        """Number of cells of the query, at least one.

        >>> Query(name="beds", measure=Measure(kind="count"), by=(("ward", ("a", "b", "other")), ("ok", (True,)))).cells
        3
        """
        return math.prod(len(values) for _, values in self.by)

    @property
    def axes(self) -> Space:
        """Arrangement of the cells: an axis for each key; the last one varies fastest."""
        ordered, children = dict(self.ordered), {name: found.children for name, found in self.hierarchies}
        return tuple(
            Axis(cells=len(key), ordered=name in ordered, children=children.get(name, ())) for name, key in self.by
        )

    @property
    def ordered(self) -> tuple[tuple[str, OrderedKey], ...]:
        """Keys whose cells have an order."""
        return tuple((name, key) for name, key in self.by if isinstance(key, OrderedKey))

    @property
    def listed(self) -> tuple[tuple[str, tuple[Scalar, ...]], ...]:
        """Keys whose cells are listed."""
        return tuple((name, key) for name, key in self.by if isinstance(key, tuple))

    @property
    def known(self) -> tuple[tuple[str, ListedKey | OrderedKey], ...]:
        """Keys whose cells are listed, or ranges."""
        known = dict(self.ordered) | {name: ListedKey(cells) for name, cells in self.listed}
        return tuple((name, known[name]) for name, _ in self.by if name in known)

    @property
    def found_by(self) -> str | None:
        """The key whose values are found privately; None if all cells are known."""
        return next((name for name, _ in self.by if name not in dict(self.known)), None)

    @property
    def discovers(self) -> bool:
        """Whether the keys of the query are found privately."""
        return self.found_by is not None

    @property
    def each(self) -> int:
        """Number of cells of each key that is found: one for each combination of the values of the other keys."""
        return math.prod(len(values) for _, values in self.known)

    def with_listed(self, keys: Iterable[str]) -> "Query":
        """Return a query whose keys are found as one that lists these keys."""
        listed = tuple(keys)
        return replace(self, by=tuple((name, listed if name == self.found_by else key) for name, key in self.by))

    def places(self, keys: int) -> Ints:
        """Return the place of each cell of each key among the cells of `with_listed`, int64 [keys, each].

        >>> by = (("age", ("old", "young")), ("town", DiscoveredKey()))
        >>> Query(name="towns", measure=Measure(kind="count"), by=by).places(3).tolist()
        [[0, 3], [1, 4], [2, 5]]
        """
        at = [name for name, _ in self.by].index(self.found_by or "")
        shape = [keys if place == at else len(key) for place, (_, key) in enumerate(self.by)]
        return np.moveaxis(np.arange(math.prod(shape)).reshape(shape), at, 0).reshape(keys, self.each)

    def of_codes(self, codes: int) -> "Query":
        """Return the query with a number of cells, one for each code of a text in one run of one shard."""
        return replace(self, by=((self.found_by or "", DiscoveredKey(codes)),))

    @property
    def together(self) -> bool:
        """Whether all cells of a window are processed at once."""
        sums = bool(self.quantiles or self.ranges or self.marginals or self.hierarchies)
        at_once = self.consistent or self.adaptive is not None or sums
        return at_once or self.over.asks or bool(self.apart) or self.discovers

    @property
    def columns(self) -> frozenset[str]:
        """Columns of the state that the query reads."""
        read = {key for key, _ in self.by} | ({self.column} if self.column is not None else set())
        return frozenset(read | (self.where.columns if self.where is not None else set()))


def numbers_and_times(queries: Iterable[Query]) -> tuple[frozenset[str], frozenset[str]]:
    """Return columns of the state that must be numbers (measured, or with ranges), and those that must be times."""
    queries = tuple(queries)
    ordered = [(name, key.moments) for query in queries for name, key in query.ordered]
    measured = {query.column for query in queries if query.column is not None}
    numbers = measured | {name for name, moments in ordered if not moments}
    return frozenset(numbers), frozenset(name for name, moments in ordered if moments)


def planned(queries: Iterable[Query], plan: Plan) -> tuple[Query, ...]:
    """Return the queries of a plan, with measures on the grids for which its noise is calibrated."""
    pairs = zip(queries, plan.demands, strict=True)
    return tuple(replace(query, measure=demand.measure) for query, demand in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Windows of a run: window i = [start + (i - 1) * every, start + i * every) for i = 1 .. windows, or a calendar's.

    Index 0 denotes all time before `start`: the initial level. Times are microseconds since the epoch, UTC.

    Attributes:
        start, every, ends: As in `bounds` (transforms.common.windows).
        windows: Number of windows that have closed in all.
        released: Number of windows that earlier runs have released.

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
            raise ValueError(f"ends: has {counted(len(known), 'window')}, but windows={self.windows}")
        if not 0 <= self.released <= self.windows:
            raise ValueError(f"released={self.released} must lie between 0 and windows={self.windows}")

    @property
    def bounds(self) -> Windows:
        """Beginnings and ends of its windows."""
        return Windows(start=self.start, every=self.every, ends=self.ends)

    @property
    def until(self) -> int:
        """End of the last window."""
        return self.bounds.end(self.windows)

    @property
    def closed(self) -> int:
        """Start of this run: everything before was due in an earlier one."""
        return self.bounds.end(self.released)
