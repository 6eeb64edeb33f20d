"""The shape of `changelog:` in a spec: where the mutations are and what their columns mean."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from pipelines.spec.errors import Problem, refuse, wrong
from pipelines.spec.fields import (
    EITHER,
    NOT_YAML_NULL,
    SETTINGS,
    WORD,
    Duration,
    FiniteNumber,
    Nulls,
    Section,
    Text,
    Texts,
    Timezone,
    as_list,
    of_kind,
    one_of,
)
from pipelines.spec.paths import remote_problem
from pipelines.spec.words import show
from transforms.aggregation.listed_key import as_text
from transforms.sources.files.topic_segments import hosts_and_name, is_of_topic, topic_problem
from transforms.sources.formats.format import Format
from transforms.sources.formats.snapshots import file_format, path_problem
from transforms.sources.formats.table import FORMATS, no_topic

ColumnType = Literal["int64", "float64", "string", "bool", "timestamp"]


class StateSection(Section):
    """The struct or the prefix that holds the columns of a state: exactly one of the two."""

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


def _marks(value: Any) -> Any:
    if not isinstance(value, dict) or len(value) != 1:
        raise wrong(f"expected a column and the values that mark deletions, such as {{op: [D]}}, not {show(value)}")
    return value


Mark = Annotated[Text, BeforeValidator(lambda value: as_text(value) if isinstance(value, int) else value)]
Marks = Annotated[
    dict[Text, Annotated[list[Mark], BeforeValidator(as_list), Field(min_length=1)]], BeforeValidator(_marks)
]
"""The column that marks deletions, and the values that do, as text: `true` is the text of a truth value."""


FormatName = Annotated[str, BeforeValidator(one_of(FORMATS))]


class FreshnessSection(Section):
    """The file or the topic that reports the progress of the source: exactly one of the two."""

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
    from_: Text | None = Field(default=None, alias="from")
    to: Text | None = None
    before: StateName | None = None
    after: StateName | None = None
    deleted: Marks | None = None
    owner: Literal["states", "mutation"] | None = None
    order: Texts = Field(default_factory=list)
    timezone: Timezone | None = None
    types: dict[Text, ColumnType] = Field(default_factory=dict)
    nulls: Nulls | None = None
    bad_rows: Annotated[FiniteNumber, Field(ge=0, lt=1)] = 0.0
    expires: Duration | None = None
    every: Duration | None = None
    shrink: Annotated[FiniteNumber, Field(ge=0, lt=1)] | None = None
    kafka: Text | None = None
    freshness: FreshnessRule | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems: list[Problem] = []
        format_ = FORMATS[self.format]
        own = format_.own
        remote = [(("path", place), remote_problem(path)) for place, path in enumerate(self.path)]
        problems += [(place, problem) for place, problem in remote if problem is not None]
        problems += self._interval_problems(format_)
        problems += self._deletion_problems(format_)
        if self.expires is not None:
            problems += self._expiry_problems(format_)
        if own is None and (self.time, self.from_, self.to) == (None, None, None):
            missing = "missing; add time: with the column that holds the time of a change"
            problems.append((("time",), f"{missing}, or from: and to: if each row is a stay"))
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
            problems.append((("nulls",), "only for CSV, which has no nulls; remove it"))
        if format_.cells:
            flat = "CSV has no structs; write the prefix of the state's columns"
            problems += [((side,), flat) for side, form in self.forms if form == "struct"]
        if self.owner is not None and format_.owner != "spec":
            of_unit = "the column that privacy.unit names is found by the columns of the files"
            problems.append((("owner",), f"only for JSON lines; otherwise {of_unit}; remove it"))
        problems += self._topic_problems()
        problems += self._freshness_problems(format_)
        if own is None and self.entry == self.time:
            problems.append((("time",), "the same column as entry; name the column of the time"))
        if self.before is not None and self.name("before") == self.name("after"):
            problems.append((("after",), "the same as before; the two states need different names"))
        refuse(problems)
        return self

    def _interval_problems(self, format_: Format) -> list[Problem]:
        """Return what is wrong with `from` and `to`, the columns of a table with a row for each stay."""
        columns = {"from": self.from_, "to": self.to}
        if not any(columns.values()):
            return []
        if format_.snapshots:
            whole = "each copy of a table of stays is a file of rows; write format: and path: of such files, with *"
            return [((key,), whole) for key, name in columns.items() if name is not None]
        if format_.own is not None:
            return [
                ((key,), "only for CSV, JSON lines and Parquet") for key, name in columns.items() if name is not None
            ]
        missing = "missing; a table of stays has from: for the start and to: for the end, which may be empty"
        problems: list[Problem] = [((key,), missing) for key, name in columns.items() if name is None]
        problems += [((key,), "a row with from: and to: is one state; remove it") for key in self._only_of_changes()]
        if self.from_ == self.to:
            problems.append((("to",), "the same column as from; name the column of the end"))
        problems += [
            ((key,), "the same column as entry; name a column of times")
            for key, name in columns.items()
            if name == self.entry
        ]
        return problems

    def _expiry_problems(self, format_: Format) -> Iterator[Problem]:
        """Yield what is wrong with `expires`, which makes states of a log of events."""
        if self.expires == 0:
            yield ("expires",), "expected a duration above zero, such as 28d"
        if format_.own is not None or self.time is None:
            yield ("expires",), "only for a log of events in CSV, JSON lines or Parquet, with time:; remove it"
        elif self.before is not None:
            yield ("expires",), "only for a log of events, which has no states before; remove before:, or expires:"

    def _deletion_problems(self, format_: Format) -> Iterator[Problem]:
        """Yield what is wrong with `deleted`, which marks the deletions among changes with new values only."""
        if self.deleted is None:
            return
        if format_.own is not None:
            yield ("deleted",), f"format {self.format} says this itself; leave it out"
        elif self.before is not None:
            yield (
                ("deleted",),
                "only for changes without before:; a deletion has no state after it; remove one of these",
            )
        elif self.expires is not None:
            yield ("deleted",), "a log of events has none; remove it, or expires:"
        elif self.entry in self.deleted or self.time in self.deleted:
            yield ("deleted",), "the column of the entry or of the time; name the one that marks deletions"

    def _only_of_changes(self) -> list[str]:
        """Return the given keys that describe changes, and not states."""
        given = {
            "time": self.time,
            "before": self.before,
            "after": self.after,
            "owner": self.owner,
            "order": self.order,
            "deleted": self.deleted,
        }
        return [key for key, value in given.items() if value]

    def name(self, side: Literal["before", "after"]) -> str | None:
        """The struct or prefix of a side."""
        given = self.before if side == "before" else self.after
        return given if given is None or isinstance(given, str) else given.struct or given.prefix

    @property
    def forms(self) -> tuple[tuple[str, str], ...]:
        """Return (side, `struct` or `prefix`) for each side that states it, and (`owner`, its place) if it is given."""
        sides = of_kind({"before": self.before, "after": self.after}, StateSection)
        forms = [(name, "prefix" if side.struct is None else "struct") for name, side in sides.items()]
        return (*forms, *([] if self.owner is None else [("owner", self.owner)]))

    def _is_cells(self, format_: Format) -> bool:
        if not format_.snapshots:
            return format_.cells
        return all(name is not None and FORMATS[name].cells for name in map(file_format, self.path))

    @property
    def told(self) -> FreshnessSection | None:
        """The file or topic that reports the progress of the source; None if newer files or the clock do."""
        return None if isinstance(self.freshness, str) else self.freshness

    def _freshness_problems(self, format_: Format) -> list[Problem]:
        rule, told = self.freshness, self.told
        if rule is None:
            return []
        if format_.snapshots:
            return [(("freshness",), "only for changes: a window waits for the snapshot of its end anyway; remove it")]
        if rule == "newer_file" and any(map(is_of_topic, self.path)):
            return [(("freshness",), "a topic has no files; use {heartbeat: kafka://HOST:PORT/TOPIC}")]
        if told is not None and told.heartbeat is not None:
            topics = [path for path in self.path if is_of_topic(path) and topic_problem(path) is None]
            if hosts_and_name(told.heartbeat)[1] in [hosts_and_name(topic)[1] for topic in topics]:
                message = "a topic of the changelog, whose records are rows; name that of the connector's heartbeats"
                return [(("freshness", "heartbeat"), message)]
        if told is not None and told.file is not None and self._reads(told.file):
            message = "a file of the changelog, whose records are rows; name one that is written next to them"
            return [(("freshness", "file"), message)]
        return []

    def _reads(self, file: str) -> bool:
        """Return whether a path is a file of the changelog, judged by its name."""
        path, globs = PurePosixPath(file), map(PurePosixPath, self.path)
        return any(len(glob.parts) == len(path.parts) > 0 and path.match(str(glob)) for glob in globs)

    def _topic_problems(self) -> list[Problem]:
        topics = [(place, path) for place, path in enumerate(self.path) if is_of_topic(path)]
        if not topics:
            beats = self.told is not None and self.told.heartbeat is not None
            needless = self.kafka is not None and not beats
            return [(("kafka",), "only for paths that begin with kafka://")] if needless else []
        found = [(place, topic_problem(path)) for place, path in topics]
        problems: list[Problem] = [(("path", place), problem) for place, problem in found if problem is not None]
        if (problem := no_topic(self.format)) is not None:
            problems.append((("format",), problem))
        return problems
