"""Recognise the format of a changelog by the ends of its files' names, and by its first object."""

import json
import re
from typing import Any

from pipelines.common.errors import ArgumentError
from transforms.common.errors import InputError
from transforms.sources.files.listing import find, matching
from transforms.sources.files.opening import FIRST_BYTES, UNREADABLE, open_stream, why
from transforms.sources.files.snapshot_paths import with_directives
from transforms.sources.files.topic_segments import is_of_topic
from transforms.sources.formats.json_samples import is_object
from transforms.sources.formats.jsonl import JSONL
from transforms.sources.formats.snapshots import COPIED, SNAPSHOTS
from transforms.sources.formats.table import FORMATS
from transforms.sources.inspection import to_sample

_BY_ENDING = {ending: format_ for format_ in FORMATS.values() for ending in format_.endings}
LOGS = {ending: one.name for one in FORMATS.values() if one.own is None for ending in one.endings}
"""Formats in which each row is a change, by the ends of their files' names."""

_LINES = 1000  # lines that are searched for the first object


def ending_of(path: str) -> str:
    """Return the ending of a file's name, without the ending of its compression."""
    plain = plain_name(path)
    return plain[plain.rfind(".") :]


def plain_name(path: str) -> str:
    return re.sub(r"\.(gz|bz2|zst)$", "", path)


def format_of(path: str, settings: str | None) -> str:
    if is_of_topic(path):
        return _json_format(_first_object(path, settings))
    if "%Y" in path:
        return SNAPSHOTS.name
    ending = ending_of(path)
    if ending not in _BY_ENDING:
        *most, last = _BY_ENDING
        raise ArgumentError(
            "format",
            f"missing, and {path} does not end with {', '.join(most)} or {last}; give a glob of files, and one of "
            f"{', '.join(FORMATS)}",
        )
    by_ending = _BY_ENDING[ending]
    found = _json_format(_first_object(path, None)) if by_ending.lines(plain_name(path)) else by_ending.name
    if FORMATS[found].own is not None:
        return found
    # Copies of a table, read as a log of changes, would never show that a row was deleted.
    dated = next(filter(None, (with_directives(file.path) for file in matching((path,)))), None)
    if dated is not None:
        copies = f"write '{dated}' for SRC" if found in COPIED else "snapshots are read from CSV and Parquet"
        raise ArgumentError(
            "format",
            f"missing, and the files' names hold dates; if each file is a copy of the whole table, {copies}; if it "
            f"holds changes, add --format={found}",
        )
    return found


def _json_format(first: dict[str, Any]) -> str:
    """Return the format of JSON by the envelope of its first object.

    >>> _json_format({"payload": {"op": "c", "source": {}}}), _json_format({"op": "sold"})
    ('debezium', 'jsonl')
    """
    claiming = (one for one in FORMATS.values() if one.envelope is not None and one.envelope.claims(first))
    return next(claiming, JSONL).name


def first_event(given: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the first record of a format with envelopes; empty if files do not hold lines."""
    lines = FORMATS[given["format"]].lines(path)
    return _first_object(path, given.get("kafka")) if lines else {}


def _first_object(path: str, settings: str | None) -> dict[str, Any]:
    """Return the first line that is an object; empty if no line is an object."""
    first = to_sample(find((path,), settings=settings, lines=JSONL.lines))
    if first is None:
        return {}
    try:
        with open_stream(first, settings) as stream:
            lines = stream.read(FIRST_BYTES).split(b"\n")[:_LINES]
    except UNREADABLE as error:
        raise InputError(f"{first}: {why(error, 'cannot be read as JSON lines ({})')}") from None
    return next((json.loads(line) for line in lines if is_object(line)), {})
