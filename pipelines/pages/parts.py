"""The published numbers of a release as its page shows them: for each query its cells, its ranges and its quantiles."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.pages.charts import labels
from pipelines.pages.noise import told
from pipelines.pages.numbers import Floats, Numbers, numbers_of, outstanding, outward, rounded, signal
from pipelines.reports.plan_report import series_document, series_text
from pipelines.reports.published import Published
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.release.quantile_tables import by_quantile
from transforms.release.range_tables import by_range

DAY = 86_400_000_000
_START = datetime(1970, 1, 1, tzinfo=UTC)

FEW = 6
"""Most cells whose latest numbers the page lists one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Numbers of one query with the same cells.

    Attributes:
        origin: as the spec has it.
        query: with these cells.
        name: what the page calls them.
        of: what they are besides numbers of cells; empty for these.
        within: where numbers can be, if their intervals are judged by that; None: by whether they hold zero.
    """

    origin: Query
    query: Query
    name: str
    of: str
    within: tuple[float, float] | None
    numbers: tuple[Numbers, ...]


def parts_of(release: Published) -> list[Part]:
    """All published numbers, in the order of `show`."""
    return [part for query in release.spec.queries for part in _parts(query, release)]


def _parts(query: Query, release: Published) -> Iterator[Part]:
    bounds = query.measure.bounds if len(query.measure.components) > 1 else None
    yield _part(query, query, release.numbers(query), release, within=bounds)
    if query.ranges:
        yield _part(query, by_range(query), release.ranges(query), release, of="ranges", within=bounds)
    if query.quantiles:
        (_, key), *_ = query.ordered
        edges = key.edges(0, key.steps + 1)
        scale = float(edges[0]), float(edges[-1])
        yield _part(query, by_quantile(query), release.quantiles(query), release, of="quantiles", within=scale)


def _part(
    origin: Query,
    query: Query,
    tables: Iterator[tuple[Series, pa.Table]],
    release: Published,
    *,
    within: tuple[float, float] | None,
    of: str = "",
) -> Part:
    numbers = tuple(numbers_of(series, table, query, release.plan) for series, table in tables)
    name = f"{query.name}, {of}" if of else query.name
    return Part(origin=origin, query=query, name=name, of=of, within=within, numbers=numbers)


def signals_of(part: Part, release: Published) -> Iterator[dict[str, Any]]:
    """Compare the noise of each series with its numbers."""
    says = "cannot be told from zero" if part.within is None else "have intervals wider than half of their range"
    for one in part.numbers:
        found = signal(one, within=part.within)
        if found is not None:
            mend = "Larger cells, fewer of them or longer windows would say more."
            yield {"query": part.name, "series": _kind(one, release), **told(found, says=says, mend=mend)}


def _kind(numbers: Numbers, release: Published) -> str:
    return series_text(series_document(numbers.series, release.plan))


def latest(part: Part, release: Published) -> dict[str, list[str]]:
    """By window, the last number of each series: of the only cell, of all together, or of each of a few."""
    found: dict[str, list[str]] = {}
    for one in part.numbers:
        if len(one.value):
            found.setdefault(window_text(release, one, len(one.value) - 1), []).extend(_latest(one, part, release))
    return found


def _latest(numbers: Numbers, part: Part, release: Published) -> Iterator[str]:
    kind, cells = _kind(numbers, release), part.query.cells
    if numbers.together is not None:
        of = " of all cells" if cells > 1 else ""
        yield f"{kind}{of} {_with_interval(*numbers.together, numbers)}"
    elif cells <= FEW:
        for cell, label in enumerate(labels(part.query, np.arange(cells))):
            text = _with_interval(numbers.value[:, cell], numbers.low[:, cell], numbers.high[:, cell], numbers)
            yield f"{kind}, {', '.join(label)}: {text}"
    elif not part.of and part.within is None:
        yield f"{kind} of all cells {numbers.value[-1].sum():,.0f}, the sum of the published cells"


def _with_interval(value: Floats, low: Floats, high: Floats, numbers: Numbers) -> str:
    """The last one of some numbers."""
    if np.isnan(value[-1]):
        return "not known"
    if np.isfinite(high[-1] - low[-1]):
        return f"{rounded(value[-1], (high[-1] - low[-1]) / 2)}, {_interval(low[-1], high[-1])}"
    known = np.flatnonzero(np.isfinite(high - low))
    noise = float(high[known[-1]] - low[known[-1]]) / 2 if len(known) else 1.0
    text = rounded(value[-1], noise)
    if numbers.repeated is None or not numbers.repeated[-1] or not len(known):
        return f"{text}, without a known interval"
    back = len(value) - 1 - known[-1]
    ago = "the window before" if back == 1 else f"{back:,} windows before"
    return f"{text}, repeated from {ago}, then {_interval(low[known[-1]], high[known[-1]])}"


def _interval(low: float, high: float) -> str:
    least, most = outward(low, high)
    return f"with 95 % probability from {least} to {most}"


def standing_out(part: Part, release: Published) -> list[str]:
    """Windows whose number is far out of all the others, with the whole of its interval."""
    said = []
    for one in part.numbers:
        if one.together is None:
            continue
        value, low, high = one.together
        half = (high - low) / 2
        name = _kind(one, release) + (" of all cells" if part.query.cells > 1 else "")
        for place in sorted(outstanding(value, half).tolist()):
            number, noise, usual = (rounded(n, half[place]) for n in (value[place], half[place], np.median(value)))
            window = window_text(release, one, place)
            said.append(f"{part.name}, {name}, {window}: {number} ± {noise}, where {usual} is usual")
    return said


def window_text(release: Published, numbers: Numbers, place: int) -> str:
    """The last window of a number, as people call it."""
    return end_text(release, release.bounds.end(place * numbers.series.every + numbers.series.width))


def end_text(release: Published, moment: int) -> str:
    """The end of a window, as the clocks of the schedule's zone show it: of a day if it is midnight."""
    local = release.local(moment)
    if local % DAY == 0:
        return f"end of {_START + timedelta(microseconds=local - DAY):%a %d %b %Y}"
    return f"{_START + timedelta(microseconds=local):%Y-%m-%d %H:%M}"
