"""The arguments of `slackwater smooth`."""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("spec", metavar="SPEC", help="Path of the spec, or of the public folder of its release.")
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        required=True,
        help="Write the table to FILE, which ends in .parquet, .csv, .jsonl, .md or .txt.",
    )
    parser.add_argument(
        "--query", metavar="NAME", action="append", help="Smooth only this query. May repeat. Default: all queries."
    )
