"""The arguments of `slackwater plan`."""

import argparse
from collections.abc import Callable
from functools import partial

from pipelines.common.errors import ArgumentError
from pipelines.common.parser import moment, named
from pipelines.common.value import Value

_OF_SEVERAL = ("compare", "vary", "target")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("spec", metavar="SPEC", help="Path of the spec, a YAML file.")
    parser.add_argument(
        "--until",
        metavar="TIME",
        type=moment,
        help="Average errors over the windows that end at or before TIME (ISO 8601 with a zone). Default: the "
        "schedule's end, or now if it has none. Before the first window has closed: the first year.",
    )
    parser.add_argument(
        "--explain", action="store_true", help="Show all strategies, sensitivities and shares of the budget."
    )
    parser.add_argument("--html", metavar="FILE", help="Also write the plan as an HTML page to FILE.")
    parser.add_argument(
        "--compare", metavar="SPEC", nargs="+", help="Show the plans of these specs next to that of SPEC."
    )
    parser.add_argument(
        "--vary",
        metavar="KEY=A,B",
        action="append",
        help="Compare the plan for several values of KEY, for example privacy.epsilon=0.5,1,2. May repeat.",
    )
    parser.add_argument(
        "--target",
        metavar="QUERY=N",
        help="Find the smallest epsilon with which the 95 %% margin of error of QUERY is at most N.",
    )


def prepare(given: argparse.Namespace, flags: list[str]) -> Callable[[], Value]:
    """Return the operation with its arguments."""
    several = {name: value for name in _OF_SEVERAL if (value := getattr(given, name))}
    if several and given.html is not None:
        raise ArgumentError("html", "is for one plan; leave out --compare, --vary and --target")
    if several:
        from pipelines.plan.variants import compare_plans

        return partial(compare_plans, given.spec, until=given.until, **several)
    if given.html is not None:
        from pipelines.plan.page import plan_page

        return partial(plan_page, **named(given, *_OF_SEVERAL))
    from pipelines.plan.operation import plan

    return partial(plan, **named(given, "html", *_OF_SEVERAL))
