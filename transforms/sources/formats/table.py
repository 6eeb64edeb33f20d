"""The table of formats. A new one is a module beside this one and a line here."""

from collections.abc import Mapping

from transforms.sources.formats.csv import CSV
from transforms.sources.formats.datastream import DATASTREAM
from transforms.sources.formats.debezium import DEBEZIUM
from transforms.sources.formats.format import Format
from transforms.sources.formats.jsonl import JSONL
from transforms.sources.formats.parquet import PARQUET
from transforms.sources.formats.snapshots import SNAPSHOTS

FORMATS: Mapping[str, Format] = {
    format_.name: format_ for format_ in (PARQUET, CSV, JSONL, DEBEZIUM, DATASTREAM, SNAPSHOTS)
}
"""By their names, in the order in which these are listed."""

_OF_TOPICS = [format_.name for format_ in FORMATS.values() if format_.topics]


def no_topic(name: str) -> str | None:
    """Why records of topics are not of this format; None if they may be."""
    return None if name in _OF_TOPICS else f"topics hold one of {', '.join(_OF_TOPICS)}, not {name}"
