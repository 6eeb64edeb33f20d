"""The arguments of `slackwater local` and of its commands."""

import argparse
from collections.abc import Callable
from functools import partial

from pipelines.common.parser import moment, named, refuse_any
from pipelines.common.value import Value

_COMMANDS = {
    "plan": "show what a survey costs each person and the error of its numbers; reads no data",
    "estimate": "estimate the number of people by answer, from the reports of their devices",
    "report": "write the numbers of a survey as one HTML page with charts",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    plan, estimate, report = (
        added.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        for name, summary in _COMMANDS.items()
    )
    for name, inner in zip(_COMMANDS, (plan, estimate, report), strict=True):
        inner.set_defaults(local=name)
    plan.add_argument("spec", metavar="SPEC", help="Path of the spec of a survey, a YAML file.")
    plan.add_argument(
        "-o", dest="output", metavar="DESIGN", help="Also write the design for all devices to DESIGN, a new file."
    )
    for inner in (estimate, report):
        inner.add_argument("design", metavar="DESIGN", help="Path of the file that `local plan -o` has written.")
    estimate.add_argument("reports", metavar="REPORTS", nargs="+", help="Files of reports, or globs in quotes.")
    estimate.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        help="Write the numbers to FILE, which ends in .parquet, .csv, .jsonl, .md or .txt. Default: print them.",
    )
    estimate.add_argument(
        "--secret", metavar="FILE", help="File with the collector's secret: count only reports signed with it."
    )
    estimate.add_argument(
        "--until",
        metavar="TIME",
        type=moment,
        help="Estimate only windows that end at or before TIME (ISO 8601 with a zone). Default: now.",
    )
    report.add_argument("estimates", metavar="FILE", help="Path of the file that `local estimate -o` has written.")
    report.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        default="report.html",
        help="Write the page to FILE, which ends in .html. Default: %(default)s.",
    )


def prepare(given: argparse.Namespace, flags: list[str]) -> Callable[[], Value]:
    """Return the operation with its arguments."""
    if given.local == "estimate":
        from pipelines.local.estimate import estimate

        return partial(estimate, **named(given, "local"), options=flags)
    refuse_any(flags, f"local {given.local}")
    if given.local == "plan":
        from pipelines.local.plan import plan

        return partial(plan, **named(given, "local"))
    from pipelines.local.report import report

    return partial(report, **named(given, "local"))
