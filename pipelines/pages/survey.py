"""`slackwater local report`: what a survey has told, as one page, from its design and its estimates alone."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pipelines.epochs.flags import refuse_any
from pipelines.epochs.results import Result
from pipelines.local import quality
from pipelines.local.estimated import Estimated, read_estimates
from pipelines.local.promise import CONDITIONS, how, in_the_open, sent, statement
from pipelines.local.survey import Survey, read_survey
from pipelines.pages import html, words_of_surveys
from pipelines.pages.charts import Times, charts
from pipelines.pages.noise import NAMED, noise_section
from pipelines.pages.numbers import Numbers, signal
from pipelines.spec.durations import length_text
from privacy.counted import counted
from privacy.exact import Json
from privacy.local.document import digest
from privacy.series import Series
from privacy.upward import shown
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError
from transforms.common.sinks import write_text

_PARQUET = "Parquet files do: slackwater local estimate -o with a name that ends in .parquet."
_CALLED = {"level": "people at the end of a window", "change": "by how many people within a window"}


def report_of_survey(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "local report")
    output: str = arguments.output
    if not output.endswith(".html"):
        raise SpecError(f"-o {output}: the name must end in .html")
    refuse_unreachable([output], files=[arguments.design, arguments.estimates])
    survey = read_survey(arguments.design)
    estimated, told = read_estimates(arguments.estimates, survey)
    found = [_numbers(one) for one in estimated]
    signals = [one for numbers in found for one in _signals(numbers, survey)]
    warnings = [f"{kind}: {text}" for kind in survey.publish if (text := _warning(kind, signals))]
    warnings += [] if told is None else quality.warnings(told)
    write_text(output, _page(survey, found, signals, told))
    until = survey.until(len(found[0].value))
    document = {
        "release": survey.release,
        "until": until,
        "file": output,
        "signals": signals,
        "warnings": warnings,
    }
    lines = [f"{survey.release}: what devices have told up to {until}, as a page in {output}"]
    return document, "\n".join([*lines, *(f"  warning: {one}" for one in warnings)])


def _numbers(of: Estimated) -> Numbers:
    return Numbers(series=Series(kind=of.kind), value=of.value, low=of.low, high=of.high, total=None)


def _signals(numbers: Numbers, survey: Survey) -> Iterator[dict[str, Any]]:
    """How large the noise is beside the numbers of each answer."""
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


def _warning(kind: str, signals: Sequence[dict[str, Any]]) -> str | None:
    of_kind = [one for one in signals if one["kind"] == kind]
    noisy = [one["answer"] for one in of_kind if one["noisy"]]
    if not of_kind:
        return "no number is known: nobody has reported on what they are made of."
    if not noisy:
        return None
    what = f"{len(noisy)} of {counted(len(of_kind), 'answer')}"
    which = f"{', '.join(noisy)} ({what})" if len(noisy) <= NAMED else what
    return (
        f"mostly noise: {which}, of which more than half of the numbers cannot be told from zero. More people, longer "
        "windows or fewer of them would say more."
    )


def _page(survey: Survey, found: Sequence[Numbers], signals: Sequence[dict[str, Any]], told: Json | None) -> str:
    design, windows = survey.design, len(found[0].value)
    budget = f"epsilon = {shown(design.epsilon)}" + (f", delta = {shown(design.delta)}" if design.delta else "")
    kinds = [(f"query-{place}", one.series.kind) for place, one in enumerate(found)]
    parts = [
        f"<h1>{html.text(survey.release)}</h1>\n",
        html.paragraph(
            f"{counted(sum(one.value.size for one in found), 'number')} from {counted(windows, 'window')} of "
            f"{length_text(survey.every)}, up to {_day(survey.until(windows))}, from reports that "
            f"{counted(survey.people, 'device')} randomised. Only a device knows its answers: {budget} for all that it "
            "ever sends.",
            role="lead",
        ),
        html.contents([*kinds, *((name.lower(), name) for name in ("Reports", "Noise", "Privacy", "Ledger"))]),
        *(_kind(place, one.series.kind, survey, signals) for place, one in enumerate(found)),
        _reports(told),
        _noise(survey, signals),
        _privacy(survey),
        _ledger(survey),
    ]
    drawn = [
        charts(
            [one],
            times=Times(start=survey.start, window=survey.every),
            name=one.series.kind,
            kinds=[_CALLED[one.series.kind]],
            keys=["answer"],
            labels=lambda cells: [[survey.names[cell]] for cell in cells],
            zero=True,
            queries=len(found),
            called="answers",
            rest="the file of estimates has them all",
        )
        for one in found
    ]
    return html.page(f"{survey.release}: what devices have told", parts, data={"queries": drawn})


def _day(moment: str) -> str:
    """Without a time that is midnight."""
    return moment.removesuffix("T00:00:00Z")


def _kind(place: int, kind: str, survey: Survey, signals: Sequence[dict[str, Any]]) -> str:
    warning = _warning(kind, signals)
    return html.section(
        f"query-{place}",
        kind,
        [
            html.paragraph(words_of_surveys.measured(kind, survey)),
            *([] if warning is None else [html.paragraph(f"{kind}: {warning}", role="warning")]),
            html.drawn(place, "slackwater local estimate"),
        ],
    )


def _reports(told: Json | None) -> str:
    if told is None:
        parts = [html.paragraph(f"The file of estimates does not say which reports were left out. {_PARQUET}")]
    else:
        parts = [
            html.paragraph(f"{counted(told['counted'], 'report')} of design {told['design']} count."),
            *(html.paragraph(f"{line[0].upper()}{line[1:]}.", role="warning") for line in quality.warnings(told)),
            html.bullets(f"{line[0].upper()}{line[1:]}." for line in quality.lines(told) or ["nothing was left out"]),
        ]
    return html.section("reports", "Reports", parts)


def _noise(survey: Survey, signals: Sequence[dict[str, Any]]) -> str:
    parts = []
    for kind in survey.publish:
        halves = [one["half"] for one in signals if one["kind"] == kind and one["half"] is not None]
        if halves:
            parts.append(f"{100 * float(np.median(halves)) / survey.people:.2g}\u00a0% for {kind}")
    beside = f" Half of one is typically {', '.join(parts)}, of {counted(survey.people, 'person')}." if parts else ""
    return noise_section(
        [(f"{one['kind']}: {one['answer']}", one) for one in signals],
        intro=(
            "Every report is chance in part, and only many of them together tell something. The 95 % interval of a "
            "number holds what would be told without noise with at least 95 % probability, each on its own: of a "
            f"thousand intervals up to some fifty do not.{beside}"
        ),
        caption="Noise compared with the numbers, of one answer in one window",
        heading="number",
        judged=(
            "A number says next to nothing if its interval holds zero. What the intervals do not show: whether people "
            "who do not report differ from the others, and whether people change more often than the device lets count."
        ),
    )


def _privacy(survey: Survey) -> str:
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
            html.paragraph(words_of_surveys.WHO),
            html.heading("What is protected"),
            html.paragraph(words_of_surveys.WHAT),
            html.heading("How well"),
            *(html.paragraph(one) for one in words_of_surveys.how_well(survey)),
            *([] if feared is None else [html.paragraph(f"{feared[0].upper()}{feared[1:]}.", role="warning")]),
            html.heading("When devices report"),
            html.paragraph(words_of_surveys.always(survey)),
            html.heading("What counts of a person"),
            html.paragraph(words_of_surveys.bound(survey)),
            html.table(
                "What a device sends, and how many of its reports can differ between two people",
                ("of", "each report", "every", "reports", "can differ"),
                rows,
                words=3,
            ),
            html.heading("What is not protected"),
            html.bullets(words_of_surveys.NOT_PROTECTED),
            html.heading("The claim, and what it rests on"),
            html.paragraph(statement(design)),
            html.bullets(CONDITIONS),
            html.paragraph(f"Design {digest(design)}", role="digest"),
            html.signature(),
        ],
    )


def _ledger(survey: Survey) -> str:
    design = survey.design
    row = ("each device, for all that it sends", shown(design.epsilon), shown(design.delta))
    return html.section(
        "ledger",
        "Ledger",
        [
            html.table("What the whole survey costs", ("", "epsilon", "delta"), [row]),
            html.paragraph(
                "Only the device knows how much of it is spent so far; it is never more. To estimate again costs "
                "nothing: reports are public once they are randomised."
            ),
        ],
    )
