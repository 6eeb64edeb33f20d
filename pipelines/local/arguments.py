"""The arguments of `slackwater local`. Beam is not imported here: it is slow, and `--help` should not be."""

import argparse
from collections.abc import Callable

_SUMMARY = "surveys whose reports each person's own device randomises"


def add_local(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", *, moment: Callable[[str], int]) -> None:
    """Add the command, with its own three."""
    parser = commands.add_parser("local", help=_SUMMARY, description=_SUMMARY, allow_abbrev=False)
    parser.set_defaults(command="local")
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    summary = "what a survey costs each person and how far off its numbers will be; reads no data"
    plan = added.add_parser("plan", help=summary, description=summary, allow_abbrev=False)
    plan.set_defaults(local="plan")
    plan.add_argument("spec", metavar="SPEC", help="the spec of a survey, a YAML file")
    plan.add_argument("-o", dest="output", metavar="DESIGN", help="a new file with the design, for all devices")
    summary = "numbers of people by answer, from the reports of their devices"
    estimate = added.add_parser("estimate", help=summary, description=summary, allow_abbrev=False)
    estimate.set_defaults(local="estimate")
    estimate.add_argument("design", metavar="DESIGN", help="the file that local plan -o has written")
    estimate.add_argument("reports", metavar="REPORTS", nargs="+", help="files of reports, or globs in quotes")
    estimate.add_argument("-o", dest="output", metavar="FILE", help="a .parquet, .csv, .jsonl, .md or .txt file")
    estimate.add_argument("--secret", metavar="FILE", help="the collector's secret: count only reports signed with it")
    estimate.add_argument("--until", metavar="T", type=moment, help="windows that have closed by then (default: now)")
    summary = "what a survey has told, as one page with charts for people"
    report = added.add_parser("report", help=summary, description=summary, allow_abbrev=False)
    report.set_defaults(local="report")
    report.add_argument("design", metavar="DESIGN", help="the file that local plan -o has written")
    report.add_argument("estimates", metavar="FILE", help="the file that local estimate -o has written")
    report.add_argument("-o", dest="output", metavar="FILE", default="report.html", help="default: report.html")
    for each in (plan, estimate, report):
        each.add_argument("--json", action="store_true", help="print one JSON document")
