"""The shape of a spec of sanitised records: the columns, their possible values, and their privacy parameters."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipelines.spec.about import CuratorFacts
from pipelines.spec.errors import Problem, refuse, wrong
from pipelines.spec.fields import FiniteNumber, Nulls, ReleaseName, Section, Text, Texts, one_of
from pipelines.spec.models import FoldersSection
from pipelines.spec.paths import within
from pipelines.spec.words import not_one_of, show
from privacy.sanitised.curve_noise import CurveMetric
from transforms.sources.formats.csv import CSV
from transforms.sources.formats.jsonl import JSONL
from transforms.sources.formats.parquet import PARQUET

FORMATS = tuple(format_.name for format_ in (PARQUET, CSV, JSONL))
"""Formats whose rows are records."""

AttributeKind = Literal["number", "category", "set", "curve"]

_NEEDED = {
    "number": {"min": "min: 0", "max": "max: 100", "step": "step: 1"},
    "category": {"values": "values: [full, part, other]"},
    "set": {"values": "values: [asthma, diabetes]"},
    "curve": {"points": "points: [h00, h06, h12, h18]", "min": "min: 0", "max": "max: 5", "step": "step: 0.1"},
}
_ALLOWED = {
    "number": {"missing"},
    "category": {"missing", "distances", "probabilities"},
    "set": {"at_most"},
    "curve": {"missing", "total", "metric"},
}


def _distances(value: object) -> object:
    if isinstance(value, str) and value != "order":
        raise wrong(f"expected order, or a table of numbers, not {show(value)}")
    return value


class RecordsSection(Section):
    """Files of the records."""

    format: Annotated[str, BeforeValidator(one_of(FORMATS))]
    path: Texts
    entry: Text
    entry_type: Literal["int64", "string"] | None = None
    separator: Text = ";"
    nulls: Nulls | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.nulls is not None and self.format != CSV.name:
            refuse([(("nulls",), "only for CSV, which has no nulls; remove it")])
        return self


class ColumnSection(Section):
    """An attribute of each record, and its privacy parameters. Columns that no section names are not published."""

    name: Text
    kind: AttributeKind
    epsilon: FiniteNumber
    delta: FiniteNumber = 0.0
    min: FiniteNumber | None = None
    max: FiniteNumber | None = None
    step: FiniteNumber | None = None
    missing: FiniteNumber | Text | None = None
    values: Annotated[list[Text], Field(min_length=1)] | None = None
    distances: Annotated[Literal["order"] | list[list[FiniteNumber]], BeforeValidator(_distances)] | None = None
    probabilities: list[list[Text]] | None = None
    at_most: int | None = None
    points: Annotated[list[Text], Field(min_length=1)] | None = None
    total: FiniteNumber | None = None
    metric: CurveMetric | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(self._problems())
        return self

    @property
    def columns(self) -> list[str]:
        """Columns of the files."""
        return self.points if self.kind == "curve" and self.points is not None else [self.name]

    def _problems(self) -> Iterator[Problem]:
        given = {key for key in type(self).model_fields if getattr(self, key) is not None}
        own = {"name", "kind", "epsilon", "delta", *_NEEDED[self.kind], *_ALLOWED[self.kind]}
        for key, example in _NEEDED[self.kind].items():
            if key not in given:
                yield (key,), f"missing; add {example}"
        for key in sorted(given - own):
            kinds = [kind for kind in _NEEDED if key in {*_NEEDED[kind], *_ALLOWED[kind]}]
            yield (key,), f"only for kind: {' or '.join(kinds)}; remove it"
        for key in ("values", "points"):
            listed = getattr(self, key) or []
            yield from (((key, n), f"{one!r} is listed already") for n, one in enumerate(listed) if one in listed[:n])
        if self.kind == "category" and self.values is not None:
            yield from self._category_problems(self.values)
        if self.kind in ("number", "curve") and isinstance(self.missing, str):
            yield ("missing",), f"expected a number between min and max, not {show(self.missing)}"
        if self.kind == "set" and self.values is not None and any(one != one.strip() for one in self.values):
            yield ("values",), "blanks around an element are not read; remove them"

    def _category_problems(self, values: list[str]) -> Iterator[Problem]:
        if self.missing is None and "other" not in values:
            yield (
                ("missing",),
                "missing; name the value that a missing or unlisted value counts as, or list 'other'",
            )
        if self.missing is not None and self.missing not in values:
            yield ("missing",), not_one_of(str(self.missing), values)
        for key, table in (("distances", self.distances), ("probabilities", self.probabilities)):
            if isinstance(table, list) and [len(row) for row in table] != [len(values)] * len(values):
                yield (key,), f"expected {len(values)} rows of {len(values)}, in the order of the values"


def _unique(columns: list[ColumnSection]) -> list[ColumnSection]:
    names = [column.name for column in columns]
    refuse(
        ((place, "name"), f"{name!r} is the name of columns[{names.index(name)}] already")
        for place, name in enumerate(names)
        if name in names[:place]
    )
    read = [(place, name) for place, column in enumerate(columns) for name in column.columns]
    first = dict(reversed([(name, place) for place, name in read]))
    refuse(
        ((place,), f"column {name!r} is sanitised in columns[{first[name]}] already; it may be sanitised only once")
        for place, name in read
        if place != first[name]
    )
    return columns


class SanitiseModel(Section):
    """A whole spec of sanitised records."""

    sanitise: ReleaseName
    records: RecordsSection
    columns: Annotated[list[ColumnSection], Field(min_length=1), AfterValidator(_unique)]
    output: FoldersSection
    about: CuratorFacts | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems: list[Problem] = []
        for place, column in enumerate(self.columns):
            if self.records.entry in column.columns:
                problems.append((("columns", place), "the column of names (records.entry) is never published"))
            if self.records.separator in "".join(column.values or []) and column.kind == "set":
                problems.append((("columns", place, "values"), "an element holds records.separator; use another one"))
        for place, path in enumerate(self.records.path):
            if within(path, self.output.public):
                message = "lies inside output.public; records are never public, move one of them"
                problems.append((("records", "path", place), message))
        refuse(problems)
        return self
