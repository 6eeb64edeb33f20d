"""`slackwater local report`: the results of a survey as one page, from its design and its estimates alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.common.arguments import refuse_ending
from pipelines.common.value import Value
from pipelines.disclosure.facts import labelled
from pipelines.local import quality, words
from pipelines.local.estimated import Estimated, read_estimates
from pipelines.local.facts import disclosure
from pipelines.local.promise import CONDITIONS, how, in_the_open, sent, statement
from pipelines.local.quality import Told
from pipelines.local.stated import KEY, part_of, stated_of
from pipelines.local.survey import Survey, read_survey
from pipelines.pages import html
from pipelines.pages.charts import Chart, Times, chart_data
from pipelines.pages.definitions import mostly_noise
from pipelines.pages.noise import NAMED, noise_section
from pipelines.pages.numbers import Numbers, signal
from pipelines.published.labels import Labels
from pipelines.report.drawing import with_differences
from pipelines.report.facts import StatedQuery
from pipelines.report.parts import ReportPart
from pipelines.report.sentences import sentences_of
from pipelines.report.tables import differences_table, plain_table
from pipelines.spec.durations import length_text
from pipelines.spec.times import end_name
from privacy.counted import counted
from privacy.local.document import digest
from privacy.series import Series
from privacy.upward import shown
from transforms.common.cloud import refuse_unreachable
from transforms.common.sinks import write_text

_PARQUET = "Parquet files state it: slackwater local estimate -o with a name that ends in .parquet."
_ANSWERED = (
    "Each 90 % interval follows from both 95 % intervals, which hold at once with at least 90 % probability. Numbers "
    "describe the answers that count (glossary: contribution bound)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSurvey(Value):
    """A page with the results of a survey.

    Attributes:
        release: Name of the survey.
        until: End of the last window.
        file: Path of the page.
        signals: For each answer the size of its noise, compared with the numbers.
        warnings: Numbers that are mostly noise, and other reasons to doubt them.
    """

    release: str
    until: str
    file: str
    signals: tuple[dict[str, Any], ...] = field(repr=False)
    warnings: tuple[str, ...]

    def text(self) -> str:
        """Return the text that `slackwater local report` prints."""
        head = f"{self.release}: results up to {end_name(self.until)}, as a page in {self.file}"
        return "\n".join([head, *(f"  warning: {one}" for one in self.warnings)])


def report(design: str | Path, estimates: str | Path, *, output: str | Path = "report.html") -> ReportedSurvey:
    """Write the results of a survey as one page.

    Args:
        design: Path of the file that `local.plan` has written.
        estimates: Path of the file that `local.estimate` has written.
        output: Path of the page, which ends in `.html`.

    Raises:
        SpecError: The files do not belong together, or the page cannot be there.
    """
    file = str(output)
    refuse_ending("output", file, [".html"])
    refuse_unreachable([file], files=[str(design), str(estimates)])
    survey = read_survey(str(design))
    estimated, told = read_estimates(str(estimates), survey)
    found = [_numbers(one) for one in estimated]
    signals = [one for numbers in found for one in _signals(numbers, survey)]
    warnings = _warnings(survey, signals)
    warnings += [] if told is None else quality.warnings(told)
    write_text(file, _page(survey, found, signals, told))
    return ReportedSurvey(
        release=survey.release,
        until=survey.until(len(found[0].value)),
        file=file,
        signals=tuple(signals),
        warnings=tuple(warnings),
    )


def _numbers(of: Estimated) -> Numbers:
    return Numbers(series=Series(kind=of.kind), value=of.value, low=of.low, high=of.high, total=None)


def _signals(numbers: Numbers, survey: Survey) -> Iterator[dict[str, Any]]:
    """Yield for each answer the size of the noise, compared with the numbers."""
    for place, answer in enumerate(survey.names):
        own = slice(place, place + 1)
        one = Numbers(
            series=numbers.series,
            value=numbers.value[:, own],
            low=numbers.low[:, own],
            high=numbers.high[:, own],
            total=None,
        )
        found = signal(one, within=None)
        if found is not None:
            yield {
                "kind": numbers.series.kind,
                "answer": answer,
                "typical": found.typical,
                "half": found.half,
                "lost": found.lost,
                "noisy": found.noisy,
            }


def _warnings(survey: Survey, signals: Sequence[dict[str, Any]]) -> list[str]:
    return [f"{kind}: {text}" for kind in survey.publish if (text := _warning(kind, signals))]


def _warning(kind: str, signals: Sequence[dict[str, Any]]) -> str | None:
    of_kind = [one for one in signals if one["kind"] == kind]
    noisy = [one["answer"] for one in of_kind if one["noisy"]]
    if not of_kind:
        return "no number is known: there are no reports to compute them from."
    if not noisy:
        return None
    what = f"{len(noisy)} of {counted(len(of_kind), 'answer')}"
    which = f"{', '.join(noisy)} ({what})" if len(noisy) <= NAMED else what
    return (
        f"mostly noise: {which}: more than half of these numbers cannot be distinguished from zero. More people, or "
        "fewer or longer windows would reduce the noise."
    )


def _page(survey: Survey, found: Sequence[Numbers], signals: Sequence[dict[str, Any]], told: Told | None) -> str:
    design, windows = survey.design, len(found[0].value)
    budget = f"epsilon = {shown(design.epsilon)}" + (f", delta = {shown(design.delta)}" if design.delta else "")
    part = part_of(survey, found)
    query = stated_of(survey, part)
    parts = [
        f"<h1>{html.text(survey.release)}</h1>\n",
        html.paragraph(words.PROTECTED, role="lead"),
        html.paragraph(
            f"{counted(sum(one.value.size for one in found), 'number')} from {counted(windows, 'window')} of "
            f"{length_text(survey.every)}, up to {end_name(survey.until(windows))}, from reports that "
            f"{counted(survey.people, 'device')} randomised. Differential privacy with {budget}, for all that a device "
            "ever sends.",
        ),
        html.with_contents(
            [
                _answers(survey, part, query, _warnings(survey, signals)),
                _reports(survey, told),
                _noise(survey, signals),
                html.section("label", "Privacy label", [html.facts(labelled(disclosure(survey)))]),
                _privacy(survey),
                _ledger(survey),
                html.section("glossary", "Glossary", [html.facts(words.glossary(survey))]),
            ]
        ),
    ]
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
    return html.page(
        f"{survey.release}: results", parts, data={"queries": [with_differences(drawn, query)]}, copies=True
    )


def _answers(survey: Survey, part: ReportPart, query: StatedQuery, warnings: Sequence[str]) -> html.PageSection:
    return html.section(
        "query-0",
        query.label,
        [
            *sentences_of(query, warnings),
            html.drawn(0),
            html.paragraph(query.coverage, role="note"),
            differences_table(query, _ANSWERED),
            html.compared(0),
            plain_table(part, query, survey, Labels(), queries=1, others="the file of estimates has"),
        ],
    )


def _reports(survey: Survey, told: Told | None) -> html.PageSection:
    of_each = html.paragraph(words.reported(survey))
    if told is None:
        parts = [of_each, html.paragraph(f"The file of estimates does not say which reports were left out. {_PARQUET}")]
    else:
        parts = [
            of_each,
            html.paragraph(f"{counted(told.counted, 'report')} of design {told.design} count."),
            *(html.paragraph(f"{line[0].upper()}{line[1:]}.", role="warning") for line in quality.warnings(told)),
            html.bullets(f"{line[0].upper()}{line[1:]}." for line in quality.lines(told) or ["nothing was left out"]),
        ]
    return html.section("reports", "Reports", parts)


def _noise(survey: Survey, signals: Sequence[dict[str, Any]]) -> html.PageSection:
    parts = []
    for kind in survey.publish:
        halves = [one["half"] for one in signals if one["kind"] == kind and one["half"] is not None]
        if halves:
            parts.append(f"{100 * float(np.median(halves)) / survey.people:.2g}\u00a0% for {kind}")
    typical = f" A typical half width is {', '.join(parts)} of {counted(survey.people, 'person')}." if parts else ""
    return noise_section(
        [(f"{one['kind']}: {one['answer']}", one) for one in signals],
        intro=(
            "Every report is partly random, and only many of them together carry information. The 95 % interval of a "
            "number contains the number without noise with at least 95 % probability, each alone: of a thousand "
            f"intervals up to about fifty do not.{typical}"
        ),
        caption="Noise compared with the numbers, of one answer in one window",
        heading="number",
        judged=(
            f"{mostly_noise()} The intervals do not show whether people who do not report differ from the others, "
            "and whether people change more often than the device counts."
        ),
    )


def _privacy(survey: Survey) -> html.PageSection:
    design = survey.design
    feared = in_the_open(design, survey.people)
    rows = [
        (
            f"{one['people']:.1%} of people",
            how(one),
            one["every"] or "once",
            f"{one['of_a_person']:,}",
            f"{one['can_differ']:,}",
        )
        for one in sent(design, survey.every)
    ]
    return html.section(
        "privacy",
        "What is promised",
        [
            html.heading("Who is protected"),
            html.paragraph(words.WHO),
            html.heading("What is protected"),
            html.paragraph(words.WHAT),
            html.heading("How strongly"),
            *(html.paragraph(one) for one in words.how_well(survey)),
            *([] if feared is None else [html.paragraph(f"{feared[0].upper()}{feared[1:]}.", role="warning")]),
            html.heading("When devices report"),
            html.paragraph(words.always(survey)),
            html.heading("What counts of a person"),
            html.paragraph(words.bound(survey)),
            html.table(
                "What a device sends, and how many of its reports can differ between two people",
                ("of", "each report", "every", "reports", "can differ"),
                rows,
                words=3,
            ),
            html.heading("What is not protected"),
            html.bullets(words.NOT_PROTECTED),
            html.heading("The claim and its conditions"),
            html.paragraph(statement(design)),
            html.bullets(CONDITIONS),
            html.paragraph(f"Design {digest(design)}", role="digest"),
            html.signature(),
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
