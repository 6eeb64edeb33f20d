"""Find the changelog that a command names: of a spec, or at a path and described by keys of a spec."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

import pyarrow as pa
from pydantic import ValidationError

from pipelines.changelog.recognise import LOGS, ending_of, first_event, format_of
from pipelines.common.errors import ArgumentError
from pipelines.spec.changelog import ChangelogSection
from pipelines.spec.load import SHRINK, changelog_of, load
from pipelines.spec.words import not_one_of
from privacy.counted import counted
from transforms.aggregation.queries import numbers_and_times
from transforms.common.cloud import refuse_unreachable
from transforms.common.instants import NO_ZONE, to_microseconds
from transforms.common.kinds import kind_of
from transforms.common.source import Source
from transforms.sources.files.opening import UNREADABLE
from transforms.sources.files.topic_segments import is_of_topic, topic_problem
from transforms.sources.first_file import refuse_separators
from transforms.sources.formats.format import FirstRows
from transforms.sources.formats.snapshots import SNAPSHOTS
from transforms.sources.formats.table import FORMATS, no_topic
from transforms.sources.inspection import find_files, sample, to_sample

KEYS = {
    "format": "format",
    "entry": "entry",
    "time": "time",
    "from": "from_",
    "to": "to",
    "before": "before",
    "after": "after",
    "deleted": "deleted",
    "order": "order",
    "timezone": "timezone",
    "types": "types",
    "nulls": "nulls",
    "every": "every",
    "kafka": "kafka",
}
"""Keys of `changelog:` in a spec, and the names of the parameters that replace them."""


class ChangelogKeys(TypedDict, total=False):
    """Description of a changelog without a spec: keys of a spec, of its section `changelog` unless stated otherwise.

    Attributes:
        format: Format of the files; by default from the files' names and the first object.
        entry: Column with the key of the entry.
        unit: Column that names the owner, if it belongs to the mutation; `privacy.unit` of a spec.
        time: Column with the time of the change.
        from_, to: Columns with the start and the end if each row is a stay; the keys `from` and `to` of a spec.
        before, after: Prefix or struct column of the state before and after the change.
        deleted: Column that marks deletions, and the values that do.
        order: Columns that order changes of the same time.
        timezone: Time zone of times without a zone, such as Europe/Paris.
        types: Type of a column by its name.
        nulls: Texts that are null in CSV.
        every: Time between two snapshots, such as 1d.
        kafka: File with the settings of Kafka's client, for a topic.
    """

    format: str | None
    entry: str | None
    unit: str | None
    time: str | None
    from_: str | None
    to: str | None
    before: str | None
    after: str | None
    deleted: Mapping[str, list[str]] | None
    order: Sequence[str] | None
    timezone: str | None
    types: Mapping[str, str] | None
    nulls: Sequence[str] | None
    every: str | None
    kafka: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A changelog with the settings of its description.

    Attributes:
        numbers: Columns that are measured or have ranges of numbers, by the spec.
        times: Columns that have ranges of times.
        bad_rows: Largest share of rows that may be unusable.
        shrink: Largest share of its rows that a snapshot may have lost since the one before.
        public: A public folder, into which nothing private may be written; None if none is known.
    """

    source: Source
    numbers: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()
    bad_rows: float = 0.0
    shrink: float = SHRINK
    public: str | None = None


def named_by(
    path: str, keys: Mapping[str, Any], *, bad_rows: float | None, output: str | None, explored: bool
) -> Named:
    """Return the changelog that a path and keys name.

    Args:
        path: Path of a spec; or a glob of files, or a topic, which the keys describe.
        keys: The given keys of `ChangelogKeys`.
        bad_rows: Largest share of rows that may be unusable; None: as the spec says, or 0.
        output: Folder to write to, if there is one.
        explored: Whether messages may show names from CSV and JSON, which may be a person's row.

    Raises:
        SpecError: A key is missing (the message names possible values), or has no effect.
    """
    if path.endswith((".yaml", ".yml")):
        return _of_spec(path, keys, bad_rows=bad_rows, output=output)
    given: dict[str, Any] = {
        key: [*keys[name]] if key in ("order", "nulls") else keys[name] for key, name in KEYS.items() if name in keys
    }
    refuse_unreachable([path, output], files=[given.get("kafka")])
    problem = topic_problem(path) if is_of_topic(path) else None
    if problem is not None:
        raise ArgumentError("source", problem)
    if given.get("format", SNAPSHOTS.name) not in FORMATS:
        raise ArgumentError("format", not_one_of(given["format"], FORMATS))
    given["format"] = given.get("format") or format_of(path, given.get("kafka"))
    problem = no_topic(given["format"]) if is_of_topic(path) else None
    if problem is not None:
        raise ArgumentError("format", problem)
    envelope = FORMATS[given["format"]].envelope
    if "entry" not in given and envelope is not None and envelope.key is not None:
        key = envelope.key(first_event(given, path))
        given |= {} if key is None else {"entry": key}
    missing = _missing(given, path, explored=explored)
    if missing:
        raise ArgumentError.of_problems(missing)
    source = _source({**given, "path": path}, owner=keys.get("unit"))
    return Named(source=source, bad_rows=bad_rows or 0.0)


