"""`slackwater evaluate --compare`: the true errors of several specs side by side. NOT FOR RELEASE."""

import argparse
from typing import Any

from pipelines.epochs.results import Result
from pipelines.reports.evaluate import NOTICE, evaluate
from pipelines.reports.plan_report import series_text
from pipelines.reports.plan_text import columns
from transforms.common.errors import SpecError

LOOK = (
    "To choose a strategy, a policy or its parameters by these errors is a look at the data, which no accounting "
    "covers. On a changelog that `slackwater simulate` makes it costs nothing."
)


def evaluate_compared(arguments: argparse.Namespace, flags: list[str]) -> Result:
    """Each spec as `evaluate` has it, and the errors of numbers with one name beside each other.

    Raises:
        SpecError: exact numbers are asked for, which would be those of several specs in one file.
    """
    if arguments.truth is not None:
        raise SpecError("--truth: is for one spec; leave out --compare")
    found = []
    for path in (arguments.spec, *arguments.compare):
        alone = argparse.Namespace(**{**vars(arguments), "spec": path, "compare": None})
        document, text = evaluate(alone, flags)
        if "queries" not in document:  # no window is over
            return document, text
        found.append({"spec": path, **{key: document[key] for key in ("release", "windows", "queries", "warnings")}})
    document = {"notice": NOTICE, "look": LOOK, "runs": arguments.runs, "specs": found}
    return document, _text(document)


def _text(document: dict[str, Any]) -> str:
    rows = []
    for of_spec in document["specs"]:
        for query in of_spec["queries"]:
            for number in query["numbers"]:
                shown = (
                    "-" if number[key] is None else f"{number[key]:.4g}" for key in ("rmse_total", "bias", "truth")
                )
                rows.append([query["name"], series_text(number), of_spec["spec"], query["strategy"], *shown])
    # Numbers with one name stand together, in the order of the first spec.
    first = list(dict.fromkeys((row[0], row[1]) for row in rows))
    rows.sort(key=lambda row: first.index((row[0], row[1])))
    heading = ["query", "number", "spec", "strategy", "in total", "bias", "truth"]
    warned = [f"warning: {of['spec']}: {one}" for of in document["specs"] for one in of["warnings"]]
    return "\n".join([document["notice"], document["look"], *warned, "", *columns([heading, *rows])])
