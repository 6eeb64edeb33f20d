"""`slackwater report`: what a release has published, as one page for people, from its public side alone.

It costs no privacy: plan, manifest and estimates are all that it reads.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.epochs.flags import refuse_any
from pipelines.epochs.results import Result
from pipelines.pages import html, words
from pipelines.pages.charts import Times, chart_document
from pipelines.pages.noise import noise_section, told
from pipelines.pages.numbers import Numbers, numbers_of, outstanding, outward, rounded, signal_of
from pipelines.pages.records import report_of_records
from pipelines.reports.ledger import ledger_document
from pipelines.reports.plan_report import series_document, series_text
from pipelines.reports.published import Published, naming, published
from pipelines.sanitised.published import records_at
from pipelines.spec.paths import within
from privacy.upward import shown
from transforms.aggregation.queries import Query
from transforms.common.errors import SpecError
from transforms.common.sinks import write_text
from transforms.release.range_tables import by_range

EPOCHS = 20
"""Of the ledger: the last ones."""

DAY = 86_400_000_000
_START = datetime(1970, 1, 1, tzinfo=UTC)


def report(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "report")
    output: str = arguments.output
    if not output.endswith(".html"):
        raise SpecError(f"-o {output}: the name must end in .html")
    records = records_at(arguments.spec)
    release = published(arguments.spec) if records is None else records
    if within(output, release.folder):
        raise SpecError(f"-o {output}: lies in the public folder, which holds what is published and nothing else")
    with naming(release.folder):
        return _of_release(release, output) if isinstance(release, Published) else report_of_records(release, output)


def _of_release(release: Published, output: str) -> Result:
    found = [one for query in release.spec.queries for one in _numbers(query, release)]
    signals = [*_signals(found, release)]
    write_text(output, _page(release, found, signals))
    warnings = [f"{one['query']}, {one['series']}: {one['warning']}" for one in signals if one["warning"]]
    standing = _standing_out(found, release)
    document = {
        "release": release.spec.release,
        "until": release.until,
        "file": output,
        "signals": signals,
        "standing_out": standing,
    }
    lines = [f"{release.spec.release}: all that is published up to {release.until}, as a page in {output}"]
    lines += [f"  stands out: {one}" for one in standing]
    lines += [f"  warning: {one}" for one in warnings]
    return document, "\n".join(lines)


def _numbers(query: Query, release: Published) -> Iterator[tuple[Query, list[Numbers]]]:
    """A query with its cells, and its ranges as if they were one of their own."""
    yield query, [numbers_of(s, t, query, release.plan) for s, t in release.numbers(query)]
    if query.ranges:
        ranged = by_range(query)
        numbers = [numbers_of(s, t, ranged, release.plan) for s, t in release.ranges(query)]
        yield replace(ranged, name=f"{query.name}, ranges"), numbers


def _page(release: Published, found: Sequence[tuple[Query, list[Numbers]]], signals: Sequence[dict[str, Any]]) -> str:
    spec, plan = release.spec, release.plan
    title = f"{spec.release}: published numbers"
    count = sum(one.value.size for _, numbers in found for one in numbers)
    budget = f"epsilon = {shown(plan.budget.epsilon)}" + (
        f", delta = {shown(plan.budget.delta)}" if plan.budget.delta else ""
    )
    times = Times(start=release.local(release.bounds.start), window=plan.window, boundaries=_boundaries(release))
    charts = {
        "queries": [chart_document(query, numbers, plan, times=times, queries=len(found)) for query, numbers in found],
    }
    parts = [
        f"<h1>{html.text(spec.release)}</h1>\n",
        html.paragraph(
            f"{count:,} numbers of {release.windows:,} windows of {spec.schedule.length}, up to "
            f"{_moment(release, _until(release))}, published with differential privacy: {budget} for all of them "
            "together.",
            role="lead",
        ),
        html.contents(
            [
                *((f"query-{place}", query.name) for place, (query, _) in enumerate(found)),
                *(("noise", "Noise"), ("privacy", "Privacy"), ("ledger", "Ledger")),
            ]
        ),
        *(_query(place, query, numbers, signals, release) for place, (query, numbers) in enumerate(found)),
        _noise(signals),
        _privacy(release),
        _ledger(release),
    ]
    return html.page(title, parts, data=charts)


def _query(
    place: int, query: Query, numbers: Sequence[Numbers], signals: Sequence[dict[str, Any]], release: Published
) -> str:
    parts = [html.paragraph(words.measured(query, release.spec))]
    parts += [
        html.paragraph(f"{s['series']}: {s['warning']}", role="warning")
        for s in signals
        if s["query"] == query.name and s["warning"]
    ]
    latest = _latest_of(query, numbers, release)
    if latest:
        parts.append(html.paragraph(latest, role="latest"))
    standing = _standing_of(query, numbers, release)
    if standing:
        parts += [html.paragraph("What stands out, beyond all noise:", role="standing"), html.bullets(standing)]
    parts.append(html.drawn(place, "slackwater show"))
    return html.section(f"query-{place}", query.name, parts)


def _latest_of(query: Query, numbers: Sequence[Numbers], release: Published) -> str:
    """The last number of each series of one cell, or of all cells together, with its interval; empty if none has."""
    said = []
    for one in numbers:
        if not len(one.value):
            continue
        if one.total is not None:
            value, half = (float(each[-1]) for each in one.total)
            low, high = value - half, value + half
        elif query.cells == 1:
            value, low, high = (float(each[-1, 0]) for each in (one.value, one.low, one.high))
        else:
            continue
        if not np.isfinite((value, low, high)).all():
            continue
        name = series_text(series_document(one.series, release.plan)) + (" of all cells" if query.cells > 1 else "")
        least, most = outward(low, high)
        number = rounded(value, (high - low) / 2)
        window = _window(release, one, len(one.value) - 1)
        said.append(f"{name} {number}, with 95 % probability from {least} to {most} ({window})")
    return f"Latest: {'; '.join(said)}." if said else ""


def _standing_out(found: Sequence[tuple[Query, list[Numbers]]], release: Published) -> list[str]:
    return [one for query, numbers in found for one in _standing_of(query, numbers, release)]


def _standing_of(query: Query, numbers: Sequence[Numbers], release: Published) -> list[str]:
    """Windows whose number is far out of all the others, with the whole of its interval."""
    said = []
    for one in numbers:
        if one.total is not None:
            value, half = one.total
        elif query.cells == 1:
            value, half = one.value[:, 0], (one.high - one.low)[:, 0] / 2
        else:
            continue
        name = series_text(series_document(one.series, release.plan)) + (" of all cells" if query.cells > 1 else "")
        for place in sorted(outstanding(value, half).tolist()):
            number, noise, usual = (rounded(n, half[place]) for n in (value[place], half[place], np.median(value)))
            window = _window(release, one, place)
            said.append(f"{query.name}, {name}, {window}: {number} ± {noise}, where {usual} is usual")
    return said


def _window(release: Published, numbers: Numbers, place: int) -> str:
    """The last window of a number, as people call it."""
    schedule, series = release.spec.schedule, numbers.series
    end = release.bounds.end(place * series.every + series.width)
    if schedule.every == DAY and release.local(end) % DAY == 0:
        return f"{_START + timedelta(microseconds=release.local(end) - DAY):%a %d %b %Y}"
    return f"up to {_moment(release, end)}"


def _moment(release: Published, moment: int) -> str:
    """As the clocks of the schedule's zone show it."""
    local = release.local(moment)
    return f"{_START + timedelta(microseconds=local):{'%Y-%m-%d' if local % DAY == 0 else '%Y-%m-%d %H:%M'}}"


