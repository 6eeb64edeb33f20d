"""Sums of reports, layer by layer, and the numbers of people by answer that are estimated from them."""

from dataclasses import dataclass

import numpy as np

from privacy.local.basis import Floats
from privacy.local.chance import Ints
from privacy.local.client import Reports
from privacy.local.design import Design
from privacy.local.intervals import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Tally of the reports on a node.

    Attributes:
        reports: number of reports.
        sums: int64 [questions], sums of signs; or int64 [2, answers], the numbers of symbols that lead away from each
            answer and to it; or int64 [1, answers], the number of people who have reported each answer once.
    """

    reports: int
    sums: Ints

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(reports=self.reports + other.reports, sums=self.sums + other.sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByAnswer:
    """Numbers of people by answer, float64 [windows, answers]. Without reports: NaN, and an infinite variance.

    Attributes:
        lows, highs: ends of 95 % intervals, each with at least this coverage for any number of people.
    """

    values: Floats
    variances: Floats
    lows: Floats
    highs: Floats


def tally(design: Design, reports: Reports) -> dict[int, Tally]:
    """Return tallies by layer, from the reports of one window, each person's once."""
    found = {}
    for number in np.unique(reports.layer).tolist():
        mine = reports.layer == number
        symbol, sign = reports.symbol[mine].astype(np.int64), reports.sign[mine]
        randomiser = design.layers[number].randomiser
        sums = randomiser.summed(symbol, sign, design.basis, design.space, once=design.reported == "once")
        found[number] = Tally(reports=len(symbol), sums=sums)
    return found


def empty(design: Design, layer: int) -> Tally:
    """Return the tally of a node without reports."""
    shape = design.layers[layer].randomiser.sums(design.basis, once=design.reported == "once")
    return Tally(reports=0, sums=np.zeros(shape, dtype=np.int64))


def around(values: Floats, variances: Floats, bounds: Bounds) -> ByAnswer:
    """Return estimates with intervals.

    Args:
        values: float64 [windows, answers].
        variances: float64 [windows, answers].
        bounds: bounds of the errors, of shapes that broadcast to `values`.
    """
    half = np.where(np.isfinite(variances), bounds.half_widths(), np.nan)
    return ByAnswer(values=values, variances=variances, lows=values - half, highs=values + half)


def unknown(design: Design) -> tuple[Floats, Floats]:
    return np.full(design.answers, np.nan), np.full(design.answers, np.inf)
