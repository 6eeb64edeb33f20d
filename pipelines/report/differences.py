"""Differences of published numbers: of the last window and earlier ones, and of cells. Whether each change is real.

The interval of a difference of counts or sums follows from the covariance of the noise (`pipelines.report.exact`). For
other numbers both 95 % intervals hold at once with at least 90 % probability, and so does the interval that they
give for the difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from pipelines.pages.numbers import Floats, Numbers, rounded
from pipelines.published.labels import Labels
from pipelines.published.release import Published
from pipelines.published.sums import HIGHER, LOWER, REAL, UNCLEAR, verdict
from pipelines.report.exact import ExactErrors
from pipelines.report.facts import StatedDifference
from pipelines.report.latest import interval_text
from pipelines.report.parts import ALL_CELLS, FEW, ReportPart, cell_name, cells_of, largest, window_of
from privacy.estimates import CONFIDENCE
from transforms.release.quantile_tables import QUANTILE

BOTH = 2 * CONFIDENCE - 1
"""Least probability with which two 95 % intervals hold at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """Inputs of the differences of a series."""

    part: ReportPart
    numbers: Numbers
    release: Published
    labels: Labels
    errors: ExactErrors

    @property
    def last(self) -> int:
        return len(self.numbers.value) - 1


def differences(
    part: ReportPart, numbers: Numbers, release: Published, labels: Labels, errors: ExactErrors
) -> list[StatedDifference]:
    """Return the differences of a series: first of windows, then of cells.

    Args:
        part: The part of the page.
        numbers: The series.
        release: The public side of the release.
        labels: Labels of cells.
        errors: Errors of sums of the series.
    """
    of = _Compared(part=part, numbers=numbers, release=release, labels=labels, errors=errors)
    return [] if of.last < 0 else [*_of_windows(of), *_of_cells(of)]


def _of_windows(of: _Compared) -> Iterator[StatedDifference]:
    cells, before = of.part.query.cells, [of.last - place for place in of.errors.others]
    everything = np.ones(cells)
    if of.errors.of_all_cells:
        for back in before:
            yield from _difference(of, everything, None, None, back)
    for cell, values in cells_of(of.part, largest(of.numbers, FEW)):
        for back in before:
            yield from _difference(of, _only(cell, cells), values, values, back)


def _of_cells(of: _Compared) -> Iterator[StatedDifference]:
    """Yield the differences of each two of few cells; of many cells, of the largest and the next ones."""
    cells = of.part.query.cells
    chosen = [*cells_of(of.part, largest(of.numbers, FEW))] if cells > 1 else []
    pairs = [*combinations(chosen, 2)] if cells <= FEW else [(chosen[0], other) for other in chosen[1:]]
    for (cell, values), (other, minus) in pairs:
        if values.get(QUANTILE) != minus.get(QUANTILE):  # a larger quantile is larger, and this is no news
            continue
        yield from _difference(of, _only(cell, cells) - _only(other, cells), values, minus, 0)


def _only(cell: int, cells: int) -> Floats:
    weights = np.zeros(cells)
    weights[cell] = 1.0
    return weights


def _difference(
    of: _Compared,
    weights: Floats,
    cell: dict[str, str] | None,
    minus_cell: dict[str, str] | None,
    back: int,
) -> Iterator[StatedDifference]:
    """Yield the difference of a sum of cells and the same sum `back` numbers earlier; 0: at the last window alone.

    Nothing if one of the numbers is unknown.
    """
    numbers, last, other = of.numbers, of.last, of.last - back
    value = float(numbers.value[last] @ weights) - (float(numbers.value[other] @ weights) if back else 0.0)
    if np.isnan(value):
        return
    if of.errors.known:
        half = of.errors.half(weights, other if back else None)
        low, high = value - half, value + half
    else:
        low, high = _by_intervals(numbers, weights, last, other)
    window, before = (window_of(of.release, numbers, place) for place in (last, other))
    known = not np.isnan(low)
    real = verdict(low, high)
    name = partial(_name, of)
    first = f"{name(cell)}, {window.name}"
    second = before.name if back else name(minus_cell)
    probability = CONFIDENCE if of.errors.known else BOTH
    yield StatedDifference(
        cell=cell,
        minus_cell=minus_cell,
        window=window.name,
        minus_window=before.name,
        window_end=window.end,
        minus_window_end=before.end,
        value=value,
        low=float(low) if known else None,
        high=float(high) if known else None,
        probability=round(probability, 9),
        real=real,
        name=first,
        minus_name=second,
        text=f"{first}, compared with {second}: {difference_text(value, low, high, probability)}, {REAL[real]}",
    )


def _name(of: _Compared, cell: dict[str, str] | None) -> str:
    if cell is None:
        return ALL_CELLS
    return cell_name(cell, of.part, of.labels)


def difference_text(value: float, low: float, high: float, probability: float) -> str:
    """Return a difference with its interval, as text.

    >>> difference_text(12.04, 3.0, 21.0, 0.95), difference_text(0.04, -9.0, 9.0, 0.9)
    ('+12.0 (95 % interval 3.0 to 21.0)', '0.0 (90 % interval -9.0 to 9.0)')
    """
    if np.isnan(low):
        return signed(f"{value:,.6g}")
    return f"{signed(rounded(value, (high - low) / 2))} ({interval_text(low, high, probability)})"


def signed(number: str) -> str:
    """Return the text of a number with its sign; zero has none.

    >>> signed("12"), signed("-3"), signed("0.0")
    ('+12', '-3', '0.0')
    """
    return number if number.startswith("-") or not number.strip("0.") else f"+{number}"


def _by_intervals(numbers: Numbers, weights: Floats, last: int, other: int) -> tuple[float, float]:
    """Return an interval of a difference from those of both numbers: of two windows of one cell, or of two cells."""
    first = int(np.argmax(weights))
    second = int(np.argmin(weights)) if weights.min() < 0 else first
    low = numbers.low[last, first] - numbers.high[other, second]
    return float(low), float(numbers.high[last, first] - numbers.low[other, second])


ANSWERS = {HIGHER: "yes, higher", LOWER: "yes, lower", UNCLEAR: "cannot be distinguished from the noise"}
"""Answers in a table; otherwise unknown."""
