"""The arguments of `slackwater changelog` and `init`. Beam is not imported here: it is slow, `--help` should not be."""

import argparse

_SUMMARY = "private: any changelog as Parquet, checked; and a spec to start from"


def add_changelog(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to those of the parser."""
    added = commands.add_parser("changelog", help=_SUMMARY, description=_SUMMARY, allow_abbrev=False)
    added.set_defaults(command="changelog")
    added.add_argument(
        "source", metavar="SRC", help="a spec, or a glob of files, or a topic, that the flags below describe"
    )
    added.add_argument("-o", dest="output", metavar="DST", help="a new folder for the Parquet changelog, private")
    added.add_argument("--suggest", action="store_true", help="print a spec to start from")
    added.add_argument("--json", action="store_true", help="print one JSON document")
    added.add_argument("--bad-rows", metavar="SHARE", type=_share, help="of rows that may be unusable (default: 0)")
    added.add_argument("--format", metavar="NAME", help="format of the files (default: by name and first object)")
    added.add_argument("--entry", metavar="COLUMN", help="key of the entry")
    added.add_argument("--unit", metavar="COLUMN", help="column that names the owner, if it belongs to the mutation")
    added.add_argument("--time", metavar="COLUMN", help="when the change happened")
    added.add_argument("--before", metavar="NAME", help="prefix or struct column of the state before")
    added.add_argument("--after", metavar="NAME", help="prefix or struct column of the state after")
    added.add_argument("--order", metavar="COLUMN", action="append", help="orders changes of one time; may repeat")
    added.add_argument("--timezone", metavar="ZONE", help="zone of times without one, such as Europe/Paris")
    added.add_argument("--types", metavar="COLUMN=TYPE", action="append", help="type of a column; may repeat")
    added.add_argument("--nulls", metavar="TEXT", action="append", help="a text that is null in CSV; may repeat")
    added.add_argument("--every", metavar="DURATION", help="how far apart snapshots are, such as 1d")
    added.add_argument(
        "--kafka", metavar="FILE", help="settings of Kafka's client, for a topic (kafka://HOST:PORT/TOPIC)"
    )


def add_init(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `init`; what it is not told it asks for on a terminal."""
    summary = "a first spec, from a few questions or flags; plan takes it as it is"
    added = commands.add_parser("init", help=summary, description=summary, allow_abbrev=False)
    added.set_defaults(command="init")
    added.add_argument("spec", metavar="SPEC", help="the file to write; nothing is overwritten")
    added.add_argument("--path", metavar="FILES", help="a file of changes, or a glob in quotes")
    added.add_argument("--entry", metavar="COLUMN", help="key of the entry")
    added.add_argument("--time", metavar="COLUMN", help="when the change happened")
    added.add_argument(
        "--unit", metavar="COLUMN", help="who is protected: entry, or the owner's column (default: entry)"
    )
    added.add_argument("--timezone", metavar="ZONE", help="zone of dates, and of times that name none (default: UTC)")
    added.add_argument(
        "--span", metavar="D", help="protect all that a unit does in any time of this length, or: ever (default: 14d)"
    )
    added.add_argument("--entries", metavar="N", help="entries of an owner that count at the same time (default: 1)")
    added.add_argument("--at-most", metavar="N", help="changes of a unit that count, with --span ever (default: 4)")
    added.add_argument("--epsilon", metavar="N", help="the budget of all that is ever published (default: 1.0)")
    added.add_argument("--start", metavar="T", help="when the first window begins (default: first Monday of the year)")
    added.add_argument("--every", metavar="D", help="how long a window is (default: 1w)")
    added.add_argument("--until", metavar="T", help="when the last window ends (default: never)")
    added.add_argument("--by", metavar="COLUMN=V,V", help="count by these values of a column")
    added.add_argument("--json", action="store_true", help="print one JSON document")


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"expected a share of at least 0 and below 1, not {text!r}")
    return share
