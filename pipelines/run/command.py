"""The arguments of `slackwater run`."""

import argparse
from collections.abc import Callable
from functools import partial

from pipelines.common.parser import count, duration, moment, named
from pipelines.common.value import Value


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("spec", metavar="SPEC", help="Path of the spec, a YAML file.")
    parser.add_argument(
        "--until",
        metavar="TIME",
        type=moment,
        help="Publish only windows that end at or before TIME (ISO 8601 with a zone). Default: now.",
    )
    parser.add_argument(
        "--shards",
        metavar="N",
        type=count,
        help="Split the privacy units into N parts, in the first run. Default: by the size of the input.",
    )
    parser.add_argument(
        "--new-release",
        metavar="NAME",
        help="Begin another release about the same people, with its own spec and folders. Both budgets add up.",
    )
    parser.add_argument(
        "--poll",
        metavar="DURATION",
        type=duration,
        help="With --streaming: time between polls for files, such as 30s. Default: 10s.",
    )
    parser.add_argument(
        "--lag",
        metavar="DURATION",
        type=duration,
        help="With --streaming: time after a window's end in which its files may arrive. Default: three polls.",
    )
    parser.add_argument(
        "--assume-complete",
        action="store_true",
        help="Publish windows that are over by the clock, even if changelog.freshness does not confirm them.",
    )


def prepare(given: argparse.Namespace, flags: list[str]) -> Callable[[], Value]:
    """Return the operation with its arguments."""
    if given.new_release is not None:
        from pipelines.run.new_release import new_release

        return partial(new_release, **named(given), options=flags)
    from pipelines.run.operation import run

    return partial(run, **named(given, "new_release"), options=flags)
