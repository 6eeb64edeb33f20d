"""The arguments of `slackwater show`."""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("spec", metavar="SPEC", help="Path of the spec, or of the public folder of its release.")
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        help="Write the table to FILE, which ends in .parquet, .csv, .jsonl, .md or .txt. Default: print it; of more "
        "than 2,000 rows, the first and the last ones.",
    )
    parser.add_argument(
        "--query", metavar="NAME", action="append", help="Show only this query. May repeat. Default: all queries."
    )
