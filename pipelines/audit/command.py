"""The arguments of `slackwater audit`."""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("spec", metavar="SPEC", nargs="?", help="Path of the spec, a YAML file. Its data are not read.")
    parser.add_argument("--public", metavar="FOLDER", help="Check the public folder of a release instead of a spec.")
    parser.add_argument(
        "--empty",
        metavar="CONDITION",
        help="With --public: cells that are known to be empty, as a condition on the key columns, for example "
        "\"ward = 'closed'\". Their noise is tested.",
    )
    parser.add_argument(
        "--witness",
        metavar="PATH",
        help="With --public: the witness of the release (output.witness of its spec) or a copy. A folder that is older "
        "than the witness fails.",
    )
    parser.add_argument("--quick", action="store_true", help="Take at most a minute of processor time.")
    parser.add_argument("--full", action="store_true", help="Take half an hour of processor time.")
    parser.add_argument("--html", metavar="FILE", help="Also write the result as an HTML page to FILE.")
