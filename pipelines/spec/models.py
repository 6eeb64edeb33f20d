"""The shape of a whole spec: its sections and the rules that hold between them."""

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipelines.spec.durations import duration_text
from pipelines.spec.errors import Problem, not_one_of, refuse, show, wrong
from pipelines.spec.fields import (
    EITHER,
    NOT_YAML_NULL,
    SETTINGS,
    WORD,
    Duration,
    Moment,
    Nulls,
    Number,
    ReleaseName,
    Section,
    Text,
    Texts,
    Timezone,
)
from pipelines.spec.paths import within
from pipelines.spec.privacy import PrivacySection, ProtectsSection
from pipelines.spec.queries import QuerySection
from pipelines.spec.rules import (
    MOST_WINDOWS,
    bounds_nothing,
    column_problems,
    consistency_problems,
    distance_problems,
    kind_problems,
    sliding_problems,
    split_problems,
    strategy_problems,
)
from pipelines.spec.strategies import Strategy
from pipelines.spec.times import MICROSECOND, time_text
from transforms.common.sinks import DEFAULT, OutputFormat
from transforms.sources.files.topic_segments import is_of_topic, topic_problem
from transforms.sources.formats.format import Format
from transforms.sources.formats.snapshots import file_format, path_problem
from transforms.sources.formats.table import FORMATS, no_topic

ColumnType = Literal["int64", "float64", "string", "bool", "timestamp"]


class StateSection(Section):
    """The name of a state's columns, with what it is: exactly one of these."""

    struct: Text | None = None
    prefix: Text | None = None


def _state(value: Any) -> Any:
    named = isinstance(value, dict) and {*value} <= {"struct", "prefix"}
    if not isinstance(value, str | dict) or (named and len(value) != 1):
        raise wrong(f"expected a name, {{struct: NAME}} or {{prefix: NAME}}, not {show(value)}")
    return value


StateName = Annotated[
    Annotated[Text, WORD] | Annotated[StateSection, SETTINGS],
    EITHER,
    BeforeValidator(_state),
]


def _format(value: Any) -> Any:
    if value not in [*FORMATS]:
        known = f"expected one of {', '.join(FORMATS)}, not {show(value)}"
        raise wrong(not_one_of(value, FORMATS) if isinstance(value, str) else known)
    return value


FormatName = Annotated[str, BeforeValidator(_format)]


class ChangelogSection(Section):
    """Where the mutations are and what their columns mean."""

    format: FormatName
    path: Texts
    entry: Text
    time: Text | None = None
    before: StateName | None = None
    after: StateName | None = None
    owner: Literal["states", "mutation"] | None = None
    order: Texts = Field(default_factory=list)
    timezone: Timezone | None = None
    types: dict[Text, ColumnType] = Field(default_factory=dict)
    nulls: Nulls | None = None
    bad_rows: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    every: Duration | None = None
    shrink: Annotated[Number, Field(ge=0, lt=1)] | None = None
    kafka: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems: list[Problem] = []
        format_ = FORMATS[self.format]
        own = format_.own
        if own is None and self.time is None:
            problems.append((("time",), "missing; add time: with the column that holds the time of a change"))
        for key, names in ({} if own is None else own).items():
            given = getattr(self, key)
            for name in given if isinstance(given, list) else [given]:
                if name is not None and name not in names:
                    only = f", or write {' or '.join(names)}" if names else ""
                    problems.append(((key,), f"format {self.format} says this itself; leave it out{only}"))
        if not format_.snapshots:
            only_there = (("every", self.every), ("shrink", self.shrink))
            problems += [((key,), "only for format: snapshots") for key, value in only_there if value is not None]
        else:
            found = [path_problem(path, self.path[0]) for path in self.path]
            problems += [(("path", place), problem) for place, problem in enumerate(found) if problem is not None]
            if self.every == 0:
                problems.append((("every",), "expected a duration above zero, such as 1d"))
        if "nulls" in self.model_fields_set and self.nulls is None:
            problems.append((("nulls",), NOT_YAML_NULL))
        elif self.nulls is not None and not self._is_cells(format_):
            problems.append((("nulls",), "only for CSV, which has no null of its own; remove it"))
        if format_.cells:
            flat = "CSV has no structs; write the prefix of the state's columns"
            problems += [((side,), flat) for side, form in self.forms if form == "struct"]
        if self.owner is not None and format_.owner != "spec":
            problems.append((("owner",), "only for JSON lines; other formats say it themselves; remove it"))
        problems += self._topic_problems()
        if own is None and self.entry == self.time:
            problems.append((("time",), "the same column as entry; name the column of the time"))
        if self.before is not None and self.name("before") == self.name("after"):
            problems.append((("after",), "the same as before; the two states need names of their own"))
        refuse(problems)
        return self

    def name(self, side: Literal["before", "after"]) -> str | None:
        """The struct or prefix of a side."""
        given = self.before if side == "before" else self.after
        return given.struct or given.prefix if isinstance(given, StateSection) else given

    @property
    def forms(self) -> tuple[tuple[str, str], ...]:
        """(side, `struct` or `prefix`) where it is said, and (`owner`, where it is) likewise."""
        sides = (("before", self.before), ("after", self.after))
        forms = [(n, "prefix" if s.struct is None else "struct") for n, s in sides if isinstance(s, StateSection)]
        return (*forms, *([] if self.owner is None else [("owner", self.owner)]))

    def _is_cells(self, format_: Format) -> bool:
        if not format_.snapshots:
            return format_.cells
        return all(name is not None and FORMATS[name].cells for name in map(file_format, self.path))

    def _topic_problems(self) -> list[Problem]:
        topics = [(place, path) for place, path in enumerate(self.path) if is_of_topic(path)]
        if not topics:
            return [] if self.kafka is None else [(("kafka",), "only for paths that begin with kafka://")]
        found = [(place, topic_problem(path)) for place, path in topics]
        problems: list[Problem] = [(("path", place), problem) for place, problem in found if problem is not None]
        if (problem := no_topic(self.format)) is not None:
            problems.append((("format",), problem))
        return problems


