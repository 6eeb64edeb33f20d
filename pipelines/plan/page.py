"""`slackwater plan --html`: a plan as a page for people, styled like the report."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from pipelines.common.arguments import Moment, SpecLike, refuse_ending, refuse_inside, spec_of
from pipelines.pages import html as pages
from pipelines.pages import words
from pipelines.pages.subject import covered
from pipelines.plan.explained import HEADING as COLUMNS
from pipelines.plan.explained import explained_notes, explained_rows
from pipelines.plan.operation import Planned, plan
from pipelines.plan.table import HEADING, found_text, rows_of
from pipelines.spec.load import Spec
from privacy.upward import shown
from transforms.common.sinks import write_text


def plan_page(spec: SpecLike, html: str | Path, *, until: Moment = None, explain: bool = False) -> Planned:
    """Plan a release, and write the plan as a page for people.

    Args:
        spec: The path of a spec, or what `load` returns.
        html: Path of the page, which ends in `.html`.
        until, explain: As of `plan`.

    Raises:
        SpecError: As `plan`; or the page cannot be there.
    """
    output = str(html)
    refuse_ending("html", output, [".html"])
    spec = spec_of(spec)
    refuse_inside("html", output, spec.output.public)
    planned = plan(spec, until=until, explain=explain)
    write_text(output, _page(spec, planned.document))
    return replace(planned, page=output)


def _page(spec: Spec, document: dict[str, Any]) -> str:
    epsilon, delta = document["loss"]["epsilon"], document["loss"]["delta"]
    parts: list[str | pages.PageSection] = [
        f"<h1>{pages.text(document['release'])}: plan</h1>\n",
        pages.paragraph(
            f"The cost of the release and the margins of error of its numbers, over {document['over']}. Epsilon is "
            f"{shown(epsilon)} and delta is {shown(delta)} for {covered(spec)}.",
            role="lead",
        ),
        *map(pages.paragraph, found_text(document)),
        *(pages.paragraph(one, role="warning") for one in document["warnings"]),
        pages.section(
            "accuracy",
            "Margins of error",
            [
                pages.table("95 % margins of error", HEADING, rows_of(document), words=7),
                pages.paragraph(
                    "Errors are relative to the number after contribution bounding: `evaluate` shows what it cuts off."
                ),
                pages.bullets(f"{query.name}: {' '.join(words.measured(query, '', spec))}" for query in spec.queries),
            ],
        ),
        pages.section(
            "privacy",
            "What is promised",
            [
                pages.paragraph(words.who(spec)),
                pages.paragraph(words.what(spec)),
                *(pages.paragraph(text) for text in words.how_well(spec, epsilon, delta)),
                pages.paragraph(words.bound(spec.privacy.constraint, spec)),
                pages.heading("What is not protected"),
                pages.bullets(words.not_protected(spec, delta)),
                pages.heading("The claim and its conditions"),
                pages.paragraph(document["claim"]),
                pages.bullets(document["conditions"]),
            ],
        ),
        pages.section(
            "explained",
            "All strategies, sensitivities and shares",
            [
                pages.table("All strategies", COLUMNS, explained_rows(document), words=5),
                pages.bullets(explained_notes(document)),
            ],
        ),
    ]
    return pages.page(f"{document['release']}: plan", parts)
