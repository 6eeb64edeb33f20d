"""The shape of `queries:` in a spec: measures, conditions, cells and published numbers."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, model_validator

from pipelines.spec.cells import CellsSection
from pipelines.spec.discovered import DiscoverSection
from pipelines.spec.errors import Problem, refuse, wrong
from pipelines.spec.fields import (
    DISCOVER,
    HIERARCHY,
    LIST_OR_SETTINGS,
    LISTED,
    SETTINGS,
    FiniteNumber,
    QueryName,
    Section,
    Text,
    of_kind,
)
from pipelines.spec.hierarchies import HierarchySection
from pipelines.spec.measures import MeasureSection
from pipelines.spec.numbers import (
    MadeOfCells,
    MarginalsSection,
    PlainKind,
    PublishedNumber,
    PublishedNumbers,
    QuantilesSection,
    RangeSection,
    RangesSection,
    SlidingSection,
)
from pipelines.spec.ordered import MOST_ORDERED, OrderedSection
from pipelines.spec.strategies import GivenStrategy
from pipelines.spec.words import show
from privacy.cells.choice import CellChoice, Purpose
from privacy.checks import POSITIVE
from privacy.counted import counted
from privacy.problems import RuleError
from transforms.aggregation.discovered_key import DiscoveredKey
from transforms.aggregation.expression import Condition
from transforms.aggregation.hierarchy_key import Hierarchy
from transforms.aggregation.listed_key import Scalar, as_text
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Box
from transforms.common.errors import SpecError
from transforms.release.published_columns import name_problems
from transforms.release.query_rules import (
    all_problems,
    consistency_problems,
    discovery_problems,
    marginal_problems,
    quantile_problems,
    range_problems,
    table_problems,
)

MOST_CELLS = 10_000_000

Wanted = TypeVar("Wanted")


def _condition(text: str) -> str:
    try:
        Condition.parse(text)
    except SpecError as error:
        raise wrong(str(error).removeprefix("where: ")) from None
    return text


def _cell(value: Any) -> Scalar:
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if abs(value) >= 2**63:
            raise wrong("a whole number must fit in 64 bits")
        return value
    if value is None:
        raise wrong("a cell cannot be null; `other` catches null")
    raise wrong(f"expected text, a whole number, true or false, not {show(value)}; put text in quotes")


def _key(value: Any) -> Any:
    if not isinstance(value, list | dict):
        settings = "{from: 0, to: 100, step: 5}, {discover: true} or {tree: {A: [a]}}"
        raise wrong(f"expected a list, {settings}, not {show(value)}")
    return value


ListedCells = list[Annotated[Scalar, PlainValidator(_cell)]]
Cells = Annotated[
    Annotated[ListedCells, Field(min_length=1), LISTED]
    | Annotated[OrderedSection, SETTINGS]
    | Annotated[DiscoverSection, DISCOVER]
    | Annotated[HierarchySection, HIERARCHY],
    LIST_OR_SETTINGS,
    BeforeValidator(_key),
]


class QuerySection(Section):
    """One query of a release."""

    name: QueryName
    measure: MeasureSection
    where: Annotated[Text, AfterValidator(_condition)] | None = None
    by: dict[Text, Cells] = Field(default_factory=dict)
    publish: PublishedNumbers = Field(default_factory=lambda: list[PublishedNumber](["change"]))
    weight: Annotated[FiniteNumber, POSITIVE] = 1.0
    expected: Annotated[FiniteNumber, POSITIVE] | None = None
    consistent: bool = False
    strategy: GivenStrategy | None = None
    over: CellsSection | None = Field(default=None, alias="cells")

    @property
    def cells(self) -> int:
        """Number of cells: the product over the keys, or 1 without keys."""
        return math.prod(len(key_of(cells)) for cells in self.by.values())

    @property
    def columns(self) -> list[str]:
        """The columns of keys, then those that the condition reads."""
        read = [] if self.where is None else sorted(Condition.parse(self.where).columns)
        return [*self.by, *read]

    def published(self, kind: type[Wanted]) -> dict[int, Wanted]:
        """Return the published numbers of one kind, by their places in the list."""
        return of_kind(dict(enumerate(self.publish)), kind)

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The published quantiles."""
        return tuple(one for number in self.published(QuantilesSection).values() for one in number.quantiles)

    @property
    def ranges(self) -> tuple[Box, ...]:
        """Ranges whose sums are published: for each ordered key, by name, the first cell and one past the last."""
        ordered = self.ordered
        return tuple(
            tuple(
                (0, len(key.key())) if (asked := one.get(name)) is None else key.between(asked.from_, asked.to)
                for name, key in ordered.items()
            )
            for one in self._ranges()
        )

    @property
    def marginals(self) -> tuple[tuple[str, ...], ...]:
        """Keys that each published marginal keeps, in the order of the query's keys."""
        return tuple(kept for kept in self._weights() if len(kept) < len(self.by))

    def _weights(self) -> dict[tuple[str, ...], float]:
        """Return the weight of each marginal by the keys that it keeps; of the cells too, if the spec has one."""
        return {
            tuple(name for name in self.keys if name in kept): number.weights.get(at, 1.0)
            for number in self.published(MarginalsSection).values()
            for at, kept in enumerate(number.kept)
        }

    @property
    def keys(self) -> list[str]:
        """Keys in the order of the cells: by name, with marginals those of listed values before ranges and trees."""
        first = of_kind(self.by, list) if self.published(MarginalsSection) else self.by
        return sorted(self.by, key=lambda name: (name not in first, name))

    def over_cells(self) -> CellChoice:
        """Return the settings of the strategy over cells that the spec fixes; it serves published sums over cells.

        Raises:
            RuleError: The cells are for listed ranges, and no ranges are published.
        """
        listed = []
        for box in self.ranges:
            cells = iter(box)
            listed.append(tuple(next(cells) if name in self.ordered else None for name in self.keys))
        if self.over is not None:
            choice = self.over.choice(tuple(listed))
        else:
            workload: Purpose = "listed" if listed else "levels" if self.hierarchies else "cells"
            choice = CellChoice(workload=workload, listed=tuple(listed))
        weights, marginals = self._weights(), self.marginals
        others = tuple(weights[kept] for kept in marginals)
        weighted = any(number.weights for number in self.published(MarginalsSection).values())
        return replace(
            choice,
            marginals=tuple(tuple(map(self.keys.index, kept)) for kept in marginals),
            shares=(weights.get(tuple(self.keys), sum(others)), *others) if weighted else (),
        )

    def _ranges(self) -> list[dict[str, RangeSection]]:
        return [one for number in self.published(RangesSection).values() for one in number.ranges]

    @property
    def ordered(self) -> dict[str, OrderedSection]:
        """Keys whose cells have an order, in the order of their names."""
        return of_kind(dict(sorted(self.by.items())), OrderedSection)

    @property
    def discovers(self) -> bool:
        """Whether keys of the query are found privately."""
        return bool(of_kind(self.by, DiscoverSection))

    @property
    def hierarchies(self) -> tuple[tuple[str, Hierarchy], ...]:
        """Keys with a hierarchy, and its levels."""
        found = of_kind(self.by, HierarchySection)
        return tuple((name, found[name].hierarchy()) for name in self.keys if name in found)

    @property
    def kinds(self) -> list[PlainKind | SlidingSection]:
        """Published kinds of numbers, without numbers that are made from their cells."""
        return [number for number in self.publish if not isinstance(number, MadeOfCells)]

    @property
    def slides(self) -> bool:
        """Whether sliding windows are published."""
        return bool(self.published(SlidingSection))

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems: list[Problem] = []
        for name, listed in of_kind(self.by, list).items():
            problems.extend((("by", name, *place), text) for place, text in _listed_twice(listed))
        ordered = [name for name in self.by if name in self.ordered]
        if len(ordered) > MOST_ORDERED:
            message = f"{len(ordered)} keys with an order; at most {MOST_ORDERED}, list cells of the others"
            problems.append((("by", ordered[-1]), message))
        if self.cells >= MOST_CELLS and not self.discovers:
            fewer = "take larger steps" if ordered else "list fewer"
            problems.append((("by",), f"{counted(self.cells, 'cell')}; {fewer}, below {MOST_CELLS:,} in all"))
        found = [*name_problems(self.by, ()), *self._no_discovery()]
        if self.consistent:
            low = self.measure.min if self.measure.column is not None else None
            kinds = self.published(str).values()
            found += consistency_problems(ratio=self.measure.ratio, low=low, kinds=kinds)
        if self.quantiles:
            keys = [cells.key() for cells in self.ordered.values()]
            found += quantile_problems(keys, valued=self.measure.column is not None, consistent=self.consistent)
        problems.extend((problem.path, problem.message) for problem in found)
        problems.extend((("publish", *place), text) for place, text in self._no_ranges())
        problems.extend(self._no_marginals())
        refuse(problems)
        return self

    def _no_discovery(self) -> Iterator[RuleError]:
        """Yield why keys cannot be found."""
        if keys := list(of_kind(self.by, DiscoverSection)):
            sums = bool(self.quantiles or self._ranges() or self.marginals)
            yield from discovery_problems(keys, sums=sums, hierarchy=bool(self.hierarchies))

    def _no_marginals(self) -> Iterator[Problem]:
        """Yield why marginals, or some of them, cannot be published."""
        for place, number in self.published(MarginalsSection).items():
            above = ("publish", place, "marginals")
            for problem in marginal_problems(number.kept, self.by, number.weights):
                at, *below = problem.path or ("",)
                inner = ("by", *below) if below not in ([], ["weight"]) and at in number.weights else below
                yield (*above, *problem.path[:1], *inner), problem.message
            if self.over is not None and not self.ordered:
                yield ("cells",), "marginals choose the sums that get noise; remove cells, or the marginals"
            for problem in all_problems(of_kind(self.by, list), number.kept):
                yield problem.path, problem.message
        levels = {name: 1 + len(hierarchy.levels) for name, hierarchy in self.hierarchies}
        tables = [math.prod(levels.get(name, 1) for name in kept) for kept in (*self.marginals, self.by)]
        for problem in table_problems(sum(tables)):
            yield problem.path, problem.message

    def _no_ranges(self) -> Iterator[Problem]:
        """Yield why ranges, or some of them, cannot be published."""
        place = next(iter(self.published(RangesSection)), None)
        if place is None:
            return
        ordered = self.ordered
        known: list[list[tuple[str, tuple[int, int]]]] = []
        yield from (((place,), problem.message) for problem in range_problems(ordered, consistent=self.consistent))
        if not ordered:
            return
        for number, one in enumerate(self._ranges()):
            above, right = (place, "ranges", number), True
            for name, asked in one.items():
                if name not in ordered:
                    right = False
                    yield (*above, name), f"not a key with an order; the query has {', '.join(ordered)}"
                elif (problem := ordered[name].not_between(asked.from_, asked.to)) is not None:
                    right = False
                    yield (*above, name, *problem[0]), problem[1]
            if right:
                cells = [(name, ordered[name].between(asked.from_, asked.to)) for name, asked in sorted(one.items())]
                if cells in known:
                    yield above, f"the same cells as ranges[{known.index(cells)}]; list them once"
                known.append(cells)
            else:
                known.append([])


def key_of(
    cells: list[Scalar] | OrderedSection | DiscoverSection | HierarchySection,
) -> tuple[Scalar, ...] | OrderedKey | DiscoveredKey:
    """Return the cells of a key: the listed ones, or those of an ordered key or of one that is found."""
    return tuple(cells) if isinstance(cells, list) else cells.key()


def _listed_twice(cells: list[Scalar]) -> list[Problem]:
    """Find cells that are listed twice. They are compared as text, as data are unless all cells are whole numbers."""
    first: dict[str, int] = {}
    problems: list[Problem] = []
    for place, cell in enumerate(cells):
        text = as_text(cell)
        if text in first:
            problems.append(((place,), f"{show(cell)} is listed already at [{first[text]}]"))
        first.setdefault(text, place)
    return problems
