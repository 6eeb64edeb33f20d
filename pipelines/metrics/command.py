"""The arguments of `slackwater metrics`."""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument(
        "spec", metavar="SPEC", help="Path of the spec of a release or of sanitised records, a YAML file."
    )
    parser.add_argument(
        "--private", action="store_true", help="Also print exact facts about people. Keep the output private."
    )
