"""`slackwater report`: all published numbers of a release as one page, from its public side alone.

It reads only the plan, the manifest and the estimates, so it costs no privacy.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.common.arguments import SpecLike, path_of, refuse_ending, refuse_inside
from pipelines.ledger.account import adds_up, ledger_document, what_remains
from pipelines.pages import html, words
from pipelines.pages.charts import Times, chart_document
from pipelines.pages.noise import noise_section
from pipelines.published.others import of_other_kind
from pipelines.published.release import Published, naming, published
from pipelines.report.label import Stated, stated
from pipelines.report.parts import (
    ReportPart,
    discoveries,
    end_text,
    latest,
    parts_of,
    signals_of,
    standing_out,
    without_keys,
)
from pipelines.report.reported import Reported
from privacy.counted import counted, up_to
from privacy.upward import shown
from transforms.common.sinks import write_text

FEW = 3
"""Number of latest numbers from which on they are a list and not a sentence."""

EPOCHS = 20
"""Number of epochs that the ledger shows, the last ones."""

_LINKS = (("noise", "Noise"), ("label", "Privacy label"), ("privacy", "Privacy"), ("ledger", "Ledger"))


def report(spec: SpecLike, *, output: str | Path = "report.html") -> Reported:
    """Write all published numbers as one page for people, from the public side alone. Costs no privacy.

    Args:
        spec: The path of a spec, what `load` returns, or the path of a public folder; of a release or of sanitised
            records.
        output: Path of the page, which ends in `.html`.

    Raises:
        SpecError: The page cannot be there.
        RefusedError: Nothing is published there, or a file is not what the manifest says.
    """
    path, file = path_of(spec), str(output)
    refuse_ending("output", file, [".html"])
    if other := of_other_kind("report", path):
        page: Reported = other(path, output=file)
        return page
    release = published(path)
    refuse_inside("output", file, release.folder)
    with naming(release.folder):
        return _of_release(release, path, file)


def _of_release(release: Published, path: str, output: str) -> Reported:
    parts = parts_of(release)
    signals = [one for part in parts for one in signals_of(part, release)]
    account = ledger_document(release.epochs, release.spec, release.plan)
    write_text(output, _page(release, parts, signals, account, stated(release, path, account)))
    return Reported(
        release=release.spec.release,
        file=output,
        until=release.until,
        signals=tuple(signals),
        standing_out=tuple(one for part in parts for one in standing_out(part, release)),
        warnings=tuple(f"{one['query']}, {one['series']}: {one['warning']}" for one in signals if one["warning"]),
    )


def _page(
    release: Published,
    parts: Sequence[ReportPart],
    signals: Sequence[dict[str, Any]],
    account: dict[str, Any],
    about: Stated,
) -> str:
    spec, plan = release.spec, release.plan
    count = sum(one.value.size for part in parts for one in part.numbers)
    budget = f"epsilon = {shown(plan.budget.epsilon)}" + (
        f", delta = {shown(plan.budget.delta)}" if plan.budget.delta else ""
    )
    times = Times(
        start=release.local(release.bounds.start), window=plan.promise.window, boundaries=_boundaries(release)
    )
    drawn = [
        chart_document(part.query, part.numbers, plan, times=times, queries=len(parts), name=about.heading(part))
        for part in parts
    ]
    links = [*((f"query-{place}", about.heading(part)) for place, part in enumerate(parts)), *_LINKS]
    title = about.texts.get("title", spec.release)
    body = [
        f"<h1>{html.text(title)}</h1>\n",
        *about.introduction,
        html.paragraph(
            f"{counted(count, 'number')} from {counted(release.windows, 'window')} of {spec.schedule.length}, up to "
            f"the {end_text(release, release.bounds.end(release.windows))}, published with differential privacy: "
            f"{budget} for {words.covered(spec)}, all numbers together.",
            role="lead",
        ),
        html.contents(links),
        *(_part(place, part, about.heading(part), signals, release) for place, part in enumerate(parts)),
        *(html.paragraph(f"Query {name} has found no key so far.") for name in without_keys(release, parts)),
        _noise(signals, parts),
        html.section("label", "Privacy label", [html.facts(about.facts)]),
        _privacy(release),
        _ledger(release, account),
    ]
    return html.page(f"{title}: published numbers", body, data={"queries": drawn})


def _part(place: int, part: ReportPart, heading: str, signals: Sequence[dict[str, Any]], release: Published) -> str:
    said = [html.paragraph(one) for one in words.measured(part.origin, part.of, release.spec)]
    said += [
        html.paragraph(f"{one['series']}: {one['warning']}", role="warning")
        for one in signals
        if one["query"] == part.name and one["warning"]
    ]
    for window, texts in latest(part, release).items():
        short = f": {'; '.join(texts)}." if len(texts) < FEW else ":"
        said.append(html.paragraph(f"Latest, {window}{short}", role="latest"))
        said += [html.bullets(texts)] if len(texts) >= FEW else []
    if found := discoveries(part, release):
        said.append(html.paragraph("Keys by the window in which they were found:"))
        said.append(html.bullets(found))
    standing = standing_out(part, release)
    if standing:
        said.append(html.paragraph("Numbers that stand out by more than the noise:", role="standing"))
        said.append(html.bullets(standing))
    return html.section(f"query-{place}", heading, [*said, html.drawn(place, "slackwater show")])


def _boundaries(release: Published) -> NDArray[np.int64] | None:
    """Return the bounds of windows of a calendar, as clocks of its zone show them; None without a calendar."""
    bounds = release.bounds
    if bounds.ends is None:
        return None
    return np.array([release.local(moment) for moment in (bounds.start, *bounds.ends)], dtype=np.int64)


def _noise(signals: Sequence[dict[str, Any]], parts: Sequence[ReportPart]) -> str:
    below = any((one.value < 0).any() for part in parts for one in part.numbers if part.query.measure.low >= 0)
    unknown = any(np.isnan(one.high - one.low).any() for part in parts for one in part.numbers)
    return noise_section(
        [(f"{one['query']}: {one['series']}", one) for one in signals],
        intro=(
            f"Noise is added to each number{', so a number can be below zero' if below else ''}. Each 95 % interval "
            "alone holds the number of the bounded data with at least 95 % probability: of 1,000 intervals about 50 do "
            "not."
            f"{' Some numbers have no known interval.' if unknown else ''}"
        ),
        caption="Noise compared with the numbers, as published, of one cell",
        heading="query",
        judged=(
            "A count or sum is mostly noise if its interval contains zero; a mean, second moment, variance or "
            "quantile if its interval is wider than half of the possible range."
        ),
    )


def _privacy(release: Published) -> str:
    spec, plan = release.spec, release.plan
    one = words.unit(spec)
    parts = [
        html.heading("Who is protected"),
        html.paragraph(words.who(spec)),
        html.heading("What is protected"),
        html.paragraph(words.what(spec)),
        html.heading("How strongly"),
        *(html.paragraph(text) for text in words.how_well(spec, plan.budget.epsilon, plan.budget.delta)),
        html.heading("Contribution bound"),
        html.paragraph(words.bound(plan.promise.constraint, spec)),
        html.table(
            f"How far one {one} can move the noisy sums, in units of the largest value that one state adds to a sum",
            ("numbers", "L1 sensitivity", "L2 sensitivity", "standard deviation of the noise on each sum"),
            words.movements(plan),
        ),
        *(html.paragraph(text) for text in words.sampled(plan)),
        html.heading("What is not protected"),
        html.bullets(words.not_protected(spec, plan.budget.delta)),
        html.heading("The claim and its conditions"),
        html.paragraph(plan.claim),
        html.bullets(plan.conditions),
        html.paragraph(f"Release {spec.release}, spec {spec.sha256}", role="digest"),
        html.signature(),
    ]
    return html.section("privacy", "What is promised", parts)


def _ledger(release: Published, document: dict[str, Any]) -> str:
    rows = [(row, shown(document[row]["epsilon"]), shown(document[row]["delta"])) for row in ("total", "spent")]
    if adds_up(release.plan):
        rows.append(("remaining", f"{document['remaining']['epsilon']:.6g}", f"{document['remaining']['delta']:.6g}"))
    epochs = document["epochs"][-EPOCHS:]
    left = len(document["epochs"]) - len(epochs)
    return html.section(
        "ledger",
        "Ledger",
        [
            html.table(f"The budget, for {words.covered(release.spec)}", ("", "epsilon", "delta"), rows),
            html.table(
                "Budget spent by the end of each epoch" + (f" (the last {EPOCHS}; {left} before them)" if left else ""),
                ("epoch", "windows", "until", "committed", "epsilon", "delta"),
                [
                    (
                        epoch["epoch"],
                        up_to(epoch["released"] + 1, epoch["windows"]),
                        epoch["until"],
                        epoch["committed_at"],
                        shown(epoch["spent"]["epsilon"]),
                        shown(epoch["spent"]["delta"]),
                    )
                    for epoch in epochs
                ],
                words=4,
            ),
            html.paragraph(what_remains(document, release.plan)),
        ],
    )
