"""The section of the page about the budget: the budget spent in each epoch, and the rest."""

from typing import Any

from pipelines.ledger.account import adds_up
from pipelines.pages import html
from pipelines.pages.subject import covered
from pipelines.published.labels import Labels
from pipelines.published.release import Published
from pipelines.spec.times import microseconds, parse_time
from privacy.counted import up_to
from privacy.upward import shown
from transforms.common.dates import moment_name

EPOCHS = 20
"""Number of epochs that the ledger shows, the last ones."""


def committed(release: Published, text: str) -> int:
    """Return a time in ISO 8601 by the clocks of the release, in whole seconds of microseconds."""
    moment = microseconds(parse_time(text))
    return release.local(moment - moment % 1_000_000)


def ledger_section(release: Published, document: dict[str, Any], labels: Labels) -> html.PageSection:
    """Return the section.

    Args:
        release: The public side of the release.
        document: The ledger (`pipelines.ledger.account.ledger_document`).
        labels: Labels of queries.
    """
    rows = [
        (row, shown(document[row]["epsilon"]), html.written(shown(document[row]["delta"])))
        for row in ("total", "spent")
    ]
    if adds_up(release.plan):
        rows.append(
            (
                "remaining",
                f"{document['remaining']['epsilon']:.6g}",
                html.written(f"{document['remaining']['delta']:.6g}"),
            )
        )
    epochs = document["epochs"][-EPOCHS:]
    left = len(document["epochs"]) - len(epochs)
    return html.section(
        "ledger",
        "Ledger",
        [
            html.table(f"The budget, for {covered(release.spec)}", ("", "epsilon", "delta"), rows),
            *_shares(document, labels),
            html.table(
                "Budget spent by the end of each epoch" + (f" (the last {EPOCHS}; {left} before them)" if left else ""),
                ("epoch", "windows", "until", "published", "epsilon", "delta"),
                [
                    (
                        epoch["epoch"],
                        up_to(epoch["released"] + 1, epoch["windows"]),
                        moment_name(release.local(release.bounds.end(epoch["windows"]))),
                        moment_name(committed(release, epoch["committed_at"])),
                        shown(epoch["spent"]["epsilon"]),
                        shown(epoch["spent"]["delta"]),
                    )
                    for epoch in epochs
                ],
                words=4,
            ),
        ],
    )


def _shares(document: dict[str, Any], labels: Labels) -> list[str]:
    """Return the table of the shares of queries; none for one query."""
    queries = document["queries"]
    if len(queries) == 1:
        return []
    (unit,) = queries[0]["total"]
    rows = [(labels.query(one["name"]), *(shown(one[row][unit]) for row in ("total", "spent"))) for one in queries]
    return [html.table(f"Share of each query, in {unit}", ("query", "total", "spent"), rows)]
