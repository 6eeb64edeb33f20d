"""Plain tables of a report, which need no script: the latest numbers of a query, also as CSV, and differences."""

from collections.abc import Iterator, Sequence
from io import BytesIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.pages import html
from pipelines.pages.numbers import Numbers, outward, rounded
from pipelines.published.labels import Labels
from pipelines.published.sums import HIGHER, LOWER
from pipelines.report.differences import answer, signed
from pipelines.report.facts import StatedDifference, StatedQuery
from pipelines.report.latest import interval_text
from pipelines.report.parts import Dated, ReportPart, cells_of, largest, window_of
from privacy.counted import counted
from privacy.estimates import CONFIDENCE
from transforms.common.output_formats import OUTPUT_FORMATS
from transforms.common.shown_tables import for_spreadsheets

SHOWN, SAVED = 400, 10_000
"""Most rows of all plain tables of a page, and of all its CSV files; each has at least one window, or its largest
cells."""

OPEN = 9
"""Most differences that a page shows at once; more are folded."""

PRINTED = 40
"""Most rows of a folded table that paper shows."""

MANY = 10
"""Number of differences from which on the page states how many of them chance may explain."""


def plain_table(
    part: ReportPart, stated: StatedQuery, release: Dated, labels: Labels, *, queries: int, others: str
) -> str:
    """Return the latest numbers of a part of the page as a folded table, with a link that saves them as CSV.

    Args:
        part: The numbers.
        stated: The facts about them.
        release: The release or survey.
        labels: Labels of columns and cells.
        queries: Number of parts that share the page.
        others: The published files that have all numbers.
    """
    tables = [one for one in (part.whole, part) if one is not None]
    shown, saved = (most // queries // max(1, len(part.numbers) * len(tables)) for most in (SHOWN, SAVED))
    keys = [name for name, key in part.query.by if not part.of or len(key) > 1]
    rows = [
        row
        for of in tables
        for numbers, one in _with_kinds(of, stated)
        for row in _rows(of, numbers, one, release, labels, shown, keys)
    ]
    content, count = _csv(part, stated, release, saved)
    every = sum(one.count for of in tables for one in of.numbers)
    saves = _of_all(count, every)
    left = "" if count == every else f"; {others} all"
    heading = ("when", "kind", *map(labels.column, keys), "number", "95 % from", "to")
    return html.folded(
        "Plain table, and numbers as CSV",
        [
            html.download(f"{_file_name(stated)}.csv", content, f"Save {saves} as CSV"),
            f'<p class="note">The CSV file has {saves}{left}. {_note(part)}</p>\n',
            html.table(f"{stated.label}: {_of_all(len(rows), every)}", heading, rows, words=2 + len(keys)),
        ],
        for_paper=len(rows) <= PRINTED,
    )


def _note(part: ReportPart) -> str:
    """Return a note on the CSV file and the table of a part: names, times and rounding."""
    kinds, times = {one.series.kind for one in part.numbers}, "a number is that of its window"
    if "level" in kinds:
        times = f"a level is the number at window_end{', others are those of the window' if len(kinds) > 1 else ''}"
    return (
        f"Its names and times are those of the published files: {times}. Below, each number is rounded separately: "
        "sums of shown numbers can differ in their last digits."
    )


def _of_all(count: int, every: int) -> str:
    """Return how many numbers a table has, and of how many it has the latest.

    >>> _of_all(12, 12), _of_all(400, 31_200)
    ('12 numbers', 'the latest 400 of 31,200 numbers')
    """
    return counted(count, "number") if count == every else f"the latest {count:,} of {counted(every, 'number')}"


def page_name(output: str, place: int, query: StatedQuery) -> str:
    """Return the path of the separate page of a query, next to that of the whole release."""
    return f"{output.removesuffix('.html')}-{place + 1}-{_file_name(query)}.html"


def _file_name(stated: StatedQuery) -> str:
    return "-".join(
        "".join(sign if sign.isalnum() else "-" for sign in one) for one in (stated.query, stated.of) if one
    )


def _with_kinds(part: ReportPart, stated: StatedQuery) -> Iterator[tuple[Numbers, str]]:
    yield from ((numbers, one.kind) for numbers, one in zip(part.numbers, stated.series, strict=True))


def _chosen(numbers: Numbers, most: int) -> tuple[range, NDArray[np.int64]]:
    """Return the places of the last numbers and the cells, for at most `most` numbers, or for one."""
    windows, cells = numbers.value.shape
    chosen = largest(numbers, max(1, most))
    last = min(windows, max(1, most // len(chosen))) if cells else 0
    return range(windows - last, windows), chosen


def _rows(
    part: ReportPart, numbers: Numbers, kind: str, release: Dated, labels: Labels, most: int, keys: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield rows for people, the last window first, with these keys."""
    places, chosen = _chosen(numbers, most)
    published = numbers.published
    cells = [(cell, labels.cell(keys, [one[name] for name in keys])) for cell, one in cells_of(part, chosen)]
    for place in reversed(places):
        window = window_of(release, numbers, place).name
        for cell, label in cells:
            if not published[place, cell]:
                continue
            value, low, high = (float(one[place, cell]) for one in (numbers.value, numbers.low, numbers.high))
            yield (window, kind, *label, *_texts(value, low, high))


def _texts(value: float, low: float, high: float) -> tuple[str, str, str]:
    if np.isnan(value):
        return "unknown", "", ""
    if np.isnan(high - low):
        return f"{value:,.6g}", "", ""
    return rounded(value, (high - low) / 2), *outward(low, high)


def _csv(part: ReportPart, stated: StatedQuery, release: Dated, most: int) -> tuple[bytes, int]:
    """Return the latest numbers as a CSV file with the columns of the published files, and how many there are."""
    tables = []
    numbers_of_all = [(of, *one) for of in (part, part.whole) if of is not None for one in _with_kinds(of, stated)]
    for of, numbers, kind in numbers_of_all:
        places, chosen = _chosen(numbers, most)
        windows = [window_of(release, numbers, place) for place in places]
        values = [one for _, one in cells_of(of, chosen)]
        columns = {
            "query": [stated.query] * (len(windows) * len(chosen)),
            "kind": [f"{kind}, {of.of}" if of.of else kind] * (len(windows) * len(chosen)),
            "window_start": [one.start for one in windows for _ in values],
            "window_end": [one.end for one in windows for _ in values],
            **{name: [one[name] for one in values] * len(windows) for name, _ in of.query.by},
        }
        numbered = {
            name: pa.array(column[places.start : places.stop, chosen].ravel(), from_pandas=True)
            for name, column in (("value", numbers.value), ("ci_low", numbers.low), ("ci_high", numbers.high))
        }
        texts = {name: pa.array(column, pa.string()) for name, column in columns.items()}
        published = numbers.published[places.start : places.stop, chosen].ravel()
        tables.append(pa.table({**texts, **numbered}).filter(pa.array(published)))
    table, file = pa.concat_tables(tables), BytesIO()
    OUTPUT_FORMATS["csv"].write(for_spreadsheets(table), file)
    return file.getvalue(), table.num_rows


WHY_LESS = " A 90 % interval follows from two 95 % intervals, which hold at once with at least 90 % probability."
"""Reason for another level than that of the numbers."""

OTHERS = "Differences are those of the bounded data."
"""Last sentence below the differences of a release."""


def differences_table(stated: StatedQuery, others: str = OTHERS) -> str:
    """Return the differences of a part of the page as a table that answers which are real; empty without any.

    Args:
        stated: The facts about the part.
        others: Last sentence below the table.
    """
    found = [(one, difference) for one in stated.series for difference in one.differences]
    if not found:
        return ""
    several = len(stated.series) > 1
    table = html.table(
        f"{stated.label}: differences",
        ("number", "compared with", "difference", "interval", "larger than the noise?"),
        [_difference_row(f"{series.kind}, " if several else "", one, series.noisy) for series, one in found],
        words=5,
        stacks=True,
    )
    differing = [one for _, one in found]
    less = WHY_LESS if any(one.low is not None and one.probability < CONFIDENCE for one in differing) else ""
    note = html.paragraph(
        "The noise does not explain a difference if its interval does not contain 0. This does not say why the numbers "
        f"differ.{less}{_by_chance(differing)} {others}".rstrip()
    )
    if len(found) <= OPEN:
        return html.heading("Is the change larger than the noise?") + table + note
    clear = sum(one.real in (HIGHER, LOWER) for one in differing)
    known = sum(one.low is not None for one in differing)
    summary = f"Is the change larger than the noise? {clear} of {counted(known, 'difference')}"
    return html.folded(summary, [table, note], for_paper=True)


def _by_chance(found: Sequence[StatedDifference]) -> str:
    """Return how many of many differences chance alone makes look larger than the noise; empty for few.

    It is the sum of the probabilities that intervals miss, which needs no independence.
    """
    known = [1 - one.probability for one in found if one.low is not None]
    if len(known) < MANY:
        return ""
    return (
        f" If all {len(known):,} differences with intervals here were 0 without noise, at most about "
        f"{sum(known):,.1f} of them would look larger than the noise by chance alone, on average."
    )


def _difference_row(kind: str, one: StatedDifference, noisy: bool) -> Sequence[str]:
    ends = (np.nan, np.nan) if one.low is None or one.high is None else (one.low, one.high)
    interval = "" if np.isnan(ends[0]) else interval_text(*ends, one.probability).replace(" interval", ":")
    said, _ = answer(one.real, noisy and one.cell is not None)
    return f"{kind}{one.name}", one.minus_name, signed(one.difference), interval, said
