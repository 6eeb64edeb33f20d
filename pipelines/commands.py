"""The commands of `slackwater`, each where its room is; `pipelines.cli` reads their arguments."""

import argparse
from collections.abc import Callable, Mapping

from pipelines.changelog.command import changelog
from pipelines.epochs.results import Result
from pipelines.epochs.run import run
from pipelines.local.estimate import estimate_local
from pipelines.local.plan import plan_local
from pipelines.pages.plan import plan_page
from pipelines.pages.report import report
from pipelines.reports.answer import answer
from pipelines.reports.evaluate import evaluate
from pipelines.reports.ledger import ledger
from pipelines.reports.metrics import metrics
from pipelines.reports.new_release import new_release
from pipelines.reports.plan_command import plan
from pipelines.reports.show import show
from pipelines.reports.smooth import smooth
from pipelines.sanitised.command import sanitise


def _run(arguments: argparse.Namespace, flags: list[str]) -> Result:
    return run(arguments, flags) if arguments.new_release is None else new_release(arguments, flags)


def _local(arguments: argparse.Namespace, flags: list[str]) -> Result:
    return (plan_local if arguments.local == "plan" else estimate_local)(arguments, flags)


def _plan(arguments: argparse.Namespace, flags: list[str]) -> Result:
    return plan(arguments, flags) if arguments.html is None else plan_page(arguments, flags)


COMMANDS: Mapping[str, Callable[[argparse.Namespace, list[str]], Result]] = {
    "answer": answer,
    "changelog": changelog,
    "evaluate": evaluate,
    "ledger": ledger,
    "local": _local,
    "metrics": metrics,
    "plan": _plan,
    "report": report,
    "run": _run,
    "sanitise": sanitise,
    "show": show,
    "smooth": smooth,
}
