"""The arguments of `slackwater simulate`."""

import argparse

from pipelines.common.parser import count, duration, positive, seed


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    add = parser.add_argument
    add("spec", metavar="SPEC", help="Path of the spec, whose columns, cells and windows the changelog has.")
    add(
        "-o",
        dest="output",
        metavar="FOLDER",
        required=True,
        help="Write the changelog and a spec that reads it to FOLDER, a new folder.",
    )
    add("--arrivals", metavar="N", type=positive, required=True, help="Mean number of entries that arrive in a window.")
    add("--stay", metavar="DURATION", type=duration, required=True, help="Mean length of stay of an entry, such as 5d.")
    add(
        "--change",
        metavar="DURATION",
        type=duration,
        help="Mean time between two changes of an entry, such as 2d. Default: entries do not change.",
    )
    add(
        "--burstiness",
        metavar="V",
        type=positive,
        default=0.0,
        help="Variance of the activity of windows, whose mean is 1: 0 if all are equally busy. Default: 0.",
    )
    add("--entries", metavar="N", type=positive, default=1.0, help="Mean number of entries of one owner. Default: 1.")
    add("--windows", metavar="N", type=count, help="Number of windows. Default: all, or 100 without an end.")
    add(
        "--seed",
        metavar="N",
        type=seed,
        help="Make the same changelog as an earlier call with this N. Default: random.",
    )
