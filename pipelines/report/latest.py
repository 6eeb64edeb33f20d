"""The latest numbers of a series in words, with their intervals, and the numbers that stand out."""

from collections.abc import Iterator, Mapping

import numpy as np

from pipelines.pages.numbers import Floats, Numbers, outstanding, outward, percent, rounded
from pipelines.published.labels import Labels
from pipelines.report.exact import SeriesErrors
from pipelines.report.facts import StatedNumber
from pipelines.report.parts import ALL_CELLS, ALL_FOUND, FEW, Dated, ReportPart, cell_name, cells_of, largest, window_of
from privacy.estimates import CONFIDENCE

NumberColumns = tuple[Floats, Floats, Floats]
"""Numbers with the ends of their intervals, [windows] each; not a number if unknown."""

LISTED = 200
"""Most cells whose latest numbers the facts have."""


def latest(
    part: ReportPart, numbers: Numbers, kind: str, labels: Labels, errors: SeriesErrors
) -> Iterator[StatedNumber]:
    """Yield the last numbers of a series: the sum of all cells, if it has a meaning, then the largest cells.

    Args:
        part: The part of the page.
        numbers: The series.
        kind: Name of its numbers.
        labels: Labels of cells.
        errors: Errors of sums of the series.
    """
    if not len(numbers.value):
        return
    if part.query.cells == 1 and numbers.together is not None:
        yield _stated({}, kind, numbers.together, numbers)
        return
    if (together := together_of(part, numbers, errors)) is not None:
        what = ALL_FOUND if part.origin.discovers else ALL_CELLS
        yield _stated(None, f"{kind}, {what}", together, numbers)
    for place, values in cells_of(part, largest(numbers, LISTED)):
        if not numbers.published[-1, place]:
            continue
        columns = numbers.value[:, place], numbers.low[:, place], numbers.high[:, place]
        yield _stated(values, f"{kind}, {cell_name(values, part, labels)}", columns, numbers)


def together_of(part: ReportPart, numbers: Numbers, errors: SeriesErrors) -> NumberColumns | None:
    """Return the sum of all cells with the ends of its interval, as far as known; None without a meaning."""
    if numbers.together is not None:
        return numbers.together
    if not errors.of_all_cells and (part.query.cells <= FEW or part.of or part.within is not None):
        return None
    value, half = numbers.value.sum(axis=1), np.full(len(numbers.value), np.nan)
    if errors.of_all_cells:
        half[-1] = errors.half(np.ones(part.query.cells), None)
    return value, value - half, value + half


def _repeated(numbers: Numbers) -> bool:
    return numbers.repeated is not None and bool(numbers.repeated[-1])


def _stated(cell: Mapping[str, str] | None, name: str, columns: NumberColumns, numbers: Numbers) -> StatedNumber:
    """Return the last of some numbers with its interval."""
    known = [None if np.isnan(one[-1]) else float(one[-1]) for one in columns]
    return StatedNumber(
        cell=cell,
        value=known[0],
        low=known[1],
        high=known[2],
        repeated=_repeated(numbers),
        name=name,
        text=f"{name}: {_with_interval(*columns, numbers)}",
    )


def _with_interval(value: Floats, low: Floats, high: Floats, numbers: Numbers) -> str:
    """Return the last of some numbers with its interval, as text."""
    if np.isnan(value[-1]):
        return "unknown"
    if np.isfinite(high[-1] - low[-1]):
        return f"{rounded(value[-1], (high[-1] - low[-1]) / 2)} ({interval_text(low[-1], high[-1])})"
    known = np.flatnonzero(np.isfinite(high - low))
    text = rounded(value[-1], noise_of((value, low, high), numbers))
    if numbers.repeated is None or not numbers.repeated[-1] or not len(known):
        return f"{text} (no known interval)"
    back = len(value) - 1 - known[-1]
    ago = "the window before" if back == 1 else f"{back:,} windows before"
    return f"{text} (repeated from {ago}, then with the {interval_text(low[known[-1]], high[known[-1]])})"


def noise_of(columns: NumberColumns, numbers: Numbers, place: int = -1) -> float:
    """Return the half width that decides how many digits one of some numbers has: its own, or the last known one."""
    half = (columns[2] - columns[1]) / 2
    known = half[np.isfinite(half)]
    return float(half[place] if np.isfinite(half[place]) else known[-1] if len(known) else numbers.noise or 1.0)


def interval_text(low: float, high: float, probability: float = CONFIDENCE) -> str:
    """Return an interval as text.

    >>> interval_text(3.0, 21.0)
    '95 % interval 3 to 21'
    """
    least, most = outward(low, high)
    return f"{percent(probability)} interval {least} to {most}"


def standing_out(part: ReportPart, numbers: Numbers, name: str, release: Dated) -> Iterator[str]:
    """Yield a sentence for each number of a series that stands out with its whole interval.

    Args:
        part: The part of the page.
        numbers: The series.
        name: Name of its numbers.
        release: The release or survey.
    """
    if numbers.together is None:
        return
    value, low, high = numbers.together
    half = (high - low) / 2
    name += f", {ALL_CELLS}" if part.query.cells > 1 else ""
    for place in sorted(outstanding(value, half).tolist()):
        number, usual = (rounded(n, half[place]) for n in (value[place], np.nanmedian(value)))
        least, most = outward(low[place], high[place])
        when = window_of(release, numbers, place).name
        yield f"{name}, {when}: {number} ({least} to {most}), where the median is {usual}"
