"""The shape of `queries:` in a spec: what is measured, where, by which cells, what is published."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, PlainValidator, Tag, model_validator

from pipelines.spec.cells import CellsSection
from pipelines.spec.durations import duration_text
from pipelines.spec.errors import Problem, refuse, wrong
from pipelines.spec.fields import (
    LIST_OR_SETTINGS,
    LISTED,
    SETTINGS,
    WORD,
    Length,
    Number,
    QueryName,
    Section,
    Text,
    as_list,
)
from pipelines.spec.ordered import MOST_ORDERED, Edge, OrderedSection
from pipelines.spec.strategies import Strategy
from pipelines.spec.words import not_one_of, show
from privacy.counted import counted
from privacy.measure import KINDS, Measure
from transforms.aggregation.expression import Condition
from transforms.aggregation.ordered_key import OrderedKey
from transforms.aggregation.queries import Box, Scalar
from transforms.common.errors import SpecError

MOST_CELLS = 10_000_000

MOST_OF_QUANTILES = 10_000
"""Quantiles take time with the square of the cells along their key."""

MOST_RANGES = 1_000
"""Of a query: each has a row for each window and each combination of listed values."""

PUBLISHED = (
    *("query", "kind", "window_start", "window_end", "value", "stddev", "ci_low", "ci_high"),
    *("exact", "bounded", "layer", "node_start", "node_end", "noisy_value", "scale", "mechanism"),
)
"""Columns of what is published; a query's own columns stand beside them."""

_MEASURES = "count, or one of sum, mean, second_moment, variance with its column, min and max"


class MeasureSection(Section):
    """`count` (no key at all), or one statistic of a column between bounds."""

    sum: Text | None = None
    mean: Text | None = None
    second_moment: Text | None = None
    variance: Text | None = None
    min: Number | None = None
    max: Number | None = None
    invalid: Literal["drop", "min", "max"] = "drop"

    @model_validator(mode="before")
    @classmethod
    def _word(cls, raw: Any) -> Any:
        if raw == "count":
            return {}
        if isinstance(raw, str):
            if raw in KINDS:
                raise wrong(f"{raw} needs a column and bounds: {{{raw}: column, min: 0, max: 10}}")
            raise wrong(not_one_of(raw, KINDS))
        if not isinstance(raw, dict) or not raw:
            raise wrong(f"expected {_MEASURES}, not {show(raw)}")
        return raw

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_fields_set:
            return self
        given = [kind for kind in KINDS[1:] if getattr(self, kind) is not None]
        if len(given) != 1:
            refuse([((), f"expected {_MEASURES}, not {' and '.join(given) or 'none of them'}")])
        low = 0 if self.max is None or self.max > 0 else self.max - 10
        high = 10 if self.min is None or self.min < 10 else self.min + 10
        refuse(
            ((key,), f"missing; a {given[0]} is clamped to bounds that you choose, add {key}: {example:g}")
            for key, bound, example in (("min", self.min, low), ("max", self.max, high))
            if bound is None
        )
        try:
            self.measure()
        except ValueError as error:
            refuse([(("min",), str(error))])
        return self

    @property
    def column(self) -> str | None:
        """The column that is measured; None for counts."""
        return self.sum or self.mean or self.second_moment or self.variance

    def measure(self) -> Measure:
        """The measure, on the plain grid."""
        for kind in KINDS[1:]:
            if getattr(self, kind) is not None and self.min is not None and self.max is not None:
                return Measure(kind=kind, low=self.min, high=self.max)
        return Measure(kind="count")


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


class SlidingSection(Section):
    """Sliding windows of one width; without `every` one begins with each window of the schedule."""

    sliding: Length
    every: Length | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        spans = {"sliding": self.sliding, "every": self.every}
        refuse(((key,), "expected a duration above zero, such as 7d") for key, span in spans.items() if span == 0)
        return self


