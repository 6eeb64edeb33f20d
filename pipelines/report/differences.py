"""Differences of published numbers: of the last window and earlier ones, and of cells; whether noise explains them.

The interval of a difference of counts or sums follows from the covariance of the noise (`pipelines.report.exact`). For
other numbers both 95 % intervals hold at once with at least 90 % probability, and so does the interval that they
give for the difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations

import numpy as np

from pipelines.pages.numbers import Floats, Numbers, apart, outward, percent, signal
from pipelines.published.labels import Labels
from pipelines.published.sums import HIGHER, LOWER, REAL, verdict
from pipelines.report.exact import SeriesErrors
from pipelines.report.facts import StatedDifference
from pipelines.report.latest import noise_of, together_of
from pipelines.report.parts import ALL_CELLS, FEW, Dated, ReportPart, cell_name, cells_of, largest, window_of
from privacy.estimates import CONFIDENCE
from transforms.release.quantile_tables import QUANTILE

BOTH = 2 * CONFIDENCE - 1
"""Least probability with which two 95 % intervals hold at once."""


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """Inputs of the differences of a series."""

    part: ReportPart
    numbers: Numbers
    release: Dated
    labels: Labels
    errors: SeriesErrors

    @property
    def last(self) -> int:
        return len(self.numbers.value) - 1

    @cached_property
    def noisy(self) -> bool:
        """Whether the page marks the series as mostly noise."""
        found = signal(self.numbers, within=self.part.within)
        return found is not None and found.noisy

    def half_of_change(self, weights: Floats, value: float, back: int) -> float:
        """Half width of the published change that a level minus that of the window before is; 0: it is not published.

        Args:
            weights: Weights of cells: all cells, or one of them.
            value: The difference.
            back: Number of windows between both levels.
        """
        for change in self.part.numbers:
            if (change.series.kind, self.numbers.series.kind, back) != ("change", "level", 1):
                continue
            cell = int(np.argmax(weights))
            columns = change.value[-1:, cell], change.low[-1:, cell], change.high[-1:, cell]
            if weights.sum() > 1:
                columns = change.together or columns
            if np.isclose(columns[0][-1], value):
                return float(np.nan_to_num(columns[2][-1] - columns[1][-1])) / 2
        return 0.0

    def noisy_number(self, cell: int | None, place: int) -> tuple[float, float]:
        """Return a number of a window with the noise that decides about its digits; of all cells together without one.

        Args:
            cell: Number of the cell; None: the sum of all cells.
            place: Place of the window.
        """
        numbers = self.numbers
        columns = None if cell is not None else together_of(self.part, numbers, self.errors)
        if columns is None:
            at = cell or 0
            columns = numbers.value[:, at], numbers.low[:, at], numbers.high[:, at]
        return float(columns[0][place]), noise_of(columns, numbers, place)


def differences(
    part: ReportPart, numbers: Numbers, release: Dated, labels: Labels, errors: SeriesErrors
) -> list[StatedDifference]:
    """Return the differences of a series: first of windows, then of cells.

    Args:
        part: The part of the page.
        numbers: The series.
        release: The release or survey.
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
    used = weights != 0  # an unknown number of another cell does not matter
    sums = numbers.value[[last, other]][:, used] @ weights[used]
    value = float(sums[0] - sums[1] if back else sums[0])
    if np.isnan(value):
        return
    if of.errors.known:
        half = max(of.errors.half(weights, other if back else None), of.half_of_change(weights, value, back))
        low, high = value - half, value + half
    else:
        low, high = _by_intervals(numbers, weights, last, other)
    window, before = (window_of(of.release, numbers, place) for place in (last, other))
    known = not np.isnan(low)
    real = verdict(low, high)
    name = partial(_name, of)
    first = f"{name(cell)}, {window.name}"
    second = before.name if back else name(minus_cell)
    probability = round(CONFIDENCE if of.errors.known else BOTH, 9)
    one = None if cell is None else int(np.argmax(weights))
    number, minus, difference = apart(
        of.noisy_number(one, last),
        of.noisy_number(one, other) if back else of.noisy_number(int(np.argmin(weights)), last),
    )
    pair = (
        (f"from {minus} ({before.name}) to {number} ({window.name})", "")
        if back
        else (f"{number} ({window.name})", f" than {second}, {minus}")
    )
    said = _sentence(pair, difference, (float(low), float(high)), probability)
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
        probability=probability,
        real=real,
        difference=difference,
        name=first,
        minus_name=second,
        text=f"{name(cell)}: {said}; {answer(real, of.noisy and cell is not None)[1]}",
    )


def _name(of: _Compared, cell: dict[str, str] | None) -> str:
    if cell is None:
        return ALL_CELLS
    return cell_name(cell, of.part, of.labels)


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


NOISY = "most numbers of this kind are noise"
"""Hint next to a difference of a series that is mostly noise."""


def answer(real: str, noisy: bool) -> tuple[str, str]:
    """Return the answer to the question whether a difference is larger than the noise: for a table, and for a sentence.

    Args:
        real: Result of `verdict`.
        noisy: Whether the series is mostly noise.

    >>> answer("higher", True)[1]
    'more than the noise explains, but most numbers of this kind are noise'
    """
    said = REAL[real] + (f", but {NOISY}" if noisy and real in (HIGHER, LOWER) else "")
    return said, said.rpartition(": ")[2]


def _sentence(pair: tuple[str, str], difference: str, ends: tuple[float, float], probability: float) -> str:
    """Return a difference in words.

    Args:
        pair: The words before the difference, with one number or both, and those after it.
        difference: The difference, as text.
        ends: Ends of its interval; not a number if it is unknown.
        probability: Probability of the interval.

    >>> _sentence(("15 (noon)", " than south, 3"), "12", (3.0, 21.0), 0.95)
    '15 (noon), 12 higher than south, 3 (95 % interval 3 to 21 higher)'
    >>> _sentence(("from 7 (ten) to 7 (noon)", ""), "0", (-20, 20.6), 0.95)
    'from 7 (ten) to 7 (noon), no difference (95 % interval 20 lower to 21 higher)'
    """
    known = not np.isnan(ends[0])
    interval = f"{percent(probability)} interval {_directed(*ends)}" if known else "no known interval"
    if not difference.strip("0."):
        return f"{pair[0]}, no difference{pair[1].replace(' than ', ' from ', 1)} ({interval})"
    which = "lower" if difference.startswith("-") else "higher"
    return f"{pair[0]}, {difference.removeprefix('-')} {which}{pair[1]} ({interval})"


def _directed(low: float, high: float) -> str:
    """Return the ends of an interval with words for their signs.

    >>> _directed(-151.2, -107.5), _directed(-27, 10), _directed(0, 30), _directed(3, 41)
    ('107 to 152 lower', '27 lower to 10 higher', 'between no difference and 30 higher', '3 to 41 higher')
    """
    least, most = (text.removeprefix("-") for text in outward(low, high))
    if 0 in (low, high) and low < high:
        return f"between no difference and {most if high else least} {'higher' if high else 'lower'}"
    if high <= 0:
        return f"{most} to {least} lower"
    return f"{least} to {most} higher" if low >= 0 else f"{least} lower to {most} higher"
