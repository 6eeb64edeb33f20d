"""The shape of `queries:` in a spec: what is measured, where, by which cells, what is published."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, model_validator

from pipelines.spec_errors import Problem, not_one_of, refuse, show, wrong
from pipelines.spec_fields import Number, QueryName, Section, Text, as_list
from privacy.disjoint import Kind
from privacy.measure import KINDS, Measure
from transforms.errors import SpecError
from transforms.expression import Condition
from transforms.queries import Scalar

MOST_CELLS = 10_000_000

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
        bounds = {"min": self.min, "max": self.max}
        refuse(
            ((key,), f"missing; a {given[0]} is clamped to bounds that you choose, add {key}: 10")
            for key, bound in bounds.items()
            if bound is None
        )
        try:
            self.measure(fine=False)
        except ValueError as error:
            refuse([(("min",), str(error))])
        return self

    @property
    def column(self) -> str | None:
        """The column that is measured; None for counts."""
        return self.sum or self.mean or self.second_moment or self.variance

    def measure(self, *, fine: bool) -> Measure:
        """The measure, on the fine grid or the plain one."""
        for kind in KINDS[1:]:
            if getattr(self, kind) is not None and self.min is not None and self.max is not None:
                return Measure(kind=kind, low=self.min, high=self.max, fine=fine)
        return Measure(kind="count", fine=fine)


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


def _kind(value: Any) -> Any:
    word = next(iter(value), "") if isinstance(value, dict) else value
    if word == "sliding":
        raise wrong("sliding is not available in this version; publish change and add up windows")
    return value


def _once(kinds: list[Kind]) -> list[Kind]:
    refuse(
        ((place,), f"{kind} is listed twice; list it once") for place, kind in enumerate(kinds) if kind in kinds[:place]
    )
    return kinds


Cells = Annotated[list[Annotated[Scalar, PlainValidator(_cell)]], Field(min_length=1)]
Kinds = Annotated[
    list[Annotated[Kind, BeforeValidator(_kind)]],
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
    publish: Kinds = Field(default_factory=lambda: list[Kind](["change"]))
    weight: Annotated[Number, Field(gt=0)] = 1.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems: list[Problem] = []
        for key, cells in self.by.items():
            if key.lower() in PUBLISHED:
                message = "the published files have a column of this name; rename it in the source"
                problems.append((("by", key), message))
            problems.extend((("by", key, *place), text) for place, text in _listed_twice(cells))
        total = math.prod(len(cells) for cells in self.by.values())
        if total >= MOST_CELLS:
            message = f"{total:,} cells; list fewer, below {MOST_CELLS:,} in all"
            problems.append((("by",), message))
        refuse(problems)
        return self


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