class QuantilesSection(Section):
    """Quantiles of the values of an ordered key, of each of the numbers that are listed beside them."""

    quantiles: Annotated[list[Annotated[Number, Field(gt=0, lt=1)]], BeforeValidator(as_list), Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        again = [place for place, one in enumerate(self.quantiles) if one in self.quantiles[:place]]
        refuse((("quantiles", place), f"{self.quantiles[place]} is listed twice; list it once") for place in again)
        return self


class RangeSection(Section):
    """Neighbouring cells of one key; without `from` all from the first one on, without `to` all up to the last one."""

    from_: Edge | None = Field(default=None, alias="from")
    to: Edge | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.from_ is None and self.to is None:
            refuse([((), "holds all cells; give from or to, or leave the key out")])
        return self


class RangesSection(Section):
    """Sums over ranges of ordered keys, of each of the numbers that are listed beside them."""

    ranges: Annotated[
        list[Annotated[dict[Text, RangeSection], Field(min_length=1)]],
        BeforeValidator(as_list),
        Field(min_length=1, max_length=MOST_RANGES),
    ]


PlainKind = Literal["change", "level", "entered", "left"]
_PLAIN: tuple[PlainKind, ...] = get_args(PlainKind)


def _number(value: Any) -> Any:
    if value == "sliding":
        raise wrong("sliding needs a width; write {sliding: 7d}")
    if isinstance(value, str) and value not in _PLAIN:
        raise wrong(not_one_of(value, (*_PLAIN, "sliding")))
    if not isinstance(value, str | dict):
        raise wrong(f"expected one of {', '.join(_PLAIN)} or {{sliding: 7d}}, not {show(value)}")
    return value


def _kind_of_number(value: Any) -> str:
    if isinstance(value, str):
        return "word"
    given = value if isinstance(value, dict) else type(value).model_fields
    return next((kind for kind in ("quantiles", "ranges") if kind in given), "settings")


Published = PlainKind | SlidingSection | QuantilesSection | RangesSection


def _once(numbers: list[Published]) -> list[Published]:
    """Windows of one width may not be listed with two steps: where both fall, a window would have two numbers."""
    beside: list[int] = []
    for kind, name in ((QuantilesSection, "quantiles"), (RangesSection, "ranges")):
        found = [place for place, number in enumerate(numbers) if isinstance(number, kind)]
        refuse(((place,), f"a second list of {name}; write one") for place in found[1:])
        beside += found
    if len(beside) == len(numbers):
        what = "{quantiles: [0.5]}" if isinstance(numbers[0], QuantilesSection) else "{ranges: [{age: {from: 18}}]}"
        refuse([((0,), f"of no numbers; list these beside it, as in [level, {what}]")])
    listed = [n.sliding if isinstance(n, SlidingSection) else n for n in numbers]
    refuse(
        ((place,), f"{_shown(one)} is listed twice; list it once")
        for place, one in enumerate(listed)
        if not isinstance(one, QuantilesSection | RangesSection) and one in listed[:place]
    )
    return numbers


def _shown(listed: str | int) -> str:
    return listed if isinstance(listed, str) else f"sliding: {duration_text(listed)}"


def _key(value: Any) -> Any:
    if not isinstance(value, list | dict):
        raise wrong(f"expected a list, or {{from: 0, to: 100, step: 5}}, not {show(value)}")
    return value


Listed = list[Annotated[Scalar, PlainValidator(_cell)]]
Cells = Annotated[
    Annotated[Listed, Field(min_length=1), LISTED] | Annotated[OrderedSection, SETTINGS],
    LIST_OR_SETTINGS,
    BeforeValidator(_key),
]
Numbers = Annotated[
    list[
        Annotated[
            Annotated[PlainKind, WORD]
            | Annotated[SlidingSection, SETTINGS]
            | Annotated[QuantilesSection, Tag("quantiles")]
            | Annotated[RangesSection, Tag("ranges")],
            Discriminator(_kind_of_number),
            BeforeValidator(_number),
        ]
    ],
    BeforeValidator(as_list),
    Field(min_length=1),
    AfterValidator(_once),
]


class QuerySection(Section):
    """One query."""

    name: QueryName
    measure: MeasureSection
    where: Annotated[Text, AfterValidator(_condition)] | None = None
    by: dict[Text, Cells] = Field(default_factory=dict)
    publish: Numbers = Field(default_factory=lambda: list[Published](["change"]))
    weight: Annotated[Number, Field(gt=0)] = 1.0
    expected: Annotated[Number, Field(gt=0)] | None = None
    consistent: bool = False
    strategy: Strategy | None = None
    over: CellsSection | None = Field(default=None, alias="cells")

    @property
    def cells(self) -> int:
        """Number of cells: the product over the keys, 1 without any."""
        return math.prod(len(key_of(cells)) for cells in self.by.values())

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Which quantiles are published."""
        return next((tuple(n.quantiles) for n in self.publish if isinstance(n, QuantilesSection)), ())

    @property
    def ranges(self) -> tuple[Box, ...]:
        """Over which cells sums are published: of each ordered key, in the order of their names, the first and one past
        the last."""
        ordered = self._ordered()
        return tuple(
            tuple(
                (0, len(key.key())) if (asked := one.get(name)) is None else key.between(asked.from_, asked.to)
                for name, key in ordered.items()
            )
            for one in self._ranges()
        )

    def _ranges(self) -> list[dict[str, RangeSection]]:
        return next((number.ranges for number in self.publish if isinstance(number, RangesSection)), [])

    def _ordered(self) -> dict[str, OrderedSection]:
        return {name: cells for name in sorted(self.by) if isinstance(cells := self.by[name], OrderedSection)}

    @property
    def slides(self) -> bool:
        """Whether sliding windows are published."""
        return any(isinstance(number, SlidingSection) for number in self.publish)

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems: list[Problem] = []
        for name, cells in self.by.items():
            if name.lower() in PUBLISHED:
                message = "the published files have a column of this name; rename it in the source"
                problems.append((("by", name), message))
            if isinstance(cells, list):
                problems.extend((("by", name, *place), text) for place, text in _listed_twice(cells))
        ordered = [name for name, cells in self.by.items() if isinstance(cells, OrderedSection)]
        if len(ordered) > MOST_ORDERED:
            message = f"{len(ordered)} keys with an order; at most {MOST_ORDERED}, list cells of the others"
            problems.append((("by", ordered[-1]), message))
        if self.cells >= MOST_CELLS:
            fewer = "take larger steps" if ordered else "list fewer"
            problems.append((("by",), f"{counted(self.cells, 'cell')}; {fewer}, below {MOST_CELLS:,} in all"))
        if self.consistent:
            problems.extend((("consistent",), text) for text in self._inconsistent())
        if self.quantiles:
            problems.extend((("publish",), text) for text in self._no_quantiles())
        problems.extend((("publish", *place), text) for place, text in self._no_ranges())
        if self.over is not None:
            problems.extend((("cells",), text) for text in self._not_over_cells(ordered=bool(ordered)))
            if self.over.strategy == "quadtree" and len(ordered) == 1:
                problems.append((("cells", "strategy"), "a quadtree is over two keys with an order; use tree for one"))
        refuse(problems)
        return self

    def _no_quantiles(self) -> list[str]:
        """Why there are no quantiles."""
        ordered = [cells.key() for cells in self.by.values() if isinstance(cells, OrderedSection)]
        problems = []
        if len(ordered) != 1 or ordered[0].moments:
            problems.append("quantiles are along one key with ranges of numbers, as {from: 0, to: 100, step: 5}")
        elif len(ordered[0]) > MOST_OF_QUANTILES:
            problems.append(f"quantiles are along {MOST_OF_QUANTILES:,} cells at most; take larger steps")
        if self.measure.column is not None:
            problems.append("quantiles are of counts; write measure: count")
        if self.consistent:
            problems.append("quantiles are made from counts as they are; remove them, or consistent")
        return problems

    def _no_ranges(self) -> Iterator[Problem]:
        """Why there are no ranges, or not these."""
        place = next((place for place, number in enumerate(self.publish) if isinstance(number, RangesSection)), None)
        if place is None:
            return
        ordered = self._ordered()
        known: list[list[tuple[str, tuple[int, int]]]] = []
        if not ordered:
            yield (place,), "ranges are of keys whose cells have an order, as {from: 0, to: 100, step: 5} under by"
            return
        if self.consistent:
            yield (place,), "ranges are sums of cells as they are; remove them, or consistent"
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

    def _not_over_cells(self, *, ordered: bool) -> list[str]:
        """Why there is no strategy over cells."""
        problems = []
        if not ordered:
            problems.append("for keys whose cells have an order; give one under by: as {from: 0, to: 100, step: 5}")
        if self.over is not None and self.over.for_ == "listed" and not self._ranges():
            problems.append("for: listed is for ranges that are published; add {ranges: ...} to publish, or use ranges")
        return problems

    def _inconsistent(self) -> list[str]:
        """Why the numbers cannot be made consistent."""
        problems = []
        if self.measure.column is not None and self.measure.sum is None:
            problems.append("for counts and sums only; remove it")
        elif self.measure.min is not None and self.measure.min < 0:
            problems.append("a sum of values below 0 may be negative; use min: 0, or remove it")
        if not {"level", "entered", "left"}.intersection(n for n in self.publish if isinstance(n, str)):
            problems.append("changes may be negative; publish level, entered or left, or remove it")
        return problems


def key_of(cells: list[Scalar] | OrderedSection) -> tuple[Scalar, ...] | OrderedKey:
    """A key's cells: those that are listed, or by a formula."""
    return cells.key() if isinstance(cells, OrderedSection) else tuple(cells)


def _listed_twice(cells: list[Scalar]) -> list[Problem]:
    """Cells are compared as text: unless all are whole numbers, that is how they meet the data."""
    first: dict[str, int] = {}
    problems: list[Problem] = []
    for place, cell in enumerate(cells):
        text = str(cell).lower() if isinstance(cell, bool) else str(cell)
        if text in first:
            problems.append(((place,), f"{show(cell)} is listed already at [{first[text]}]"))
        first.setdefault(text, place)
    return problems
