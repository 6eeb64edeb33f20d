"""Data of the charts of a release's page, and pages with the scripts that draw them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.pages import html
from pipelines.pages.charts import Times, chart_document
from pipelines.pages.outline import Line
from pipelines.published.release import Published
from pipelines.report.label import Stated
from pipelines.report.parts import ReportPart


def drawn_part(release: Published, part: ReportPart, about: Stated, *, queries: int) -> dict[str, Any]:
    """Return the data of the charts of a part of the page."""
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
    return about.labelled(drawn)


def _boundaries(release: Published) -> NDArray[np.int64] | None:
    """Return the bounds of windows of a calendar, as clocks of its zone show them; None without a calendar."""
    bounds = release.bounds
    if bounds.ends is None:
        return None
    return np.array([release.local(moment) for moment in (bounds.start, *bounds.ends)], dtype=np.int64)


def with_charts(title: str, body: Sequence[str], data: dict[str, Any] | None) -> str:
    """Return a page with the scripts of the charts that it has."""
    kinds = {one["picture"]["kind"]: None for one in (data or {}).get("queries", []) if "picture" in one}
    return html.page(title, body, data=data, pictures=kinds)


def charts_data(drawn: Sequence[dict[str, Any]], outline: Sequence[Line] | None) -> dict[str, Any]:
    """Return the data of a page: of its charts, and the lines of an outline."""
    return {"queries": drawn} if outline is None else {"queries": drawn, "outline": outline}


def others_of(drawn: Sequence[dict[str, Any]], place: int) -> list[dict[str, Any]]:
    """Return the data of the other parts of the same query, such as its marginals, which a chart also reads."""
    return [one for at, one in enumerate(drawn) if one["origin"] == drawn[place]["origin"] and at != place]
