"""`slackwater report`: all published numbers of a release as one page, from its public side alone.

It reads only the plan, the manifest and the estimates, so it costs no privacy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipelines.common.arguments import SpecLike, path_of, refuse_ending, refuse_inside
from pipelines.common.errors import ArgumentError
from pipelines.disclosure.facts import FACTS
from pipelines.ledger.account import ledger_document
from pipelines.pages import definitions, html, words
from pipelines.pages.movements import INSIDE, movements, sampled
from pipelines.pages.noise import noise_section
from pipelines.pages.outline import Line, outline_of
from pipelines.pages.pictures.message import message
from pipelines.pages.subject import covered, limits, unit
from pipelines.published.others import of_other_kind
from pipelines.published.release import Published, naming, published
from pipelines.report.drawing import charts_data, drawn_part, headlined, others_of, with_charts
from pipelines.report.facts import Facts, StatedQuery
from pipelines.report.found import found_section
from pipelines.report.label import Stated, stated
from pipelines.report.ledger import committed, ledger_section
from pipelines.report.parts import ReportPart, parts_of, repeated_totals
from pipelines.report.reported import Reported
from pipelines.report.sentences import latest_of, noise_warnings, sentences_of
from pipelines.report.short import in_short
from pipelines.report.stating import facts_of, has_negative, has_unknown
from pipelines.report.tables import differences_table, page_name, plain_table
from pipelines.spec.load import Spec
from privacy.counted import counted
from privacy.upward import shown
from transforms.common.dates import DAY, moment_name, start_name
from transforms.common.sinks import write_text

CONCLUSIONS = "conclusions"
"""Anchor of the point of the privacy label about conclusions."""


def report(
    spec: SpecLike, *, output: str | Path = "report.html", split: bool = False, outline: str | Path | None = None
) -> Reported:
    """Write all published numbers as one page for people, from the public side alone. Costs no privacy.

    Args:
        spec: The path of a spec, what `load` returns, or the path of a public folder; of a release or of sanitised
            records.
        output: Path of the page, which ends in `.html`.
        split: Write the charts and tables of each query to a separate page next to it.
        outline: Path of a GeoJSON file whose lines are drawn over maps, and become part of the page. None: no lines.

    Raises:
        SpecError: The page cannot be there, sanitised records cannot be split and have no map, or the outline is not
            GeoJSON.
        RefusedError: Nothing is published there, or a file is not what the manifest says.
    """
    path, file = path_of(spec), str(output)
    refuse_ending("output", file, [".html"])
    lines = None if outline is None else outline_of(Path(outline))
    if other := of_other_kind("report", path):
        if split:
            raise ArgumentError("split", "is for releases of numbers; sanitised records have one page")
        if outline is not None:
            raise ArgumentError("outline", "is for releases of numbers; sanitised records have no map")
        page: Reported = other(path, output=file)
        return page
    release = published(path)
    refuse_inside("output", file, release.folder)
    with naming(release.folder):
        return _of_release(release, path, file, split, lines)


def _of_release(release: Published, path: str, output: str, split: bool, outline: Sequence[Line] | None) -> Reported:
    parts = parts_of(release)
    account = ledger_document(release.epochs, release.spec, release.plan)
    about = stated(release, path, account)
    release.spec = replace(release.spec, about=about.for_pages)  # the published spec has no texts of the curator
    facts, shared, totals = facts_of(release, parts, about), 1 if split else len(parts), repeated_totals(parts)
    drawn = [
        drawn_part(release, part, query, about, queries=shared)
        for part, query in zip(parts, facts.queries, strict=True)
    ]
    kept = [place for place in range(len(parts)) if place not in totals]
    shown = replace(facts, queries=tuple(facts.queries[place] for place in kept))
    pages = [page_name(output, place, query) for place, query in enumerate(shown.queries)] if split else []
    for place, file in zip(kept, pages, strict=False):
        data = charts_data([drawn[place]], others_of(drawn[place], drawn), outline)
        write_text(file, _page_of_query(release, parts[place], facts.queries[place], about, Path(output).name, data))
    others = [one for place, one in enumerate(drawn) if place not in kept]
    data = charts_data([drawn[place] for place in kept], others, outline)
    write_text(output, _page(release, [parts[place] for place in kept], shown, account, about, pages, data))
    signals = _signals(facts)
    return Reported(
        release=release.spec.release,
        file=output,
        until=release.until,
        signals=tuple(signals),
        standing_out=tuple(text for _, series in facts.series for text in series.standing_out),
        warnings=tuple(f"{one['query']}, {one['series']}: {one['warning']}" for one in signals if one["warning"]),
        facts=facts,
        pages=tuple(pages),
    )


def _signals(facts: Facts) -> list[dict[str, Any]]:
    """Return the size of the noise of each series, compared with its numbers."""
    return [
        {"query": query.name, "series": series.kind, **series.noise}
        for query, series in facts.series
        if series.noise is not None
    ]


def _page(
    release: Published,
    parts: Sequence[ReportPart],
    facts: Facts,
    account: dict[str, Any],
    about: Stated,
    pages: Sequence[str],
    data: dict[str, Any],
) -> str:
    spec, plan = release.spec, release.plan
    budget = f"epsilon = {shown(plan.budget.epsilon)}" + (
        f", delta = {shown(plan.budget.delta)}" if plan.budget.delta else ""
    )
    again = f", {facts.repeated:,} of which repeat those of the window before," if facts.repeated else ""
    until = moment_name(release.local(release.bounds.end(release.windows)))
    complete = " All windows are published." if release.windows == plan.promise.windows else ""
    promised = [
        html.paragraph(facts.protects, role="lead"),
        html.ended("Do not conclude:", limits(spec, plan.budget.epsilon), CONCLUSIONS, "What readers can conclude"),
    ]
    numbers = html.paragraph(
        f"{counted(facts.numbers, 'number')}{again} from {counted(release.windows, 'window')} of {facts.window}, "
        f"up to {until}, in {spec.schedule.clocks}. A window is the period that a number is about. "
        f"Differential privacy: {budget} for {covered(spec)}, in all numbers together.{complete}"
    )
    body = [
        f"<h1>{html.text(facts.title)}</h1>\n",
        html.beside(
            [*about.introduction(_when(release, account)), *promised], in_short(facts.queries, data), [numbers]
        ),
        *(html.paragraph(text, role="warning") for text in [words.weakness(spec, plan.budget.epsilon)] if text),
    ]
    sections = [
        *_sections(facts, _below(release, parts, facts, about, pages, data), [] if pages else data["queries"]),
        *found_section(release, about.names),
        _noise(facts, parts, spec),
        _label(release, about),
        ledger_section(release, account, about.names),
    ]
    body.append(html.with_contents([*sections, _glossary(release, [*body, *sections])]))
    return with_charts(f"{facts.title}: published numbers", body, None if pages else data)


def _when(release: Published, account: dict[str, Any]) -> str:
    """Return the date of the last epoch by the clocks of the windows; that of the first one, too, if it is another."""
    moments = [committed(release, account["epochs"][place]["committed_at"]) for place in (0, -1)]
    dates = [start_name(moment - moment % DAY) for moment in moments]
    return f" on {dates[1]}" if dates[0] == dates[1] else f" from {dates[0]} on, last on {dates[1]},"


def _glossary(release: Published, parts: Sequence[str | html.PageSection]) -> html.PageSection:
    """Return the section with the terms of the other parts of a page."""
    texts = [part if isinstance(part, str) else part.html for part in parts]
    terms = definitions.glossary(release.spec, release.plan, texts)
    return html.section("glossary", "Glossary", [html.facts(terms)])


def _sections(
    facts: Facts, below: Sequence[Sequence[str]], drawn: Sequence[dict[str, Any]]
) -> Iterator[html.PageSection]:
    """Yield the section of each query: its sentences, and what is below them; `drawn` is empty without charts."""
    for place, (query, parts) in enumerate(zip(facts.queries, below, strict=True)):
        at_chart = bool(drawn) and headlined(drawn[place])
        said = sentences_of(query, noise_warnings(query), headlined=at_chart, alone=len(facts.queries) == 1)
        yield html.section(f"query-{place}", query.label, [*said, *parts])


def _below(
    release: Published,
    parts: Sequence[ReportPart],
    facts: Facts,
    about: Stated,
    pages: Sequence[str],
    data: dict[str, Any],
) -> list[list[str]]:
    """Return what is below the sentences about each query: charts and tables, or links to their pages."""
    if pages:
        return [
            [
                differences_table(query),
                html.link(Path(page).name, f"Charts and tables of {query.label}"),
            ]
            for query, page in zip(facts.queries, pages, strict=True)
        ]
    return [
        _charts(place, part, query, release, about, data)
        for place, (part, query) in enumerate(zip(parts, facts.queries, strict=True))
    ]


def _page_of_query(
    release: Published, part: ReportPart, query: StatedQuery, about: Stated, home: str, data: dict[str, Any]
) -> str:
    """Return the separate page of one query."""
    title = f"{query.label}: published numbers"
    body: list[str | html.PageSection] = [
        f"<h1>{html.text(query.label)}</h1>\n",
        html.link(home, f"All queries of {about.texts.get('title', release.spec.release)}, and the privacy label"),
        *sentences_of(query, noise_warnings(query), headlined=headlined(data["queries"][0])),
        *_charts(0, part, query, release, about, data),
    ]
    return with_charts(title, [*body, _glossary(release, body)], data)


def _charts(
    place: int, part: ReportPart, query: StatedQuery, release: Published, about: Stated, data: dict[str, Any]
) -> list[str]:
    drawn = data["queries"]
    return [
        html.drawn(
            place,
            " ".join(message(drawn[place], [*drawn, *data.get("others", [])])),
            latest_of(query) if headlined(drawn[place]) else (),
        ),
        html.paragraph(query.coverage, role="note"),
        differences_table(query),
        html.compared(place),
        plain_table(part, query, release, about.names, queries=len(drawn), others="the published files have"),
    ]


def _noise(facts: Facts, parts: Sequence[ReportPart], spec: Spec) -> html.PageSection:
    below, unknown = has_negative(parts), has_unknown(parts)
    return noise_section(
        [(f"{query.label}: {one.kind}", one.noise) for query, one in facts.series if one.noise is not None],
        intro=(
            f"Noise is added to each number{', so a number can be below zero' if below else ''}. Each 95 % interval "
            "alone holds the number of the bounded data with at least 95 % probability: of 1,000 intervals at most "
            "about 50 do not."
            f"{' Some numbers have no known interval.' if unknown else ''}"
        ),
        caption="Published numbers and their noise: medians of all cells and windows",
        heading="query",
        judged=definitions.mostly_noise(**definitions.compared_with(spec)),
    )


def _label(release: Published, about: Stated) -> html.PageSection:
    """Return the section with the points of the disclosure, and folded the exact claim that they follow from."""
    spec, plan = release.spec, release.plan
    budget, one = plan.budget, unit(spec)
    unprotected = words.not_protected(spec, budget.delta)
    points = [(name, unprotected if said == " ".join(unprotected) else said) for name, said in about.points]
    parts = [
        html.facts(points, {FACTS["odds"].heading: CONCLUSIONS}),
        *(html.paragraph(text) for text in words.belief(spec, budget.epsilon, budget.delta)),
        html.folded(
            "Sensitivity, and the noise inside the mechanism",
            [
                html.table(
                    f"How far one {one} can move the weighted sums that get noise, if 1 is the largest value that a "
                    "state adds",
                    ("numbers", "L1 sensitivity", "L2 sensitivity", "standard deviation of the noise on such a sum"),
                    movements(plan, about.names.query),
                ),
                *(html.paragraph(text) for text in [INSIDE, *sampled(plan)]),
            ],
            for_paper=True,
        ),
        html.folded(
            "The claim and its conditions",
            [
                html.paragraph(plan.claim),
                html.bullets(plan.conditions),
                html.paragraph(f"Release {spec.release}, spec {spec.sha256}", role="digest"),
            ],
            for_paper=True,
        ),
    ]
    return html.section("label", "Privacy label", parts)
