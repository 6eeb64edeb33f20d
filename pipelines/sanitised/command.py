"""The arguments of `slackwater sanitise`."""

import argparse
from collections.abc import Callable
from functools import partial

from pipelines.common.parser import named
from pipelines.common.value import Value


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("spec", metavar="SPEC", help="Path of a spec of sanitised records, a YAML file.")
    parser.add_argument("--plan", action="store_true", help="Show the cost and the error only; reads no records.")
    parser.add_argument("--estimates", metavar="FILE", help="Also write estimates from all sanitised records to FILE.")


def prepare(given: argparse.Namespace, flags: list[str]) -> Callable[[], Value]:
    """Return the operation with its arguments."""
    from pipelines.sanitised.operation import plan_records, sanitise

    return partial(plan_records, given.spec) if given.plan else partial(sanitise, **named(given, "plan"))
