"""Table of formats. A new format is another module in this folder and a line here."""

from transforms.sources.formats.csv import CSV
from transforms.sources.formats.datastream import DATASTREAM
from transforms.sources.formats.debezium import DEBEZIUM
from transforms.sources.formats.format import Format
from transforms.sources.formats.jsonl import JSONL
from transforms.sources.formats.parquet import PARQUET
from transforms.sources.formats.snapshots import SNAPSHOTS

FORMATS: dict[str, Format] = {
    format_.name: format_ for format_ in (PARQUET, CSV, JSONL, DEBEZIUM, DATASTREAM, SNAPSHOTS)
}
"""Formats by name, in the order in which they are listed."""

_OF_TOPICS = [format_.name for format_ in FORMATS.values() if format_.topics]


def no_topic(name: str) -> str | None:
    """Return why records of topics cannot have this format; None if they can."""
    return None if name in _OF_TOPICS else f"topics hold one of {', '.join(_OF_TOPICS)}, not {name}"
