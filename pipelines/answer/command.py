"""The arguments of `slackwater answer`."""

import argparse

from pipelines.common.parser import length, moment


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("spec", metavar="SPEC", help="Path of the spec, or of the public folder of its release.")
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="Add up the cells that satisfy CONDITION, such as 'age >= 18 and age < 65'. Default: all cells.",
    )
    parser.add_argument("--query", metavar="NAME", help="Name of the query. Required if the release has several.")
    parser.add_argument(
        "--kind",
        metavar="KIND",
        help="Kind of numbers: level, change, sliding, entered or left. Default: level, or the first that is "
        "published.",
    )
    parser.add_argument(
        "--width",
        metavar="DURATION",
        type=length,
        help="Width of sliding windows, such as 7d. Required if there are several.",
    )
    parser.add_argument(
        "--minus-where",
        metavar="CONDITION",
        help="Subtract the sum of the cells that satisfy CONDITION, to compare cells.",
    )
    parser.add_argument(
        "--window", metavar="TIME", type=moment, help="Answer for the window that ends at TIME. Default: all windows."
    )
    parser.add_argument(
        "--minus",
        metavar="TIME",
        type=moment,
        help="Subtract the sum of the window that ends at TIME. Requires --window.",
    )
