"""Which changelog a command line names: a spec's, or a path with flags in the place of the spec's keys."""

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from pipelines.spec.load import SHRINK, changelog_of, load
from pipelines.spec.models import ChangelogSection
from pipelines.spec.words import not_one_of
from transforms.aggregation.queries import numbers_and_times
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import InputError, SpecError
from transforms.common.instants import NO_ZONE, to_microseconds
from transforms.common.kinds import kind_of
from transforms.common.source import Source
from transforms.sources.files.listing import find, matching
from transforms.sources.files.opening import FIRST_BYTES, UNREADABLE, open_stream, why
from transforms.sources.files.snapshot_paths import with_directives
from transforms.sources.files.topic_segments import is_of_topic, topic_problem
from transforms.sources.first_file import refuse_separators
from transforms.sources.formats.json_samples import is_object
from transforms.sources.formats.jsonl import JSONL
from transforms.sources.formats.snapshots import COPIED, SNAPSHOTS
from transforms.sources.formats.table import FORMATS, no_topic
from transforms.sources.inspection import find_files, sample, to_sample

KEYS = ("format", "entry", "time", "before", "after", "order", "timezone", "types", "nulls", "every", "kafka")
"""Flags that stand for keys of `changelog:` in a spec."""

_BY_ENDING = {ending: format_ for format_ in FORMATS.values() for ending in format_.endings}
LOGS = {ending: one.name for one in FORMATS.values() if one.own is None for ending in one.endings}
"""By the ends of their files' names, formats of which each row is a change."""

_LINES = 1000  # so many lines are looked at for the first object


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A changelog and what is known of it without looking at its rows.

    Attributes:
        numbers: columns that are measured or have ranges of numbers, by the spec.
        times: columns that have ranges of times.
        bad_rows: share of rows that may be unusable.
        shrink: share of its rows that a snapshot may have lost since the one before.
        public: a folder that nothing private may go to; None if none is known.
    """

    source: Source
    numbers: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()
    bad_rows: float = 0.0
    shrink: float = SHRINK
    public: str | None = None


def named_by(arguments: argparse.Namespace) -> Named:
    """What the arguments of `slackwater changelog` name.

    Raises:
        SpecError: a flag that is missing, with what it could be, or one that has no place.
    """
    path: str = arguments.source
    if path.endswith((".yaml", ".yml")):
        return _of_spec(arguments)
    given = {key: getattr(arguments, key) for key in KEYS if getattr(arguments, key) is not None}
    refuse_unreachable([path, arguments.output], files=[arguments.kafka])
    if "types" in given:
        given["types"] = _types(given["types"])
    problem = topic_problem(path) if is_of_topic(path) else None
    if problem is not None:
        raise SpecError(f"SRC: {problem}")
    if given.get("format", SNAPSHOTS.name) not in FORMATS:
        raise SpecError(f"--format: {not_one_of(given['format'], FORMATS)}")
    given["format"] = given.get("format") or _format(path, given.get("kafka"))
    problem = no_topic(given["format"]) if is_of_topic(path) else None
    if problem is not None:
        raise SpecError(f"--format: {problem}")
    envelope = FORMATS[given["format"]].envelope
    if "entry" not in given and envelope is not None and envelope.key is not None:
        key = envelope.key(_first_event(given, path))
        given |= {} if key is None else {"entry": key}
    missing = _missing(given, path)
    if missing:
        raise SpecError("\n".join(missing))
    source = _source({**given, "path": path}, owner=arguments.unit)
    return Named(source=source, bad_rows=arguments.bad_rows or 0.0)


def ending_of(path: str) -> str:
    """Of a file's name, without that of its compression."""
    plain = _plain(path)
    return plain[plain.rfind(".") :]


def _plain(path: str) -> str:
    return re.sub(r"\.(gz|bz2|zst)$", "", path)


def columns_at(path: str) -> list[str]:
    """The names of the columns of the first file there, a log of changes.

    Raises:
        SpecError: there is no such file, or other separators than commas stand in it.
        InputError: it cannot be read.
    """
    refuse_unreachable([path])
    names = list(_schema({"format": LOGS[ending_of(path)]}, path).names)
    refuse_separators(path, names)
    return names


def without_zone(path: str, time: str) -> bool:
    """Whether the first file there, a log of changes, has times that name no zone; no value leaves this function.

    Raises:
        InputError: it cannot be read.
    """
    source = Source(format=LOGS[ending_of(path)], paths=(path,), entry="", time=time, before=None, after=None)
    try:
        schema, rows = sample(source, to_sample(find_files(source)))
    except UNREADABLE:
        return False
    if time not in schema.names:
        return False
    if rows is None:
        kind = schema.field(time).type
        return bool(pa.types.is_timestamp(kind) and kind.tz is None)
    bad = to_microseconds(rows[time].combine_chunks(), None)[1] if pa.types.is_string(rows[time].type) else []
    return any(reason == NO_ZONE for _, reason in bad)


def _of_spec(arguments: argparse.Namespace) -> Named:
    for key in (*KEYS, "unit"):
        if getattr(arguments, key) is not None:
            raise SpecError(f"--{key}: {arguments.source} says this; leave the flag out")
    spec = load(arguments.source)
    source = spec.changelog.source
    numbers, times = numbers_and_times(spec.queries)
    refuse_unreachable([*source.paths, arguments.output], files=[source.kafka])
    return Named(
        source=source,
        numbers=numbers,
        times=times,
        bad_rows=spec.changelog.bad_rows if arguments.bad_rows is None else arguments.bad_rows,
        shrink=SHRINK if spec.changelog.shrink is None else spec.changelog.shrink,
        public=spec.output.public,
    )


