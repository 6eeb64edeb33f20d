"""Data of the charts of a release's page, and pages with the scripts that draw them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.pages import html
from pipelines.pages.charts import Times, chart_document
from pipelines.pages.numbers import outward
from pipelines.pages.outline import Line
from pipelines.published.release import Published
from pipelines.report.differences import NOISY
from pipelines.report.facts import StatedDifference, StatedQuery
from pipelines.report.label import Stated
from pipelines.report.parts import ReportPart


def drawn_part(
    release: Published, part: ReportPart, query: StatedQuery, about: Stated, *, queries: int
) -> dict[str, Any]:
    """Return the data of the charts of a part of the page, and of the differences that the page states."""
    times = Times(
        start=release.local(release.bounds.start), window=release.plan.promise.window, boundaries=_boundaries(release)
    )
    drawn = chart_document(
        *(part.query, part.numbers, release.plan),
        times=times,
        queries=queries,
        name=about.heading(part),
        of=part.of,
        within=part.within,
    )
    return about.labelled(with_differences(drawn, query))


def with_differences(drawn: dict[str, Any], query: StatedQuery) -> dict[str, Any]:
    """Return the data of charts with the differences that the page states, for `compare.js`."""
    series = [
        {
            **found,
            "stated": [_compared(difference) for difference in one.differences],
            **({"noisy": NOISY} if one.noisy else {}),
        }
        for found, one in zip(drawn["series"], query.series, strict=True)
    ]
    return {**drawn, "series": series}


def headlined(drawn: dict[str, Any]) -> bool:
    """Return whether the charts begin with the latest sum of all cells, for each kind of numbers (`charts.js`)."""
    picture, series = drawn.get("picture"), [one for one in drawn["series"] if one["first"] is not None]
    if picture is None or picture["kind"] == "quantiles" or drawn["part"] or drawn["series"][0]["first"] is None:
        return False
    return all("total" in one or "untotalled" in one for one in series)


def _compared(one: StatedDifference) -> list[str | float]:
    """Return the names of both numbers, as `compare.js` has them, their difference, and its interval with its level."""
    of_cells = one.minus_window == one.window
    other = f"{one.minus_name}, {one.window}" if of_cells else one.name.removesuffix(one.window) + one.minus_window
    names: list[str | float] = [one.name, other]
    if one.low is None or one.high is None:
        return names
    texts = one.difference, *outward(one.low, one.high)
    return [*names, *(float(text.replace(",", "")) for text in texts), round(100 * one.probability)]


def _boundaries(release: Published) -> NDArray[np.int64] | None:
    """Return the bounds of windows of a calendar, as clocks of its zone show them; None without a calendar."""
    bounds = release.bounds
    if bounds.ends is None:
        return None
    return np.array([release.local(moment) for moment in (bounds.start, *bounds.ends)], dtype=np.int64)


def with_charts(title: str, body: Sequence[str | html.PageSection], data: dict[str, Any] | None) -> str:
    """Return a page with the scripts of the charts that it has."""
    kinds = {one["picture"]["kind"]: None for one in (data or {}).get("queries", []) if "picture" in one}
    return html.page(title, body, data=data, pictures=kinds, copies=True)


def charts_data(
    drawn: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]], outline: Sequence[Line] | None
) -> dict[str, Any]:
    """Return the data of a page.

    Args:
        drawn: Data of its charts.
        others: Data that the charts also read, such as marginals without a chart.
        outline: Lines of an outline; None: no lines.
    """
    return {
        "queries": drawn,
        **({"others": others} if others else {}),
        **({} if outline is None else {"outline": outline}),
    }


def others_of(one: dict[str, Any], drawn: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the data of the other parts of the same query, such as its marginals, which a chart also reads."""
    return [other for other in drawn if other["origin"] == one["origin"] and other is not one]
