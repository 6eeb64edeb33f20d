"""The arguments of `slackwater compact`."""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("spec", metavar="SPEC", help="Path of the spec, a YAML file.")
