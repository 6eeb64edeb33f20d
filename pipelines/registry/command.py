"""The arguments of `slackwater registry`."""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("spec", metavar="SPEC", help="Path of the spec, a YAML file with the section about.")
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        default="registry.yaml",
        help="Write the entry to FILE, which ends in .yaml. Default: %(default)s.",
    )
