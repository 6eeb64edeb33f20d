"""The section of the page about keys that are found: when each was found, and the rest without them."""

from collections.abc import Iterator
from typing import Any

from pipelines.pages import html
from pipelines.pages.numbers import outward, rounded
from pipelines.published.labels import Labels
from pipelines.published.release import Published
from pipelines.spec.times import moment_text
from transforms.aggregation.queries import Query
from transforms.common.dates import moment_name, window_name
from transforms.release.rest_tables import no_rest, total_of

NAMED = 12
"""Most keys that the page names for one window of discovery."""

FEW = 6
"""Most cells of the rest that the page lists."""

INTRODUCTION = (
    "Keys by the window in which they were found. A key is listed from then on, permanently. The file manifest.json "
    "lists all of them."
)


def found_document(release: Published) -> list[dict[str, Any]]:
    """Return all found keys, by query and window of discovery, as the manifest lists them."""
    return [
        {"query": found.query, "window": found.window, "until": moment_text(found.until), "keys": [*found.keys]}
        for epoch in release.epochs
        for found in epoch.found
    ]


def found_section(release: Published, labels: Labels) -> list[html.PageSection]:
    """Return the section; none if the release lists all its keys.

    Args:
        release: The public side of the release.
        labels: Labels of queries, keys and cells.
    """
    queries = [query for query in release.spec.queries if query.discovers]
    parts = [part for query in queries for part in _of_query(query, release, labels)]
    return [html.section("found", "Found keys", [html.paragraph(INTRODUCTION), *parts])] if queries else []


def _of_query(query: Query, release: Published, labels: Labels) -> Iterator[str]:
    yield html.heading(labels.query(query.name))
    found = [one for epoch in release.epochs for one in epoch.found if one.query == query.name]
    if found:
        texts = []
        for one in found:
            more = f" and {len(one.keys) - NAMED:,} more" if len(one.keys) > NAMED else ""
            shown = [labels.cell([query.found_by or ""], [key])[0] for key in one.keys[:NAMED]]
            texts.append(f"{_window(release, one.window)}: {', '.join(shown)}{more}")
        yield html.bullets(texts)
    else:
        yield html.paragraph(f"Query {query.name} has found no key so far.")
    rest = release.rest(query)
    if rest is None:
        yield html.paragraph(no_rest(query))
        return
    total, last = total_of(query, release.spec.queries), rest.slice(rest.num_rows - query.each).to_pylist()
    names = [name for name, _ in query.known]
    of = []
    for row in last[:FEW]:
        cell = labels.cell(names, [str(row[name]) for name in names])
        of.append(f"{', '.join(['All other keys', *cell])}: {_with_interval(row)}")
    left = f" and {len(last) - FEW:,} more cells" if len(last) > FEW else ""
    now = moment_name(release.local(release.bounds.end(release.windows)))
    yield html.paragraph(
        f"Latest rest, {now}: {labels.query(total.name) if total else ''} minus the published numbers of found keys"
        f"{left}. The intervals cover the noise of these numbers as they are. They leave out that noise decides which "
        "keys are found:",
        role="latest",
    )
    yield html.bullets(of)


def _window(release: Published, number: int) -> str:
    """Return the name of a window."""
    start, end = (release.local(release.bounds.end(at)) for at in (number - 1, number))
    return window_name(start, end)


def _with_interval(row: dict[str, float]) -> str:
    """Return a number with its interval, as text."""
    least, most = outward(row["ci_low"], row["ci_high"])
    number = rounded(row["value"], (row["ci_high"] - row["ci_low"]) / 2)
    return f"{number} (95 % interval {least} to {most})"
