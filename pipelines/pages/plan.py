"""`slackwater plan --html`: a plan as a page for people, styled like the report."""

import argparse
from typing import Any

from pipelines.epochs.results import Result
from pipelines.pages import html, words
from pipelines.reports.plan_command import plan
from pipelines.reports.plan_explained import HEADING as COLUMNS
from pipelines.reports.plan_explained import explained_notes, explained_rows
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
    epsilon, delta = document["loss"]["epsilon"], document["loss"]["delta"]
    parts = [
        f"<h1>{html.text(document['release'])}: plan</h1>\n",
        html.paragraph(
            f"What the release will cost and how far off its numbers will be, over {document['over']}. Epsilon is "
            f"{shown(epsilon)} and delta is {shown(delta)} for {words.covered(spec)}.",
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
                html.bullets(f"{query.name}: {' '.join(words.measured(query, '', spec))}" for query in spec.queries),
            ],
        ),
        html.section(
            "privacy",
            "What is promised",
            [
                html.paragraph(words.who(spec)),
                html.paragraph(words.what(spec)),
                *(html.paragraph(text) for text in words.how_well(spec, epsilon, delta)),
                html.paragraph(words.bound(spec.privacy.constraint, spec)),
                html.heading("What is not protected"),
                html.bullets(words.not_protected(spec, delta)),
                html.heading("The claim, and what it rests on"),
                html.paragraph(document["claim"]),
                html.bullets(document["conditions"]),
            ],
        ),
        html.section(
            "explained",
            "All strategies, sensitivities and shares",
            [
                html.table("All strategies", COLUMNS, explained_rows(document), words=5),
                html.bullets(explained_notes(document)),
            ],
        ),
    ]
    return html.page(f"{document['release']}: plan", parts)
