"""The numbers of a survey as facts of a report, which its page states like the page of a release."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipelines.local import words
from pipelines.local.survey import Survey
from pipelines.pages.numbers import Numbers, rounded
from pipelines.published.labels import Labels
from pipelines.report.exact import OwnIntervals
from pipelines.report.facts import StatedNumber, StatedQuery, StatedSeries
from pipelines.report.latest import interval_text
from pipelines.report.parts import ReportPart
from pipelines.report.stating import stated_series
from privacy.estimates import CONFIDENCE
from privacy.measure import Measure
from transforms.aggregation.queries import Query

LABEL = "Answers"
"""Heading of the numbers."""

KEY = "answer"
"""Column of estimates with the answers."""

NO_ANSWER = "none of these answers"
"""Name of the people whom no number counts."""

FEWEST = 2
"""More windows than these have a first one before the last two."""

INTERVALS = 4
"""Most intervals that give one for the people with none of the answers."""


def part_of(survey: Survey, found: Sequence[Numbers]) -> ReportPart:
    """Return all numbers of a survey as one part of a page, with a cell for each answer."""
    series = tuple(one.series for one in found)
    query = Query(name=survey.release, measure=Measure(kind="count"), by=((KEY, survey.names),), publish=series)
    return ReportPart(origin=query, query=query, name=LABEL, of="", within=None, numbers=tuple(found))


def stated_of(survey: Survey, part: ReportPart, *, complete: bool) -> StatedQuery:
    """Return the facts about the numbers of a survey; `complete` is as for `words.limits`."""
    return StatedQuery(
        query=survey.release,
        of="",
        label=LABEL,
        measured=tuple(words.measured(survey, complete=complete)),
        coverage=words.coverage(survey, complete=complete),
        series=tuple(_series(survey, part, one) for one in part.numbers),
    )


def _series(survey: Survey, part: ReportPart, numbers: Numbers) -> StatedSeries:
    kind = numbers.series.kind
    found = stated_series(
        *(part, numbers, survey, Labels()),
        kind=kind,
        meaning=words.meaning(kind),
        heading=LABEL,
        errors=OwnIntervals(numbers, survey),
    )
    others = _others(survey, found.latest) if kind == "level" else ()
    return replace(found, latest=(*found.latest, *others))


def over_all(survey: Survey, query: StatedQuery) -> Iterator[str]:
    """Yield for each answer how its level differs between the first and the last window, with both numbers."""
    for series in query.series:
        for one in series.differences if survey.until(FEWEST) < series.window_end else ():
            if (one.cell, one.minus_window_end) == (one.minus_cell, survey.until(1)):
                yield f"{series.kind}, {one.text}"


def _others(survey: Survey, latest: tuple[StatedNumber, ...]) -> Iterator[StatedNumber]:
    """Yield how many people gave none of the answers, which all levels together leave; nothing if one is unknown.

    If each of n intervals holds with 95 % probability, all of them hold at once with at least 100 - 5n %.
    """
    known = [
        (one.value, one.low, one.high)
        for one in latest
        if one.value is not None and one.low is not None and one.high is not None
    ]
    if len(known) < len(survey.names):
        return
    value, high, low = (survey.people - sum(column) for column in zip(*known, strict=True))
    rest = f"level, {NO_ANSWER}, the rest of {survey.people:,}"
    said, few = rounded(value, (high - low) / 2), len(known) <= INTERVALS
    if few:
        said += f" ({interval_text(low, high, 1 - len(known) * (1 - CONFIDENCE))})"
    yield StatedNumber(
        cell={KEY: NO_ANSWER},
        value=value,
        low=low if few else None,
        high=high if few else None,
        repeated=False,
        name=rest,
        text=f"{rest}: {said}",
    )
