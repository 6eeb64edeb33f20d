"""The arguments of `slackwater init`."""

import argparse
import sys
from collections.abc import Callable
from functools import partial

from pipelines.common.parser import named
from pipelines.common.value import Value


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    add = parser.add_argument
    add("spec", metavar="SPEC", help="Path of the spec to write. An existing file is not overwritten.")
    add("--path", metavar="FILES", help="A file of changes, or a glob in quotes.")
    add("--entry", metavar="COLUMN", help="Column with the key of the entry.")
    add("--time", metavar="COLUMN", help="Column with the time of the change, or with the start of a stay.")
    add(
        "--to",
        metavar="COLUMN",
        help="Column with the end of a stay, if each row is a stay. Default: a row is a change.",
    )
    add(
        "--deleted",
        metavar="COLUMN=A,B",
        help="Column that marks deletions, with its values. Default: a deletion has no values in other columns.",
    )
    add(
        "--unit",
        metavar="COLUMN",
        help="Who is protected: `entry`, each entry by itself, or the column that names the owner. Default: entry.",
    )
    add("--timezone", metavar="ZONE", help="Time zone of dates, and of times without a zone. Default: UTC.")
    add(
        "--span",
        metavar="DURATION",
        help="Protect what a privacy unit does in any period of this length; `ever`: all it ever does. Default: 14d.",
    )
    add("--entries", metavar="N", help="Number of entries of an owner that count at the same time. Default: 1.")
    add("--at-most", metavar="N", help="With --span ever: number of changes of a privacy unit that count. Default: 4.")
    add("--epsilon", metavar="N", help="Privacy budget of everything that is ever published. Default: 1.0.")
    add(
        "--start",
        metavar="TIME",
        help="Start of the first window, a date or ISO 8601 with a zone. Default: first Monday of the year.",
    )
    add("--every", metavar="DURATION", help="Length of a window, such as 1d. Default: 1w.")
    add("--until", metavar="TIME", help="End of the last window. Default: the release has no end.")
    add("--by", metavar="COLUMN=A,B", help="Count by these values of a column. Default: one count of all entries.")


def prepare(given: argparse.Namespace, flags: list[str]) -> Callable[[], Value]:
    """Return the operation with its arguments; on a terminal, ask for missing answers."""
    if sys.stdin.isatty():
        from pipelines.init.dialogue import ask

        return partial(ask, **named(given))
    from pipelines.init.operation import init

    return partial(init, **named(given))
