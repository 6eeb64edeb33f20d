"""Formats and parsers that are fuzzed, and the folder of files that fuzzing found to reach different code."""

from pathlib import Path

FORMATS = ("csv", "jsonl", "objects", "debezium", "datastream", "avro")
"""`jsonl` has prefixes before the columns of states, `objects` has objects; `avro` is Datastream's."""

PARSERS = ("spec", "records", "survey", "condition", "design")
"""Specs of the three kinds, conditions of `where`, and the file of a survey's design."""


def kept(format_: str) -> Path:
    return Path(__file__).parent / "corpus" / format_
