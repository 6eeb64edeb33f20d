"""The page of a survey: what its numbers are, what changed, what may not be concluded, and what is promised."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipelines.local import quality, words
from pipelines.local.facts import disclosure
from pipelines.local.promise import CONDITIONS, in_the_open, statement
from pipelines.local.quality import Told
from pipelines.local.stated import KEY, over_all, part_of, stated_of
from pipelines.local.survey import Survey
from pipelines.pages import html
from pipelines.pages.charts import Chart, Times, chart_data
from pipelines.pages.course import course
from pipelines.pages.definitions import mostly_noise
from pipelines.pages.noise import noise_section
from pipelines.pages.numbers import Numbers
from pipelines.published.labels import Labels
from pipelines.report.drawing import with_differences
from pipelines.report.facts import StatedQuery
from pipelines.report.label import Stated
from pipelines.report.parts import ReportPart
from pipelines.report.sentences import sentences_of, without_kind
from pipelines.report.tables import differences_table, plain_table
from pipelines.spec.durations import length_text
from pipelines.spec.times import end_name
from privacy.counted import counted
from privacy.local.document import digest
from privacy.upward import shown

MOST = 2
"""Most answers whose highest and lowest levels the page begins with."""

_BOUNDED = "Numbers describe the answers that count (glossary: contribution bound)."


def page_of(
    survey: Survey,
    found: Sequence[Numbers],
    *,
    signals: Sequence[dict[str, Any]],
    warnings: Sequence[str],
    told: Told | None,
) -> str:
    """Return the page as HTML.

    Args:
        survey: The survey.
        found: Its numbers, a series for each kind.
        signals: For each answer the size of its noise, compared with the numbers.
        warnings: Numbers that are mostly noise.
        told: Which reports count; None if the file of numbers does not state it.
    """
    windows = len(found[0].value)
    complete = windows == survey.design.windows and told is not None and told.counted == words.expected(survey)
    part = part_of(survey, found)
    query = stated_of(survey, part, complete=complete)
    drawn = chart_data(
        Chart(
            name=query.label,
            kinds=[one.kind for one in query.series],
            keys=[KEY],
            labels=lambda cells: [[survey.names[cell]] for cell in cells],
            zero=True,
            called="answers",
            rest="the file of estimates has all numbers",
        ),
        found,
        times=Times(start=survey.start, window=survey.every),
        queries=1,
    )
    about = Stated({**dict(survey.about), **disclosure(survey)})
    title = about.texts.get("title", survey.release)
    signed = None if told is None else told.signatures_verified
    promised = [
        html.paragraph(words.protected(survey), role="lead"),
        *about.introduction(),
        html.ended("Do not conclude:", words.CONCLUDED, "limits", "All limits"),
    ]
    strength = [
        html.paragraph(_number_of(survey, found)),
        html.paragraph(words.strength(survey)),
        html.paragraph(words.SIGNED[signed], role="" if signed else "warning"),
    ]
    begin = [f"<h1>{html.text(title)}</h1>\n", html.beside(promised, _in_short(survey, query, drawn), strength)]
    sections = [
        _answers(survey, part, query, warnings),
        _limits(survey, complete=complete),
        _reports(survey, told, complete=complete),
        _noise(survey, signals),
        _label(survey, about),
        _ledger(survey),
    ]
    terms = words.glossary(survey, [*begin, *(one.html for one in sections)])
    glossary = html.section("glossary", "Glossary", [html.facts(terms)])
    parts = [*begin, html.with_contents([*sections, glossary])]
    return html.page(f"{title}: results", parts, data={"queries": [with_differences(drawn, query)]}, copies=True)


def _number_of(survey: Survey, found: Sequence[Numbers]) -> str:
    """Return how many numbers there are, of how many windows."""
    windows = len(found[0].value)
    return (
        f"{counted(sum(one.value.size for one in found), 'number')} from {counted(windows, 'window')} of "
        f"{length_text(survey.every)}, up to {end_name(survey.until(windows))}, estimated from reports that "
        f"{counted(survey.people, 'device')} randomised. A window is the period that a number is about."
    )


def _answers(survey: Survey, part: ReportPart, query: StatedQuery, warnings: Sequence[str]) -> html.PageSection:
    return html.section(
        "query-0",
        query.label,
        [
            *sentences_of(query, warnings),
            html.drawn(0),
            html.paragraph(query.coverage, role="note"),
            differences_table(query, "" if survey.design.reported == "once" else _BOUNDED),
            html.compared(0),
            plain_table(part, query, survey, Labels(), queries=1, others="the file of estimates has"),
        ],
    )


def _limits(survey: Survey, *, complete: bool) -> html.PageSection:
    return html.section("limits", "What may not be concluded", [html.bullets(words.limits(survey, complete=complete))])


def _in_short(survey: Survey, query: StatedQuery, drawn: dict[str, Any]) -> list[str]:
    """Return how levels differ between the first window and the last, and which windows are highest and lowest."""
    said = [f"{without_kind(one, query)}." for one in over_all(survey, query)]
    for series in [one for one in drawn["series"] if one["kind"] == "level"] if said else []:
        courses = [course({**series, "cells": [line]}) for line in series["cells"]]
        named = zip(drawn["cells"], courses, strict=True)  # of many answers, those that are drawn
        said += [f"{name}: {text}." for (name,), text in named if text.startswith("highest")][:MOST]
    heading = "In short (95 % intervals unless stated):"
    return [html.paragraph(heading, role="latest"), html.bullets(said)] if said else []


def _reports(survey: Survey, told: Told | None, *, complete: bool) -> html.PageSection:
    of_each = html.paragraph(words.reported(survey))
    if told is None:
        parts = [of_each, html.paragraph("The file of numbers does not say which reports were left out.")]
    else:
        left, said = quality.lines(told), f"{counted(told.counted, 'report')} are counted"
        said = f"{said}, and none is missing" if complete else said
        parts = [
            of_each,
            html.paragraph(f"{said}.{'' if left else ' None was left out.'}"),
            *(html.paragraph(f"{line[0].upper()}{line[1:]}.", role="warning") for line in quality.doubts(told)),
            *([html.bullets(f"{line[0].upper()}{line[1:]}." for line in left)] if left else []),
        ]
    return html.section("reports", "Reports", parts)


def _noise(survey: Survey, signals: Sequence[dict[str, Any]]) -> html.PageSection:
    parts = []
    for kind in survey.publish:
        halves = [one["half"] for one in signals if one["kind"] == kind and one["half"] is not None]
        if halves:
            parts.append(f"{kind} {100 * float(np.median(halves)) / survey.people:.2g} %")
    people = counted(survey.people, "person")
    typical = f" Half of a typical interval, as a share of {people}: {', '.join(parts)}." if parts else ""
    return noise_section(
        [(f"{one['kind']}: {one['answer']}", one) for one in signals],
        intro=(
            "Every report is partly random, and only many of them together carry information. The 95 % interval of a "
            "number contains the number without noise with at least 95 % probability, each alone: of a thousand "
            f"intervals up to about fifty do not.{typical}"
        ),
        caption="Noise compared with the numbers, of one answer in one window",
        heading="answer",
        judged=mostly_noise(),
    )


def _label(survey: Survey, about: Stated) -> html.PageSection:
    """Return the section with the points of the disclosure, how strong the promise is, and folded the exact claim."""
    design, unprotected = survey.design, words.not_protected(survey)
    feared = in_the_open(design, survey.people)
    points = [(name, unprotected if said == " ".join(unprotected) else said) for name, said in about.points]
    return html.section(
        "label",
        "Privacy label",
        [
            html.facts(points),
            *(html.paragraph(one) for one in words.how_well(survey)),
            *([] if feared is None else [html.paragraph(f"{feared[0].upper()}{feared[1:]}.", role="warning")]),
            html.folded(
                "What a device sends, and when",
                [
                    html.paragraph(words.always(survey)),
                    html.bullets(words.devices(survey)),
                ],
                for_paper=True,
            ),
            html.folded(
                "The claim and its conditions",
                [
                    html.paragraph(statement(design)),
                    html.bullets(CONDITIONS),
                    html.paragraph(f"Design {digest(design)}", role="digest"),
                ],
                for_paper=True,
            ),
        ],
    )


def _ledger(survey: Survey) -> html.PageSection:
    design = survey.design
    row = ("each device, for all that it sends", shown(design.epsilon), shown(design.delta))
    return html.section(
        "ledger",
        "Ledger",
        [
            html.table("What the whole survey costs", ("", "epsilon", "delta"), [row]),
            html.paragraph(
                "Only the device knows how much of it is spent so far; it is never more. Another estimate costs "
                "nothing: reports are public once they are randomised."
            ),
        ],
    )