def columns_at(path: str) -> list[str]:
    """Return the names of the columns of the first file at a path, a log of changes.

    Raises:
        SpecError: There is no such file, or it has other separators than commas.
        InputError: It cannot be read.
    """
    refuse_unreachable([path])
    names = list(_sample({"format": LOGS[ending_of(path)]}, path)[0].names)
    refuse_separators(path, names)
    return names


def without_zone(path: str, time: str) -> bool:
    """Return whether the first file at a path, a log of changes, has times without a zone; no value is returned.

    Raises:
        InputError: It cannot be read.
    """
    source = Source(format=LOGS[ending_of(path)], paths=(path,), entry="", time=time, before=None, after=None)
    try:
        schema, rows = sample(source, to_sample(find_files(source)))
    except UNREADABLE:
        return False
    if schema.names.count(time) != 1:
        return False
    if rows is None:
        kind = schema.field(time).type
        return bool(pa.types.is_timestamp(kind) and kind.tz is None)
    bad = to_microseconds(rows[time].combine_chunks(), None)[1] if pa.types.is_string(rows[time].type) else []
    return any(reason == NO_ZONE for _, reason in bad)


def _of_spec(path: str, keys: Mapping[str, Any], *, bad_rows: float | None, output: str | None) -> Named:
    for key in keys:
        raise ArgumentError(key, f"{path} says this; leave the flag out")
    spec = load(path)
    source = spec.changelog.source
    numbers, times = numbers_and_times(spec.queries)
    refuse_unreachable([*source.paths, output], files=[source.kafka])
    return Named(
        source=source,
        numbers=numbers,
        times=times,
        bad_rows=spec.changelog.bad_rows if bad_rows is None else bad_rows,
        shrink=SHRINK if spec.changelog.shrink is None else spec.changelog.shrink,
        public=spec.output.public,
    )


def _source(given: dict[str, Any], *, owner: str | None) -> Source:
    try:
        section = ChangelogSection.model_validate(given)
    except ValidationError as error:
        raise ArgumentError.of_problems(_problems(error)) from None
    return changelog_of(section, owner=owner, every=None).source


def _problems(error: ValidationError) -> Iterator[tuple[str, str]]:
    for detail in error.errors(include_url=False):
        for place, message in detail.get("ctx", {}).get("problems", [((), detail["msg"])]):
            key = (*detail["loc"], *place)[0]
            yield "source" if key == "path" else KEYS.get(str(key), str(key)), f": {message}"


def _missing(given: dict[str, Any], path: str, *, explored: bool) -> list[tuple[str, str]]:
    """Return a problem for each required key that is missing, with the columns that it could name.

    Args:
        given: The given keys of `changelog:`.
        path: Path of the files.
        explored: Whether to show names from CSV and JSON, which may be a person's row.
    """
    format_ = FORMATS[given["format"]]
    own, envelope = format_.own, format_.envelope
    schema, rows = _sample(given, path)
    refuse_separators(path, schema.names)
    one_of = partial(_one_of, shown=explored or (rows is None and not FORMATS[given["format"]].lines(path)))
    problems = []
    if "entry" not in given:
        keys = [f.name for f in schema if kind_of(f.type) in ("int64", "string")]
        keys += [] if envelope is None else envelope.columns(first_event(given, path))
        problems.append(("entry", f": missing; name the column that holds an entry's key{one_of(keys)}"))
    if own is None and not {"time", "from", "to"} & {*given}:
        times = [f.name for f in schema if kind_of(f.type) in ("timestamp", "string")]
        problems.append(("time", f": missing; name the column that holds the time of a change{one_of(times)}"))
    structs = [f.name for f in schema if pa.types.is_struct(f.type)]
    if own is None and not {"after", "from", "to"} & {*given} and structs:
        problems.append(("after", f": missing; name the struct that holds the state after a change{one_of(structs)}"))
    if format_.snapshots and "every" not in given:
        problems.append(("every", ": missing; say how far apart snapshots are, such as 1d"))
    return problems


def _one_of(names: list[str], *, shown: bool) -> str:
    if names and not shown:
        return f"; `--suggest` without -o lists the {counted(len(names), 'column')} that it could be"
    return f": one of {', '.join(map(repr, names[:20]))}" if names else ""


def _sample(given: dict[str, Any], path: str) -> FirstRows:
    """Return columns and first rows of the first file; without columns if they are unknown here."""
    if FORMATS[given["format"]].snapshots and ending_of(path) in LOGS:
        given, path = {"format": LOGS[ending_of(path)]}, re.sub(r"%[A-Za-z]", "*", path)
    if FORMATS[given["format"]].own is not None:
        return pa.schema([]), None
    source = Source(
        format=given["format"],
        paths=(path,),
        entry=given.get("entry", ""),
        time=given.get("time") or given.get("from"),
        until=given.get("to"),
        before=given.get("before"),
        after=given.get("after"),
        kafka=given.get("kafka"),
    )
    try:
        return sample(source, to_sample(find_files(source)))
    except UNREADABLE:
        return pa.schema([]), None  # the reader reports what is wrong with the file
