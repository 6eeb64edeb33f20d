"""The arguments of `slackwater changelog`."""

import argparse
import sys
from collections.abc import Callable

from pipelines.common.parser import column_type, column_values, named, share
from pipelines.common.value import Value


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    add = parser.add_argument
    add(
        "source",
        metavar="SRC",
        help="Path of a spec; or a glob of files in quotes, or a Kafka topic, which the options below describe.",
    )
    add(
        "-o",
        dest="output",
        metavar="DST",
        help="Write the changelog as Parquet to DST, a new and private folder. Required without --suggest.",
    )
    add("--suggest", action="store_true", help="Print a spec to start from.")
    add(
        "--bad-rows",
        metavar="SHARE",
        type=share,
        help="Share of rows that may be unusable, at least 0 and below 1. Default: 0, or as the spec says.",
    )
    _source(parser)


def _source(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that describe a source without a spec."""
    add = parser.add_argument
    add(
        "--format", metavar="NAME", help="Format of the files. Default: recognised by their names and the first object."
    )
    add(
        "--entry",
        metavar="COLUMN",
        help="Column with the key of the entry. Default for Datastream: the primary key. Otherwise required.",
    )
    add(
        "--unit",
        metavar="COLUMN",
        help="Column that names the entry's owner, if each change has it. Default: entries have no owner.",
    )
    add(
        "--time",
        metavar="COLUMN",
        help="Column with the time of the change. Required without --from, if the format does not define it.",
    )
    add(
        "--from",
        dest="from_",
        metavar="COLUMN",
        help="Column with the start of the stay, if each row is a stay. Requires --to.",
    )
    add(
        "--to",
        metavar="COLUMN",
        help="Column with the end of the stay, if each row is a stay; empty while it lasts. Requires --from.",
    )
    add(
        "--before",
        metavar="NAME",
        help="Prefix of columns, or struct column, with the state before the change. "
        "Default: the files hold new values only.",
    )
    add(
        "--after",
        metavar="NAME",
        help="Prefix of columns, or struct column, with the state after the change. "
        "Default: no prefix. Required if the files have structs.",
    )
    _columns(parser)


def _columns(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that describe deletions, order, times and types of a source without a spec."""
    add = parser.add_argument
    add(
        "--deleted",
        metavar="COLUMN=A,B",
        type=column_values,
        help="Column that marks deletions, with its values. Default: a deletion has no values in other columns.",
    )
    add(
        "--order",
        metavar="COLUMN",
        action="append",
        help="Column that orders changes of the same time. May repeat. Default: as the format defines.",
    )
    add(
        "--timezone",
        metavar="ZONE",
        help="Time zone of times that name none, such as Europe/Paris. Without it, such times are invalid.",
    )
    add(
        "--types",
        metavar="COLUMN=TYPE",
        action="append",
        type=column_type,
        help="Type of a column, such as age=int64. May repeat. Default: text in CSV and JSON, else the file's type.",
    )
    add(
        "--nulls",
        metavar="TEXT",
        action="append",
        help="Text that means null in CSV files, in addition to an empty cell without quotes. May repeat.",
    )
    add(
        "--every", metavar="DURATION", help="Time between two snapshots of a table, such as 1d. Required for snapshots."
    )
    add(
        "--kafka",
        metavar="FILE",
        help="File with the settings of Kafka's client, for a topic (kafka://HOST:PORT/TOPIC).",
    )


def prepare(given: argparse.Namespace, flags: list[str]) -> Callable[[], Value]:
    """Return the operation with its arguments."""
    from pipelines.changelog.operation import changelog

    def checked() -> Value:
        types = None if given.types is None else dict(given.types)
        deleted = None if given.deleted is None else dict([given.deleted])
        made = changelog(**{**named(given), "types": types, "deleted": deleted}, options=flags)
        if made.folder is not None and made.spec is not None and not given.json:
            print(made.checked(), file=sys.stderr)
        return made

    return checked