def _boundaries(release: Published) -> NDArray[np.int64] | None:
    """Of windows of a calendar, as its clocks show them."""
    bounds = release.bounds
    if bounds.ends is None:
        return None
    return np.array([release.local(moment) for moment in (bounds.start, *bounds.ends)], dtype=np.int64)


def _until(release: Published) -> int:
    return release.bounds.end(release.windows)


def _signals(found: Sequence[tuple[Query, list[Numbers]]], release: Published) -> Iterator[dict[str, Any]]:
    """How large the noise is beside the numbers, of each series."""
    for query, numbers in found:
        says = (
            "have intervals wider than half of their range"
            if len(query.measure.components) > 1
            else "cannot be told from zero"
        )
        for one in numbers:
            signal = signal_of(one, query)
            if signal is not None:
                series = series_text(series_document(one.series, release.plan))
                mend = "Larger cells, fewer of them or longer windows would say more."
                yield {"query": query.name, "series": series, **told(signal, says=says, mend=mend)}


def _noise(signals: Sequence[dict[str, Any]]) -> str:
    return noise_section(
        [(f"{one['query']}: {one['series']}", one) for one in signals],
        intro=(
            "Each number has noise added. Its 95 % interval holds the number of the bounded data with at least "
            "95 % probability, each on its own: of a thousand intervals some fifty do not."
        ),
        caption="Noise beside the numbers, as published, of one cell",
        heading="query",
        judged=(
            "A count or sum says next to nothing if its interval holds zero; a mean, second moment or variance if "
            "its interval is wider than half of what is possible."
        ),
    )


