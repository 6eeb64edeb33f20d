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
from pipelines.spec.models import OWN_COLUMNS, ChangelogSection
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import InputError, SpecError
from transforms.common.kinds import kind_of
from transforms.common.source import Source
from transforms.sources import files
from transforms.sources.envelope_names import ENVELOPES
from transforms.sources.layout import find_files, telling
from transforms.sources.samples import is_object, sample
from transforms.sources.snapshot_paths import with_directives
from transforms.sources.topic_segments import FORMATS, is_of_topic, topic_problem

KEYS = ("format", "entry", "time", "before", "after", "order", "timezone", "types", "nulls", "every", "kafka")
"""Flags that stand for keys of `changelog:` in a spec."""

_BY_EXTENSION = {".parquet": "parquet", ".csv": "csv", ".avro": "datastream"}
_JSON = (".json", ".jsonl", ".ndjson")
_LINES = 1000  # so many lines are looked at for the first object


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A changelog and what is known of it without looking at its rows.

    Attributes:
        numbers: columns that are measured, by the spec.
        bad_rows: share of rows that may be unusable.
        shrink: share of its rows that a snapshot may have lost since the one before.
        public: a folder that nothing private may go to; None if none is known.
    """

    source: Source
    numbers: frozenset[str] = frozenset()
    bad_rows: float = 0.0
    shrink: float = SHRINK
    public: str | None = None


def named(arguments: argparse.Namespace) -> Named:
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
    given["format"] = given.get("format") or _format(path, given.get("kafka"))
    if is_of_topic(path) and given["format"] not in FORMATS:
        raise SpecError(f"--format: topics hold one of {', '.join(FORMATS)}, not {given['format']}")
    if given["format"] == "datastream":
        given.setdefault("entry", _primary_key(path))
    missing = _missing({key: value for key, value in given.items() if value is not None}, path)
    if missing:
        raise SpecError("\n".join(missing))
    source = _source({**given, "path": path}, owner=arguments.unit)
    return Named(source=source, bad_rows=arguments.bad_rows or 0.0)


def _of_spec(arguments: argparse.Namespace) -> Named:
    for key in (*KEYS, "unit"):
        if getattr(arguments, key) is not None:
            raise SpecError(f"--{key}: {arguments.source} says this; leave the flag out")
    spec = load(arguments.source)
    source = spec.changelog.source(spec.privacy.owner)
    refuse_unreachable([*source.paths, arguments.output], files=[source.kafka])
    return Named(
        source=source,
        numbers=frozenset(query.column for query in spec.queries if query.column is not None),
        bad_rows=spec.changelog.bad_rows if arguments.bad_rows is None else arguments.bad_rows,
        shrink=SHRINK if spec.changelog.shrink is None else spec.changelog.shrink,
        public=spec.output.public,
    )


def _source(given: dict[str, Any], *, owner: str | None) -> Source:
    try:
        section = ChangelogSection.model_validate(given)
    except ValidationError as error:
        raise SpecError("\n".join(_problems(error))) from None
    return changelog_of(section, every=None).source(owner)


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
        return "snapshots"
    plain = re.sub(r"\.(gz|bz2|zst)$", "", path)
    extension = plain[plain.rfind(".") :]
    if extension not in (*_BY_EXTENSION, *_JSON):
        raise SpecError(
            f"--format: missing, and {path} does not end with .parquet, .csv, .json, .jsonl or .avro; give a glob of "
            "files, and one of parquet, csv, jsonl, debezium, datastream, snapshots"
        )
    found = _json_format(_first_object(path, None)) if extension in _JSON else _BY_EXTENSION[extension]
    if found in OWN_COLUMNS:
        return found
    # Copies of a table, read as a log of changes, would never show that a row was deleted.
    dated = next(filter(None, (with_directives(file.path) for file in files.matching((path,)))), None)
    if dated is not None:
        copies = f"write '{dated}' for SRC" if found != "jsonl" else "snapshots are read from CSV and Parquet"
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
    payload = first.get("payload")
    if any(isinstance(event, dict) and {"op", "source"} <= event.keys() for event in (first, payload)):
        return "debezium"
    return "datastream" if {"uuid", "payload", "source_metadata"} <= first.keys() else "jsonl"


def _primary_key(path: str) -> str | None:
    """The one column that Datastream says is the key, if it does."""
    if ".avro" in path:
        return None
    keys = (_first_object(path, None).get("source_metadata") or {}).get("primary_keys")
    return keys[0] if isinstance(keys, list) and len(keys) == 1 and isinstance(keys[0], str) else None


def _first_object(path: str, settings: str | None) -> dict[str, Any]:
    """The first line that is an object; empty if the first lines are none."""
    first = telling(files.find((path,), settings=settings, lines=True))
    if first is None:
        return {}
    try:
        with files.open_stream(first, settings) as stream:
            lines = stream.read(1 << 22).split(b"\n")[:_LINES]
    except files.UNREADABLE as error:
        raise InputError(f"{first}: {files.why(error, 'cannot be read as JSON lines ({})')}") from None
    return next((json.loads(line) for line in lines if is_object(line)), {})


def _missing(given: dict[str, Any], path: str) -> list[str]:
    """A line for each flag that is needed and not given, with the columns that it could name."""
    own = OWN_COLUMNS.get(given["format"])
    schema = _schema(given, path)
    problems = []
    if "entry" not in given:
        keys = [f.name for f in schema if kind_of(f.type) in ("int64", "string")]
        keys += (
            _in_envelope(_first_object(path, given.get("kafka")))
            if given["format"] in ENVELOPES and ".avro" not in path
            else []
        )
        problems.append(f"--entry: missing; name the column that holds an entry's key{_one_of(keys)}")
    if own is None and "time" not in given:
        times = [f.name for f in schema if kind_of(f.type) in ("timestamp", "string")]
        problems.append(f"--time: missing; name the column that holds the time of a change{_one_of(times)}")
    structs = [f.name for f in schema if pa.types.is_struct(f.type)]
    if own is None and "after" not in given and structs:
        problems.append(f"--after: missing; name the struct that holds the state after a change{_one_of(structs)}")
    if given["format"] == "snapshots" and "every" not in given:
        problems.append("--every: missing; say how far apart snapshots are, such as 1d")
    return problems


def _one_of(names: list[str]) -> str:
    return f": one of {', '.join(map(repr, names[:20]))}" if names else ""


def _in_envelope(first: dict[str, Any]) -> list[str]:
    """Names of the columns of the state that an event holds."""
    inner = first.get("payload")
    event = inner if "schema" in first and isinstance(inner, dict) else first
    states = (event.get(name) for name in ("after", "before", "payload"))
    return list(next((state for state in states if isinstance(state, dict)), {}))


def _schema(given: dict[str, Any], path: str) -> pa.Schema:
    """Of the first file; empty if there is nothing that could be said of it here."""
    if given["format"] in ("snapshots", *ENVELOPES):
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
        return sample(source, telling(find_files(source)))[0]
    except files.UNREADABLE:
        return pa.schema([])  # the reader says what is wrong with the file
