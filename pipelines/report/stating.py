"""The facts of a report, from the published numbers of a release."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from pipelines.pages import definitions, words
from pipelines.pages.noise import told
from pipelines.pages.numbers import Numbers, is_judged, signal
from pipelines.pages.subject import column_text, covered, protects
from pipelines.published.labels import Labels
from pipelines.published.release import Published
from pipelines.report.differences import differences
from pipelines.report.exact import ExactErrors, SeriesErrors
from pipelines.report.facts import Facts, StatedQuery, StatedSeries
from pipelines.report.found import found_document
from pipelines.report.label import Stated
from pipelines.report.latest import latest, standing_out
from pipelines.report.parts import Dated, ReportPart, repeated_totals, window_of
from pipelines.spec.durations import length_text
from pipelines.spec.series import series_label
from pipelines.spec.times import moment_text
from privacy.counted import counted, listed

TOTAL = "The number of all cells together is published, as the total."
"""Added to a query whose total has no section on the page."""

CANCELS = (
    " The sum of all cells has a narrower interval than one cell: the noise is such that much of it cancels in sums."
)
"""Added to what intervals cover, if that is so."""

CLEARLY = 0.8
"""Most of the width of one cell's interval that is clearly narrower."""

FLAT = " A flat stretch repeats a number: it is no evidence that nothing changed."
"""Added if numbers are repeated."""


WIDER = (
    " The 95 % interval of a difference of two new numbers is made of their 97.5 % intervals, so it can be wider than "
    "both of their 95 % intervals together."
)
"""Added to adaptive queries (`privacy.answers.of_parts.spreads_of_nodes`)."""


def facts_of(release: Published, parts: Sequence[ReportPart], about: Stated) -> Facts:
    """Return the facts about a release.

    Args:
        release: The public side of the release.
        parts: All published numbers.
        about: What the curator states.
    """
    spec, plan, totals = release.spec, release.plan, {parts[at].origin.name for at in repeated_totals(parts)}
    return Facts(
        release=spec.release,
        title=about.texts.get("title", spec.release),
        **{name: about.texts.get(name, "") for name in ("description", "source", "contact")},
        start=moment_text(release.bounds.start),
        until=release.until,
        windows=release.windows,
        window=length_text(spec.schedule.every),
        numbers=sum(one.count for part in parts for one in part.numbers),
        repeated=sum(one.repeats for part in parts for one in part.numbers),
        epsilon=plan.budget.epsilon,
        delta=plan.budget.delta,
        covers=covered(spec),
        protects=protects(spec, plan.budget.epsilon),
        queries=tuple(_query(part, release, about, totals) for part in parts),
        disclosure=dict(about.facts),
        found=tuple(found_document(release)),
    )


def _query(part: ReportPart, release: Published, about: Stated, totals: Collection[str]) -> StatedQuery:
    spec, total = release.spec, [TOTAL] if part.origin.name in totals and not part.of else []
    what = " ".join(filter(None, (words.what_is_measured(part.origin, part.of, spec), _cell_text(part, release))))
    meanings = definitions.meanings(part.origin, spec, part.of)
    heading = about.heading(part)
    series = tuple(
        stated_series(
            *(part, one, release, about.names),
            kind=series_label(one.series, release.plan),
            meaning=meaning,
            heading=heading,
            errors=ExactErrors(part, one, release),
        )
        for one, meaning in zip(part.numbers, meanings, strict=True)
    )
    return StatedQuery(
        query=part.origin.name,
        of=part.of,
        label=heading,
        measured=(what, *total, *words.apart(part.origin, spec), *_renewed(part, release)),
        coverage=f"{definitions.coverage(part.origin, spec)}{CANCELS if any(map(_cancels, series)) else ''}",
        series=series,
    )


def _cancels(series: StatedSeries) -> bool:
    """Return whether the sum of all cells has a clearly narrower interval than one of the cells."""
    widths = [
        one.high - one.low if one.low is not None and one.high is not None else np.inf for one in series.latest[:2]
    ]
    return len(widths) == 2 and series.latest[0].cell is None and widths[0] < CLEARLY * widths[1]


def _cell_text(part: ReportPart, release: Published) -> str:
    """Return what a cell is; empty for numbers of one cell, and for quantiles."""
    if part.query.cells == 1 or part.of.startswith("quantiles"):
        return ""
    kept = [name for name, key in part.query.by if not part.of or len(key) > 1]
    ordered = dict(part.origin.ordered)
    names = [f"{'range of ' if name in ordered else ''}{column_text(release.spec, name)}" for name in kept]
    return f"A cell is {listed([f'one {name}' for name in names])}." if names else ""


def _renewed(part: ReportPart, release: Published) -> Iterator[str]:
    """Yield how many windows have new numbers, for each series of an adaptive query."""
    for one in part.numbers:
        if one.repeated is not None and len(one.repeated):
            new, every = int(np.count_nonzero(~one.repeated)), counted(len(one.repeated), "window")
            windows = f"all {every}" if not one.repeated.any() else f"{new:,} of {every}"
            flat = FLAT if one.repeated.any() else ""
            wider = WIDER if ExactErrors(part, one, release).known else ""
            yield f"New numbers of {one.series.kind}: in {windows}.{flat}{wider}"


def stated_series(
    part: ReportPart,
    numbers: Numbers,
    release: Dated,
    labels: Labels,
    *,
    kind: str,
    meaning: str,
    heading: str,
    errors: SeriesErrors,
) -> StatedSeries:
    """Return the facts about a series.

    Args:
        part: The part of the page.
        numbers: The series.
        release: The release or survey.
        labels: Labels of cells.
        kind: Name of the numbers.
        meaning: What the numbers are.
        heading: Heading of the part.
        errors: Errors of sums of the series.
    """
    last = len(numbers.value) - 1
    window, start, end = ("", "", "") if last < 0 else window_of(release, numbers, last)
    return StatedSeries(
        kind=kind,
        meaning=meaning,
        window=window,
        window_start=start,
        window_end=end,
        latest=tuple(latest(part, numbers, kind, labels, errors)),
        cells=part.query.cells,
        differences=tuple(differences(part, numbers, release, labels, errors)),
        standing_out=tuple(standing_out(part, numbers, f"{heading}, {kind}", release)),
        judged=numbers.together is not None and is_judged(*numbers.together),
        noise=_noise(part, numbers),
    )


def _noise(part: ReportPart, numbers: Numbers) -> dict[str, Any] | None:
    """Compare the noise of a series with its numbers."""
    says = (
        "cannot be distinguished from zero" if part.within is None else "have intervals wider than half of their range"
    )
    found = signal(numbers, within=part.within)
    if found is None:
        return None
    return told(found, says=says, advice="Use fewer and larger cells, or longer windows.")


def has_negative(parts: Sequence[ReportPart]) -> bool:
    """Return whether a number is below zero that cannot be without noise."""
    return any((one.value < 0).any() for part in parts for one in part.numbers if part.query.measure.low >= 0)


def has_unknown(parts: Sequence[ReportPart]) -> bool:
    """Return whether a number has no known interval."""
    return any(np.isnan((one.high - one.low)[one.published]).any() for part in parts for one in part.numbers)