class ScheduleSection(Section):
    """The windows: [start, start + every), and so on, up to `until` if it is given."""

    start: Moment
    every: Duration
    until: Moment | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.every == 0:
            refuse([(("every",), "expected a duration above zero, such as 1d")])
        if self.until is None:
            return self
        if self.until <= self.start:
            refuse([(("until",), f"must be after start, {time_text(self.start)}")])
        windows, rest = divmod((self.until - self.start) // MICROSECOND, self.every)
        if rest:
            every = duration_text(self.every)
            fits = " or ".join(_ends(self.start, windows, self.every))
            refuse([(("until",), f"windows of {every} from start do not end there; use {fits}")])
        if windows > MOST_WINDOWS:
            message = f"{windows:,} windows until the end; at most {MOST_WINDOWS:,}, take longer ones"
            refuse([(("every",), message)])
        return self

    @property
    def windows(self) -> int | None:
        """How many there are; None without an end."""
        return None if self.until is None else (self.until - self.start) // MICROSECOND // self.every


def _ends(start: datetime, windows: int, every: int) -> list[str]:
    """When the first `windows` windows end and when one more would, where there is such a time."""
    ends = [start + windows * every * MICROSECOND] if windows else []
    with suppress(OverflowError):  # past the year 9999
        ends.append(start + (windows + 1) * every * MICROSECOND)
    return [time_text(end) for end in ends] or ["a shorter every"]


class OutputSection(Section):
    """The public and the private folder, and the format of the public files."""

    public: Text
    private: Text
    format: OutputFormat = DEFAULT

    @model_validator(mode="after")
    def _check(self) -> Self:
        if within(self.private, self.public):
            refuse([(("private",), "lies inside public; keep private files in a folder of their own")])
        if within(self.public, self.private):
            refuse([(("public",), "lies inside private; keep public files in a folder of their own")])
        return self


def _unique(queries: list[QuerySection]) -> list[QuerySection]:
    names = [query.name for query in queries]
    refuse(
        ((place, "name"), f"{name!r} is the name of queries[{names.index(name)}] already")
        for place, name in enumerate(names)
        if name in names[:place]
    )
    return queries


class SpecModel(Section):
    """A whole spec."""

    release: ReleaseName
    changelog: ChangelogSection
    privacy: PrivacySection
    schedule: ScheduleSection
    queries: Annotated[list[QuerySection], Field(min_length=1), AfterValidator(_unique)]
    strategy: Strategy = "auto"
    output: OutputSection

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """A distance without a span is for all ends of windows, and the start."""
        protects, windows = self.privacy.protects, self.schedule.windows
        if not isinstance(protects, ProtectsSection) or protects.span is not None:
            return self
        if windows is None:
            message = "missing; the release has no end: add span: 14d, or schedule.until"
            refuse([(("privacy", "protects", "span"), message)])
            return self
        whole = protects.model_copy(update={"span": (windows + 1) * self.schedule.every})
        return self.model_copy(update={"privacy": self.privacy.model_copy(update={"protects": whole})})

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems: list[Problem] = []
        if self.privacy.unit == self.changelog.entry != "entry":
            problems.append((("privacy", "unit"), "the entry column; write unit: entry"))
        for place, path in enumerate(self.changelog.path):
            if within(path, self.output.public):
                message = "lies inside output.public; a changelog is never public, move one of them"
                problems.append((("changelog", "path", place), message))
        if self.changelog.kafka is not None and within(self.changelog.kafka, self.output.public):
            problems.append((("changelog", "kafka"), "lies inside output.public; it holds secrets, move it"))
        windows = self.schedule.windows
        problems += sliding_problems(self.queries, every=self.schedule.every, windows=windows)
        every = self.schedule.every
        problems += strategy_problems(self.strategy, self.queries, privacy=self.privacy, windows=windows, every=every)
        if not bounds_nothing(self.queries, self.strategy, self.privacy):
            problems += [(("privacy", *place), text) for place, text in self.privacy.unbounded()]
        problems += distance_problems(self.queries, self.strategy, self.privacy)
        problems += column_problems(self.queries, self.strategy)
        problems += kind_problems(self.queries)
        problems += split_problems(self.queries, split=self.privacy.split)
        problems += consistency_problems(self.queries, windows=windows)
        refuse(problems)
        return self
