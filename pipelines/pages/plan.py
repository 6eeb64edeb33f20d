"""`slackwater plan --html`: a plan as a page for people, in the dress of the report."""

import argparse
from typing import Any

from pipelines.epochs.results import Result
from pipelines.pages import html, words
from pipelines.reports.plan_command import plan
from pipelines.reports.plan_explained import explained_text
from pipelines.reports.plan_text import HEADING, rows_of
from pipelines.spec.load import Spec, load
from pipelines.spec.paths import within
from privacy.upward import shown
from transforms.common.errors import SpecError
from transforms.common.sinks import write_text


def plan_page(arguments: argparse.Namespace, flags: list[str]) -> Result:
    """What `plan` says, also as a page."""
    output: str = arguments.html
    if not output.endswith(".html"):
        raise SpecError(f"--html {output}: the name must end in .html")
    if arguments.compare or arguments.vary or arguments.target:
        raise SpecError("--html: is for one plan; leave out --compare, --vary and --target")
    spec = load(arguments.spec)
    if within(output, spec.output.public):
        raise SpecError(f"--html {output}: lies in the public folder, which holds what is published and nothing else")
    document, text = plan(arguments, flags)
    write_text(output, _page(spec, document))
    return document, f"{text}\nAs a page: {output}"


def _page(spec: Spec, document: dict[str, Any]) -> str:
    budget = document["loss"]
    parts = [
        f"<h1>{html.text(document['release'])}: plan</h1>\n",
        html.paragraph(
            f"What the release will cost and how far its numbers will be off, over {document['over']}: epsilon = "
            f"{shown(budget['epsilon'])}, delta = {shown(budget['delta'])}.",
            role="lead",
        ),
        *(html.paragraph(one, role="warning") for one in document["warnings"]),
        html.section(
            "accuracy",
            "How far off numbers will be",
            [
                html.table("With 95 % probability no further from the truth", HEADING, rows_of(document), words=7),
                html.paragraph(
                    "The truth is the number after contribution bounding: `evaluate` shows what it cuts off."
                ),
                *(html.paragraph(f"{query.name}: {words.measured(query, spec)}") for query in spec.queries),
            ],
        ),
        html.section(
            "privacy",
            "What is promised",
            [
                html.paragraph(words.who(spec)),
                html.paragraph(words.what(spec)),
                html.paragraph(words.bound(spec.privacy.constraint, spec)),
                html.paragraph(document["claim"]),
                html.bullets(document["conditions"]),
                "<h3>What is not protected</h3>\n",
                html.bullets(words.NOT_PROTECTED),
            ],
        ),
        html.section(
            "explained",
            "All strategies, sensitivities and shares",
            [html.verbatim("All strategies", explained_text(document))],
        ),
    ]
    return html.page(f"{document['release']}: plan", parts)
