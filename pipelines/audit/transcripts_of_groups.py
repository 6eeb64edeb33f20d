"""Transcripts of policy `pegasus`: the noisy numbers of two cells, and the windows that leave a group."""

import math
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np

from pipelines.audit.transcripts import MOST_WINDOWS, Stream, firsts, jump, moved, random_levels
from privacy.cells.each import Each
from privacy.evidence.chances import work
from privacy.evidence.groups import log_chance, wrong_groups
from privacy.planning.adaptive_part import AdaptivePart

CELLS = 2

LONGEST = 12
"""Most windows of streams that are made."""

AFTERWARDS = 4
"""Windows that follow a protected span."""

DEEP = 6
"""Distance between levels with and without the unit, in widths of a decision's noise."""

MOST_WORK = 2**23
"""Largest number of values of thresholds' noise, over all windows of a stream."""


class OfGroups:
    """`Transcripts` of policy `pegasus`."""

    def untested(self, part: AdaptivePart) -> str | None:
        smooth = part.rule.settings(1.0, part.scales.noise).get("smooth", "mean")
        return (
            None if smooth == "mean" else f"{smooth} shows less than the noisy numbers and groups, whose loss is stated"
        )

    def made(self, part: AdaptivePart) -> Iterator[Stream]:
        """Yield neighbours that a group of windows tells apart most, and some that leave groups.

        The second neighbour lacks a unit of the first, which is in the first cell and then in the second one; its noisy
        numbers are published. In a cell, the windows with the unit are far above the others. So all deviations of the
        second neighbour are smaller, and it is more likely that each window joins its group.
        """
        size, period = part.scales.sensitivity, part.rule.period
        apart, first = DEEP * math.ceil(part.scales.test or 1), firsts(period)[0]
        present = min(period.among, LONGEST, max(2, MOST_WORK // work(part.scales)))
        windows = first + present + (0 if period.span is None else AFTERWARDS)
        number = np.arange(windows)
        for moves in sorted({first + 1, first + present // 2, first + present}):
            there = np.stack([(number >= first) & (number < moves), number >= moves], axis=1)
            there[first + present :] = False
            one = np.where(there, apart, 0)
            two = one - np.where(there, size, 0)
            for every in (windows + 1, 4, 2):
                left = np.repeat((number % every == every - 1)[:, None], CELLS, axis=1)
                yield Stream(one=one, two=two, answers=_possible(left), values=tuple(two))

    def drawn(self, part: AdaptivePart, choose: Random) -> Stream:
        period = part.rule.period
        windows = min(period.among if period.windows is not None else period.among + 2, MOST_WINDOWS)
        one = random_levels(part, windows, CELLS, choose)
        one[:, choose.randrange(CELLS)] += jump(part, choose)
        left = np.array([[choose.random() < 0.3 for _ in range(CELLS)] for _ in range(windows)])
        first = choose.randint(0, windows - 1) if period.span is not None else 0
        two = moved(one, period, part.scales.sensitivity, first, choose)
        return Stream(one=one, two=two, answers=_possible(left), values=tuple(two))

    def changed(self, stream: Stream, part: AdaptivePart, choose: Random) -> Stream:
        """Return a stream with another answer, another published value, or other levels of both in one window."""
        window, cell, kind = choose.randrange(len(stream.answers)), choose.randrange(CELLS), choose.randrange(3)
        if kind == 0:
            left = stream.answers.copy()
            left[window, cell] = not left[window, cell]
            return replace(stream, answers=_possible(left))
        one, two, values = stream.one.copy(), stream.two.copy(), [each.copy() for each in stream.values]
        if kind == 1:
            values[window][cell] = (one, two)[choose.randrange(2)][window, cell] + jump(part, choose)
            return replace(stream, values=tuple(values))
        by = jump(part, choose) + choose.choice([-1, 1, 2, 10]) * part.scales.sensitivity
        for levels in (one, two):
            levels[window, cell] += by
        values[window][cell] += by
        return replace(stream, one=one, two=two, values=tuple(values))

    def log_chances(self, part: AdaptivePart, stream: Stream) -> tuple[float, float]:
        over, noisy = Each(cells=CELLS), np.array(stream.values)
        one, two = (
            log_chance(part.rule, part.scales, over, levels, stream.answers, noisy)
            for levels in (stream.one, stream.two)
        )
        return one, two

    def wrong(self, part: AdaptivePart, stream: Stream) -> Iterator[str]:
        levels, over = (stream.one, stream.two), Each(cells=CELLS)
        yield from wrong_groups(part.rule, part.scales, over, levels, stream.answers, np.array(stream.values))


def _possible(left: np.ndarray) -> np.ndarray:
    """Return the windows that leave a group, of these: one after a window that left begins a group, and cannot."""
    found = left.copy()
    found[0] = False
    for window in range(1, len(found)):
        found[window] &= ~found[window - 1]
    return found
