"""Estimates from answers that each device reports once, in one window."""

from collections.abc import Mapping

import numpy as np

from privacy.local.basis import Floats
from privacy.local.chance import Ints
from privacy.local.design import Design
from privacy.local.intervals import FAILURE, of_once, shares_of_coins
from privacy.local.tallies import ByAnswer, Tally, around, empty, unknown


def levels_once(design: Design, tallies: Mapping[tuple[int, int], Tally], people: int, windows: int) -> ByAnswer:
    """Return estimates of levels that are reported once, [windows, answers]. Args: as for collector.levels."""
    numbers = [_once(design, tallies.get((0, node)), people) for node in range(windows)]
    values = np.array([value for value, _ in numbers])
    variances = np.array([variance for _, variance in numbers])
    reports = _reports(tallies, windows)
    if design.signs:
        return around(values, variances, of_once(design, reports, people))
    lows, highs = _coins(design, tallies, people, windows, FAILURE)
    return ByAnswer(values=values, variances=variances, lows=lows, highs=highs)


def changes_once(design: Design, tallies: Mapping[tuple[int, int], Tally], people: int, windows: int) -> ByAnswer:
    """Return estimates of changes: differences of consecutive levels; before the first window nobody is present.

    Args: as for privacy.local.collector.levels.
    """
    once = levels_once(design, tallies, people, windows)
    none = np.zeros((1, design.answers))
    values = np.diff(once.values, axis=0, prepend=none)
    variances = once.variances + np.concatenate([none, once.variances[:-1]])
    reports = _reports(tallies, windows)
    bounds = of_once(design, reports[1:], people) + of_once(design, reports[:-1], people)
    found = around(values[1:], variances[1:], bounds)
    lows, highs = found.lows, found.highs
    if design.symbols:
        # If this is not close enough to normal, each of the two levels has an interval, which may miss half as often.
        # The choice does not depend on the reported answers.
        low, high = _coins(design, tallies, people, windows, FAILURE / 2)
        close = np.isfinite(bounds.normal())
        lows, highs = np.where(close, lows, low[1:] - high[:-1]), np.where(close, highs, high[1:] - low[:-1])
    return ByAnswer(
        values=values,
        variances=variances,
        lows=np.concatenate([once.lows[:1], lows]),
        highs=np.concatenate([once.highs[:1], highs]),
    )


def _reports(tallies: Mapping[tuple[int, int], Tally], windows: int) -> Ints:
    """Return the number of reports on each window; 1 if there is no report, and so no estimate."""
    return np.array([max(1, tallies[0, node].reports) if (0, node) in tallies else 1 for node in range(windows)])


def _coins(
    design: Design, tallies: Mapping[tuple[int, int], Tally], people: int, windows: int, failure: float
) -> tuple[Floats, Floats]:
    """Return the ends of intervals of levels that are reported once, as symbols."""
    (symbols,) = design.symbols
    heard = [tallies.get((0, node), empty(design, 0)) for node in range(windows)]
    reports = np.array([[each.reports] for each in heard])
    low, high = shares_of_coins(np.array([each.sums[0] for each in heard]), reports, symbols, failure)
    known = reports > 1
    return np.where(known, people * low, np.nan), np.where(known, people * high, np.nan)


def _once(design: Design, tallied: Tally | None, people: int) -> tuple[Floats, Floats]:
    """Return a level from the people who have reported in its window, and its variance."""
    if tallied is None or tallied.reports < 2:
        return unknown(design)
    (layer,) = design.layers
    return layer.randomiser.level(tallied.sums, tallied.reports, people, design.basis)
