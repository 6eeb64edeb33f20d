"""`slackwater report` of sanitised records: estimates from them as one page, from the public side alone."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.common.arguments import refuse_inside
from pipelines.pages import html
from pipelines.pages.lines import line_of
from pipelines.pages.noise import NAMED, ROWS, shortened
from pipelines.pages.numbers import outward, rounded, says_nothing
from pipelines.published.release import naming
from pipelines.report.label import Stated
from pipelines.report.reported import Reported
from pipelines.sanitised import words
from pipelines.sanitised.published import PublishedRecords, published
from pipelines.sanitised.published_plan import error_text
from pipelines.spec.times import people_time
from privacy.counted import counted
from privacy.sanitised.attributes import Attribute
from privacy.upward import shown
from transforms.common.sinks import write_text

EPOCHS = 20
"""Number of runs that the ledger shows, the last ones."""


def report(path: str, *, output: str) -> Reported:
    """Write the page of sanitised records to a file."""
    records = published(path)
    refuse_inside("output", output, records.folder)
    with naming(records.folder):
        return _written(records, output)


def _written(records: PublishedRecords, output: str) -> Reported:
    table = records.estimates()
    found = [(one, _of(table, one)) for one in records.record.attributes]
    signals = [signal for one, rows in found for signal in _signals(one, rows)]
    warnings = {one.name: text for one, rows in found if (text := _warning(one, rows, signals))}
    advised = [f"{one.name}: {warnings[one.name]}{_advice(one, rows)}" for one, rows in found if one.name in warnings]
    write_text(output, _page(records, found, signals, warnings))
    return Reported(
        release=records.release,
        file=output,
        records=records.count,
        signals=tuple(signals),
        warnings=tuple(advised),
    )


def _of(table: pa.Table, attribute: Attribute) -> pa.Table:
    return table.filter(pc.equal(table["attribute"], attribute.name))


def _signals(attribute: Attribute, rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the size of the noise of each estimate, compared with the estimate."""
    low, high = (rows[name].to_numpy() for name in ("ci_low", "ci_high"))
    noisy = says_nothing(low, high, within=attribute.range)
    if not attribute.numeric:
        noisy |= says_nothing(low, high, within=None)
    for row, of_row in zip(rows.to_pylist(), noisy.tolist(), strict=True):
        yield {
            **{name: row[name] for name in ("attribute", "value", "kind", "estimate")},
            "half": (row["ci_high"] - row["ci_low"]) / 2,
            **{name: row[name] for name in ("ci_low", "ci_high")},
            "noisy": of_row,
        }


def _warning(attribute: Attribute, rows: pa.Table, signals: Sequence[dict[str, Any]]) -> str | None:
    if not rows.num_rows:
        return "sanitised values hardly depend on the true ones, so shares cannot be estimated from them."
    noisy = [one["value"] for one in signals if one["attribute"] == attribute.name and one["noisy"]]
    if not noisy:
        return None
    wide = "the interval is wider than half of the possible range"
    if attribute.estimates is None:
        return f"mostly noise, since {wide}."
    what = f"{len(noisy)} of {rows.num_rows} {attribute.estimates}"
    which = f"{', '.join(noisy)} ({what})" if len(noisy) <= NAMED else what
    if attribute.numeric:
        return f"mostly noise: {which}, since {wide}."
    why = "the interval contains zero, or is wider than half of the possible range"
    return f"mostly noise: {which}, since {why}."


def _advice(attribute: Attribute, rows: pa.Table) -> str:
    """Return advice for the curator to a warning, which the page leaves out; empty without any."""
    less = "More records" if attribute.numeric else "More records or fewer values"
    return f" {less} would reduce the noise." if rows.num_rows else ""


def _page(
    records: PublishedRecords,
    found: Sequence[tuple[Attribute, pa.Table]],
    signals: Sequence[dict[str, Any]],
    warnings: dict[str, str],
) -> str:
    record = records.record
    budget = f"epsilon = {shown(record.epsilon)}" + (f", delta = {shown(record.delta)}" if record.delta else "")
    parts = [
        f"<h1>{html.text(records.release)}</h1>\n",
        html.paragraph(
            f"{counted(records.count, 'record')}, each with separate noise that was added once, before publication, "
            f"with differential privacy: {budget} for everything that a record holds. Estimates from all of them:",
            role="lead",
        ),
        html.with_contents(
            [
                *(_attribute(place, one, warnings.get(one.name)) for place, (one, _) in enumerate(found)),
                html.section("label", "Privacy label", [html.facts(Stated(records.disclosure).points)]),
                _noise(signals),
                _privacy(records),
                _ledger(records),
            ]
        ),
    ]
    data = {"attributes": [_drawn(one, rows, signals) for one, rows in found]}
    return html.page(f"{records.release}: sanitised records", parts, data=data, script=html.ESTIMATES, copies=True)


