"""The shape of `publish:` in a query of a spec: which numbers are published."""

from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from pipelines.spec.durations import duration_text
from pipelines.spec.errors import refuse, unknown_key, wrong
from pipelines.spec.fields import (
    LIST_OR_SETTINGS,
    LISTED,
    SETTINGS,
    WORD,
    FiniteNumber,
    Length,
    Section,
    Text,
    as_list,
    of_kind,
)
from pipelines.spec.ordered import Edge
from pipelines.spec.words import not_one_of, show
from privacy.checks import POSITIVE

MOST_RANGES = 1_000
"""Most ranges of a query; each has a row for each window and each combination of listed values."""


MOST_MARGINALS = 100
"""Most marginals of a query; each has rows for each window."""


class SlidingSection(Section):
    """Sliding windows of one width; without `every`, one begins with each window of the schedule."""

    sliding: Length
    every: Length | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        spans = {"sliding": self.sliding, "every": self.every}
        refuse(((key,), "expected a duration above zero, such as 7d") for key, span in spans.items() if span == 0)
        return self


class MadeOfCells(Section):
    """Numbers that are made from the cells of the other numbers in the same list."""

    sliding: ClassVar[None] = None


class QuantilesSection(MadeOfCells):
    """Quantiles of the values of an ordered key, for each of the numbers in the same list."""

    quantiles: Annotated[
        list[Annotated[FiniteNumber, Field(gt=0, lt=1)]], BeforeValidator(as_list), Field(min_length=1)
    ]

    @model_validator(mode="after")
    def _check(self) -> Self:
        again = [place for place, one in enumerate(self.quantiles) if one in self.quantiles[:place]]
        refuse((("quantiles", place), f"{self.quantiles[place]} is listed twice; list it once") for place in again)
        return self


class RangeSection(Section):
    """Adjacent cells of one key; without `from` they begin with the first cell, without `to` they end with the last."""

    from_: Edge | None = Field(default=None, alias="from")
    to: Edge | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.from_ is None and self.to is None:
            refuse([((), "holds all cells; give from or to, or leave the key out")])
        return self


class RangesSection(MadeOfCells):
    """Sums over ranges of ordered keys, for each of the numbers in the same list."""

    ranges: Annotated[
        list[Annotated[dict[Text, RangeSection], Field(min_length=1)]],
        BeforeValidator(as_list),
        Field(min_length=1, max_length=MOST_RANGES),
    ]


class MarginalSection(Section):
    """Sums over the keys that the list leaves out; their weight says how much their error counts for the planner."""

    by: list[Text]
    weight: Annotated[FiniteNumber, POSITIVE] = 1.0


class MarginalsSection(MadeOfCells):
    """Sums over the keys that each list leaves out, for each of the numbers in the same list."""

    marginals: Annotated[
        list[Annotated[Annotated[list[Text], LISTED] | Annotated[MarginalSection, SETTINGS], LIST_OR_SETTINGS]],
        Field(min_length=1, max_length=MOST_MARGINALS),
    ]

    @property
    def kept(self) -> list[list[str]]:
        """Keys that each marginal keeps."""
        return [one if isinstance(one, list) else one.by for one in self.marginals]

    @property
    def weights(self) -> dict[int, float]:
        """Weights by the places of the marginals that have one."""
        return {at: float(one.weight) for at, one in enumerate(self.marginals) if not isinstance(one, list)}


PlainKind = Literal["change", "level", "entered", "left"]
_PLAIN: tuple[PlainKind, ...] = get_args(PlainKind)


def _number(value: Any) -> Any:
    if value == "sliding":
        raise wrong("sliding needs a width; write {sliding: 7d}")
    if isinstance(value, str) and value not in _PLAIN:
        raise wrong(not_one_of(value, (*_PLAIN, "sliding")))
    if not isinstance(value, str | dict):
        raise wrong(f"expected one of {', '.join(_PLAIN)} or {{sliding: 7d}}, not {show(value)}")
    if isinstance(value, dict) and not value.keys() & _SECTIONS and (unknown := [*value.keys() - {"every"}]):
        raise wrong(unknown_key(str(unknown[0]), _SECTIONS), str(unknown[0]))
    return value


def _kind_of_number(value: Any) -> str:
    if isinstance(value, str):
        return "word"
    given = value if isinstance(value, dict) else type(value).model_fields
    return next((kind for kind in MADE_OF_CELLS if kind in given), "settings")


PublishedNumber = PlainKind | SlidingSection | QuantilesSection | RangesSection | MarginalsSection

MADE_OF_CELLS: dict[str, tuple[type[MadeOfCells], str]] = {
    "quantiles": (QuantilesSection, "{quantiles: [0.5]}"),
    "ranges": (RangesSection, "{ranges: [{age: {from: 18}}]}"),
    "marginals": (MarginalsSection, "{marginals: [[]]}"),
}
"""Sections of numbers that are made from the cells of other numbers in the same list, each with an example."""


_SECTIONS = ("sliding", *MADE_OF_CELLS)


def _once(numbers: list[PublishedNumber]) -> list[PublishedNumber]:
    """Refuse a width of sliding windows with two steps: a window that both contain would have two numbers."""
    derived: list[int] = []
    for name, (kind, _) in MADE_OF_CELLS.items():
        found = list(of_kind(dict(enumerate(numbers)), kind))
        refuse(((place,), f"a second list of {name}; write one") for place in found[1:])
        derived += found
    if len(derived) == len(numbers):
        _, what = MADE_OF_CELLS[_kind_of_number(numbers[0])]
        refuse([((0,), f"needs numbers; list them next to it, as in [level, {what}]")])
    listed = [number if isinstance(number, str) else number.sliding for number in numbers]
    refuse(
        ((place,), f"{_shown(one)} is listed twice; list it once")
        for place, one in enumerate(listed)
        if one is not None and one in listed[:place]
    )
    return numbers


def _shown(listed: str | int) -> str:
    return listed if isinstance(listed, str) else f"sliding: {duration_text(listed)}"


PublishedNumbers = Annotated[
    list[
        Annotated[
            Annotated[PlainKind, WORD]
            | Annotated[SlidingSection, SETTINGS]
            | Annotated[QuantilesSection, Tag("quantiles")]
            | Annotated[RangesSection, Tag("ranges")]
            | Annotated[MarginalsSection, Tag("marginals")],
            Discriminator(_kind_of_number),
            BeforeValidator(_number),
        ]
    ],
    BeforeValidator(as_list),
    Field(min_length=1),
    AfterValidator(_once),
]
