"""The arguments of `slackwater evaluate`."""

import argparse
from collections.abc import Callable
from functools import partial

from pipelines.common.errors import ArgumentError
from pipelines.common.parser import count, moment, named
from pipelines.common.value import Value


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("spec", metavar="SPEC", help="Path of the spec, a YAML file.")
    parser.add_argument(
        "--until",
        metavar="TIME",
        type=moment,
        help="Evaluate only windows that end at or before TIME (ISO 8601 with a zone). Default: now.",
    )
    parser.add_argument(
        "--shards",
        metavar="N",
        type=count,
        help="Split the privacy units into N parts. Default: by the size of the input.",
    )
    parser.add_argument(
        "--runs", metavar="N", type=count, default=10, help="Sample the noise N times. Default: %(default)s."
    )
    parser.add_argument(
        "--truth", metavar="FILE", help="Write the numbers without noise to FILE, a private Parquet file."
    )
    parser.add_argument(
        "--compare", metavar="SPEC", nargs="+", help="Show the errors of these specs next to those of SPEC."
    )


def prepare(given: argparse.Namespace, flags: list[str]) -> Callable[[], Value]:
    """Return the operation with its arguments."""
    if given.compare is None:
        from pipelines.evaluate.operation import evaluate

        return partial(evaluate, **named(given, "compare"), options=flags)
    if given.truth is not None:
        raise ArgumentError("truth", "is for one spec; leave out --compare")
    from pipelines.evaluate.compared import compare_errors

    return partial(compare_errors, **named(given, "truth"), options=flags)
