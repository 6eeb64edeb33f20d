"""The shape of a whole spec: its sections and the rules that hold between them."""

from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipelines.spec.bigquery import BigQuerySection, bigquery_problems
from pipelines.spec.calendar import DAY
from pipelines.spec.errors import Problem, refuse, wrong
from pipelines.spec.fields import (
    EITHER,
    NOT_YAML_NULL,
    SETTINGS,
    WORD,
    Duration,
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
    bounds_nothing,
    column_problems,
    consistency_problems,
    distance_problems,
    kind_problems,
    sliding_problems,
    split_problems,
    strategy_problems,
)
from pipelines.spec.schedule import ScheduleSection
from pipelines.spec.strategies import Strategy
from pipelines.spec.words import not_one_of, show
from transforms.common.sinks import DEFAULT, OutputFormat
from transforms.sources.files.topic_segments import hosts_and_name, is_of_topic, topic_problem
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


class FreshnessSection(Section):
    """What says how far the source has come: exactly one of these."""

    file: Text | None = None
    heartbeat: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.heartbeat is not None:
            problem = (
                topic_problem(self.heartbeat) if is_of_topic(self.heartbeat) else "expected kafka://HOST:PORT/TOPIC"
            )
            refuse([(("heartbeat",), problem)] if problem else [])
        return self


def _freshness(value: Any) -> Any:
    named = isinstance(value, dict) and len(value) == 1 and {*value} <= {"file", "heartbeat"}
    if not (named or value == "newer_file"):
        raise wrong(f"expected newer_file, {{file: PATH}} or {{heartbeat: TOPIC}}, not {show(value)}")
    return value


FreshnessRule = Annotated[
    Annotated[Literal["newer_file"], WORD] | Annotated[FreshnessSection, SETTINGS],
    EITHER,
    BeforeValidator(_freshness),
]


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
    freshness: FreshnessRule | None = None

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
        problems += self._freshness_problems(format_)
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

    def _freshness_problems(self, format_: Format) -> list[Problem]:
        rule = self.freshness
        if rule is None:
            return []
        if format_.snapshots:
            return [(("freshness",), "only for changes: a window waits for the snapshot of its end anyway; remove it")]
        if rule == "newer_file" and any(map(is_of_topic, self.path)):
            return [(("freshness",), "a topic has no files; use {heartbeat: kafka://HOST:PORT/TOPIC}")]
        if isinstance(rule, FreshnessSection) and rule.heartbeat is not None:
            topics = [path for path in self.path if is_of_topic(path) and topic_problem(path) is None]
            if hosts_and_name(rule.heartbeat)[1] in [hosts_and_name(topic)[1] for topic in topics]:
                message = "a topic of the changelog, whose records are rows; name that of the connector's heartbeats"
                return [(("freshness", "heartbeat"), message)]
        if isinstance(rule, FreshnessSection) and rule.file is not None and self._reads(rule.file):
            message = "a file of the changelog, whose records are rows; name one that is written beside them"
            return [(("freshness", "file"), message)]
        return []

    def _reads(self, file: str) -> bool:
        """Whether a path is one of the changelog's, as far as names tell."""
        path, globs = PurePosixPath(file), map(PurePosixPath, self.path)
        return any(len(glob.parts) == len(path.parts) > 0 and path.match(str(glob)) for glob in globs)

    def _topic_problems(self) -> list[Problem]:
        topics = [(place, path) for place, path in enumerate(self.path) if is_of_topic(path)]
        if not topics:
            beats = isinstance(self.freshness, FreshnessSection) and self.freshness.heartbeat is not None
            needless = self.kafka is not None and not beats
            return [(("kafka",), "only for paths that begin with kafka://")] if needless else []
        found = [(place, topic_problem(path)) for place, path in topics]
        problems: list[Problem] = [(("path", place), problem) for place, problem in found if problem is not None]
        if (problem := no_topic(self.format)) is not None:
            problems.append((("format",), problem))
        return problems


class FoldersSection(Section):
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


class OutputSection(FoldersSection):
    """The same of a release of numbers, which can be loaded into tables besides."""

    bigquery: BigQuerySection | None = None


def _unique(queries: list[QuerySection]) -> list[QuerySection]:
    names = [query.name.lower() for query in queries]  # some disks take Beds and beds for one file
    refuse(
        (
            (place, "name"),
            f"{queries[place].name!r} is the name of queries[{names.index(name)}] already (case is ignored)",
        )
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
        freshness = self.changelog.freshness
        if isinstance(freshness, FreshnessSection) and within(freshness.file or "/dev/null", self.output.public):
            message = "lies inside output.public, where nothing else may lie; move it"
            problems.append((("changelog", "freshness", "file"), message))
        if self.changelog.kafka is not None and within(self.changelog.kafka, self.output.public):
            problems.append((("changelog", "kafka"), "lies inside output.public; it holds secrets, move it"))
        windows = self.schedule.windows
        problems += sliding_problems(self.queries, every=self.schedule.every, windows=windows)
        problems += strategy_problems(
            self.strategy,
            self.queries,
            privacy=self.privacy,
            windows=windows,
            every=self.schedule.every,
            slack=self.schedule.slack,
        )
        months = self.schedule.every % DAY and self.schedule.timezone is not None
        if FORMATS[self.changelog.format].snapshots and months and self.changelog.every is None:
            problems.append((("changelog", "every"), "missing; say how far apart snapshots are, such as 1d"))
        if not bounds_nothing(self.queries, self.strategy, self.privacy):
            problems += [(("privacy", *place), text) for place, text in self.privacy.unbounded()]
        problems += distance_problems(self.queries, self.strategy, self.privacy)
        problems += column_problems(self.queries, self.strategy)
        problems += kind_problems(self.queries)
        problems += split_problems(self.queries, split=self.privacy.split)
        problems += consistency_problems(self.queries, windows=windows)
        if self.output.bigquery is not None:
            problems += bigquery_problems(self.queries)
        refuse(problems)
        return self