def _source(given: dict[str, Any], *, owner: str | None) -> Source:
    try:
        section = ChangelogSection.model_validate(given)
    except ValidationError as error:
        raise SpecError("\n".join(_problems(error))) from None
    return changelog_of(section, owner=owner, every=None).source


def _problems(error: ValidationError) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        for place, message in detail.get("ctx", {}).get("problems", [((), detail["msg"])]):
            key = (*detail["loc"], *place)[0]
            yield f"{'SRC' if key == 'path' else f'--{key}'}: {message}"


def _types(given: list[str]) -> dict[str, str]:
    pairs = [one.rpartition("=") for one in given]
    for one, (column, _, _) in zip(given, pairs, strict=True):
        if not column:
            raise SpecError(f"--types: expected COLUMN=TYPE, such as age=int64, not {one!r}")
    return {column: kind for column, _, kind in pairs}


def _format(path: str, settings: str | None) -> str:
    if is_of_topic(path):
        return _json_format(_first_object(path, settings))
    if "%Y" in path:
        return SNAPSHOTS.name
    ending = ending_of(path)
    if ending not in _BY_ENDING:
        *most, last = _BY_ENDING
        raise SpecError(
            f"--format: missing, and {path} does not end with {', '.join(most)} or {last}; give a glob of files, and "
            f"one of {', '.join(FORMATS)}"
        )
    by_ending = _BY_ENDING[ending]
    found = _json_format(_first_object(path, None)) if by_ending.lines(_plain(path)) else by_ending.name
    if FORMATS[found].own is not None:
        return found
    # Copies of a table, read as a log of changes, would never show that a row was deleted.
    dated = next(filter(None, (with_directives(file.path) for file in matching((path,)))), None)
    if dated is not None:
        copies = f"write '{dated}' for SRC" if found in COPIED else "snapshots are read from CSV and Parquet"
        raise SpecError(
            f"--format: missing, and the files' names hold dates; if each file is a copy of the whole table, {copies}; "
            f"if it holds changes, add --format={found}"
        )
    return found


def _json_format(first: dict[str, Any]) -> str:
    """By the envelope of the first object.

    >>> _json_format({"payload": {"op": "c", "source": {}}}), _json_format({"op": "sold"})
    ('debezium', 'jsonl')
    """
    claiming = (one for one in FORMATS.values() if one.envelope is not None and one.envelope.claims(first))
    return next(claiming, JSONL).name


def _first_event(given: dict[str, Any], path: str) -> dict[str, Any]:
    """The first record of a format with envelopes; empty where files do not hold lines."""
    lines = FORMATS[given["format"]].lines(path)
    return _first_object(path, given.get("kafka")) if lines else {}


def _first_object(path: str, settings: str | None) -> dict[str, Any]:
    """The first line that is an object; empty if the first lines are none."""
    first = to_sample(find((path,), settings=settings, lines=JSONL.lines))
    if first is None:
        return {}
    try:
        with open_stream(first, settings) as stream:
            lines = stream.read(FIRST_BYTES).split(b"\n")[:_LINES]
    except UNREADABLE as error:
        raise InputError(f"{first}: {why(error, 'cannot be read as JSON lines ({})')}") from None
    return next((json.loads(line) for line in lines if is_object(line)), {})


def _missing(given: dict[str, Any], path: str) -> list[str]:
    """A line for each flag that is needed and not given, with the columns that it could name."""
    format_ = FORMATS[given["format"]]
    own, envelope = format_.own, format_.envelope
    schema = _schema(given, path)
    refuse_separators(path, schema.names)
    problems = []
    if "entry" not in given:
        keys = [f.name for f in schema if kind_of(f.type) in ("int64", "string")]
        keys += [] if envelope is None else envelope.columns(_first_event(given, path))
        problems.append(f"--entry: missing; name the column that holds an entry's key{_one_of(keys)}")
    if own is None and "time" not in given:
        times = [f.name for f in schema if kind_of(f.type) in ("timestamp", "string")]
        problems.append(f"--time: missing; name the column that holds the time of a change{_one_of(times)}")
    structs = [f.name for f in schema if pa.types.is_struct(f.type)]
    if own is None and "after" not in given and structs:
        problems.append(f"--after: missing; name the struct that holds the state after a change{_one_of(structs)}")
    if format_.snapshots and "every" not in given:
        problems.append("--every: missing; say how far apart snapshots are, such as 1d")
    return problems


def _one_of(names: list[str]) -> str:
    return f": one of {', '.join(map(repr, names[:20]))}" if names else ""


def _schema(given: dict[str, Any], path: str) -> pa.Schema:
    """Of the first file; empty if there is nothing that could be said of it here."""
    if FORMATS[given["format"]].snapshots and ending_of(path) in LOGS:
        given, path = {"format": LOGS[ending_of(path)]}, re.sub(r"%[A-Za-z]", "*", path)
    if FORMATS[given["format"]].own is not None:
        return pa.schema([])
    source = Source(
        format=given["format"],
        paths=(path,),
        entry=given.get("entry", ""),
        time=given.get("time"),
        before=given.get("before"),
        after=given.get("after"),
        kafka=given.get("kafka"),
    )
    try:
        return sample(source, to_sample(find_files(source)))[0]
    except UNREADABLE:
        return pa.schema([])  # the reader says what is wrong with the file