def _drawn(attribute: Attribute, rows: pa.Table, signals: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the data of the chart of an attribute."""
    line = line_of(*(rows[name].to_numpy() for name in ("estimate", "ci_low", "ci_high")))
    return {
        "name": attribute.name,
        "values": [value or attribute.name for value in rows["value"].to_pylist()],
        "share": not attribute.numeric,
        "curve": attribute.numeric and attribute.estimates is not None,
        "range": [*attribute.range],
        "noisy": [one["noisy"] for one in signals if one["attribute"] == attribute.name],
        **line,
    }


def _attribute(place: int, attribute: Attribute, warning: str | None) -> html.PageSection:
    return html.section(
        f"attribute-{place}",
        attribute.name,
        [
            html.paragraph(f"{attribute.asked} Missing or impossible values count as {attribute.missing_text}."),
            *([] if warning is None else [html.paragraph(f"{attribute.name}: {warning}", role="warning")]),
            html.drawn(place, otherwise="The table of noise below has the estimates."),
        ],
    )


def _noise(signals: Sequence[dict[str, Any]]) -> html.PageSection:
    rows = [
        (
            one["attribute"] if one["value"] is None else f"{one['attribute']}: {one['value']}",
            _told(one, one["estimate"]),
            _interval(one),
            "yes" if one["noisy"] else "no",
        )
        for one in signals[:ROWS]
    ]
    return html.section(
        "noise",
        "How large the noise is",
        [
            html.paragraph(
                "Each estimate is unbiased: on average over the noise it is the truth. Its 95 % interval contains the "
                "truth of the records, and of the population that they were drawn from, with 95 % probability, each "
                "alone: of a hundred intervals about five do not. With fewer than about a hundred records, two kinds "
                "of intervals may miss the truth more often: those of categories with distances or probabilities, and "
                "those of means as estimates for the population."
            ),
            html.table(
                shortened("Each estimate with its 95 % interval", signals),
                ("estimate of", "estimate", "95 % interval", "mostly noise"),
                rows,
            ),
            html.paragraph(
                "An estimate is mostly noise if its interval is wider than half of the possible range; a share also if "
                "its interval contains zero. Shares may be below 0 or above 1: clamping would make them biased."
            ),
        ],
    )


def _told(signal: dict[str, Any], number: float) -> str:
    """Return a number with the digits of the estimate; shares in percent."""
    if signal["kind"] == "share":
        return f"{rounded(100 * number, 100 * signal['half'])} %"
    return rounded(number, signal["half"])


def _interval(signal: dict[str, Any]) -> str:
    """Return both ends of an interval, since intervals of shares are not symmetric if there are few records."""
    scale, unit = (100, " %") if signal["kind"] == "share" else (1, "")
    low, high = outward(scale * signal["ci_low"], scale * signal["ci_high"])
    return f"{low} to {high}{unit}"


def _privacy(records: PublishedRecords) -> html.PageSection:
    record = records.record
    costs = [
        (one.name, one.kind, one.mechanism, error_text(one), shown(one.epsilon), shown(one.delta))
        for one in record.attributes
    ]
    return html.section(
        "privacy",
        "What is promised",
        [
            html.heading("What is protected"),
            html.paragraph(words.WHAT),
            html.heading("How strongly"),
            *(html.paragraph(one) for one in words.how_well(record, records.count)),
            html.table(
                "Cost of each attribute, and error of a single record",
                ("attribute", "kind", "noise", "a single record is", "epsilon", "delta"),
                [*costs, ("each record", "", "", "", shown(record.epsilon), shown(record.delta))],
                words=4,
            ),
            html.heading("What is not protected"),
            html.bullets(words.NOT_PROTECTED),
            html.heading("The claim and its conditions"),
            *words.claim(record),
            html.paragraph(f"Spec {records.spec_sha256}", role="digest"),
        ],
    )


def _ledger(records: PublishedRecords) -> html.PageSection:
    record, runs = records.record, len(records.commits)
    left = max(0, runs - EPOCHS)
    return html.section(
        "ledger",
        "Ledger",
        [
            html.paragraph(
                f"Sanitised so far: {counted(records.count, 'record')} in {counted(runs, 'run')}, each record once. "
                f"Each costs epsilon {shown(record.epsilon)} and delta {shown(record.delta)}, and that is all "
                "that it will ever cost; records do not add up, except records of one person."
            ),
            html.table(
                "Runs" + (f" (the last {EPOCHS}; {left} before them)" if left else ""),
                ("epoch", "committed", "records"),
                [(one.epoch, people_time(one.committed_at), f"{one.records:,}") for one in records.commits[-EPOCHS:]],
                words=2,
            ),
        ],
    )
