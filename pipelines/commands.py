"""The commands of `slackwater`, each where its room is; `pipelines.cli` reads their arguments.

A command is imported when it is asked for, and no other with it: half of a short command's time is imports.
"""

import argparse
from collections.abc import Callable
from typing import Any

Command = Callable[[argparse.Namespace, list[str]], tuple[dict[str, Any], str]]
"""From arguments and flags to a JSON document and its text."""


def imported(arguments: argparse.Namespace) -> Command:
    """The command that these arguments are for."""
    match arguments.command:
        case "answer":
            from pipelines.reports.answer import answer

            return answer
        case "changelog":
            from pipelines.changelog.command import changelog

            return changelog
        case "compact":
            from pipelines.epochs.compact import compact

            return compact
        case "completion":
            from pipelines.completion import completion

            return completion
        case "evaluate" if arguments.compare is not None:
            from pipelines.reports.evaluate_compared import evaluate_compared

            return evaluate_compared
        case "evaluate":
            from pipelines.reports.evaluate import evaluate

            return evaluate
        case "init":
            from pipelines.changelog.init import init

            return init
        case "ledger":
            from pipelines.reports.ledger import ledger

            return ledger
        case "local" if arguments.local == "plan":
            from pipelines.local.plan import plan_local

            return plan_local
        case "local" if arguments.local == "report":
            from pipelines.pages.survey import report_of_survey

            return report_of_survey
        case "local":
            from pipelines.local.estimate import estimate_local

            return estimate_local
        case "metrics":
            from pipelines.reports.metrics import metrics

            return metrics
        case "plan" if arguments.html is not None:
            from pipelines.pages.plan import plan_page

            return plan_page
        case "plan":
            from pipelines.reports.plan_command import plan

            return plan
        case "report":
            from pipelines.pages.report import report

            return report
        case "run" if arguments.new_release is not None:
            from pipelines.reports.new_release import new_release

            return new_release
        case "run":
            from pipelines.epochs.run import run

            return run
        case "sanitise":
            from pipelines.sanitised.command import sanitise

            return sanitise
        case "show":
            from pipelines.reports.show import show

            return show
        case "simulate":
            from pipelines.changelog.simulate import simulate

            return simulate
        case "smooth":
            from pipelines.reports.smooth import smooth

            return smooth
    raise AssertionError(f"{arguments.command} is no command")