def _privacy(release: Published) -> str:
    spec, plan = release.spec, release.plan
    moves = words.movements(plan)
    parts = [
        html.heading("Who is protected"),
        html.paragraph(words.who(spec)),
        html.heading("What is protected"),
        html.paragraph(words.what(spec)),
        html.heading("How well"),
        *(html.paragraph(one) for one in words.how_well(plan)),
        html.heading("The most that one unit can do"),
        html.paragraph(words.bound(plan.constraint, spec)),
        html.table(
            "How far one unit can move what noise is added to, in units of the most that one state adds to a sum",
            (
                "what is published",
                "all sums together (L1)",
                "their length (L2)",
                "noise on each sum (standard deviation)",
            ),
            moves,
        ),
        html.heading("What is not protected"),
        html.bullets(words.NOT_PROTECTED),
        html.heading("The claim, and what it rests on"),
        html.paragraph(plan.claim),
        html.bullets(plan.conditions),
        html.paragraph(f"Spec {spec.sha256}", role="digest"),
        html.signature(),
    ]
    return html.section("privacy", "What is promised", parts)


def _ledger(release: Published) -> str:
    document = ledger_document(release.epochs, release.spec, release.plan)
    rows = [(row, shown(document[row]["epsilon"]), shown(document[row]["delta"])) for row in ("total", "spent")]
    rows.append(("remaining", f"{document['remaining']['epsilon']:.6g}", f"{document['remaining']['delta']:.6g}"))
    epochs = document["epochs"][-EPOCHS:]
    left = len(document["epochs"]) - len(epochs)
    return html.section(
        "ledger",
        "Ledger",
        [
            html.table("The budget of the whole release", ("", "epsilon", "delta"), rows),
            html.table(
                "What had been spent by the end of each epoch"
                + (f" (the last {EPOCHS}; {left} before them)" if left else ""),
                ("epoch", "windows", "until", "committed", "epsilon", "delta"),
                [
                    (
                        epoch["epoch"],
                        f"{epoch['released'] + 1} to {epoch['windows']}",
                        epoch["until"],
                        epoch["committed_at"],
                        shown(epoch["spent"]["epsilon"]),
                        shown(epoch["spent"]["delta"]),
                    )
                    for epoch in epochs
                ],
                words=4,
            ),
            html.paragraph("What remains is not for anything else: it is kept for the windows that are to come."),
        ],
    )
