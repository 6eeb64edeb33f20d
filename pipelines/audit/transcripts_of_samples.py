"""Transcripts of policies that sample or repeat: the published flags, and the sketches of sampled windows.

Separate cells are tested two at a time; sums over cells are those of the plan, over all cells.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np

from pipelines.audit.transcripts import MOST_WINDOWS, Stream, far, firsts, jump, moved, random_levels
from privacy.cells.base import Sketcher
from privacy.cells.each import Each
from privacy.evidence.decisions import allowed, log_chance, wrong_decisions
from privacy.planning.adaptive_part import AdaptivePart
from privacy.series import Ints

CELLS = 2

LONGEST = 40
"""Most windows of streams that are made in a few orders only."""

FEWER_WINDOWS = 3
"""Most windows of streams in all orders, if samples are sums over cells."""

MOST_CELLS = 4096
"""Most cells of a query whose samples are sums over cells."""

PLACES = 8
"""Number of cells of which pairs are tried."""

GOLDEN = (5**0.5 - 1) / 2
"""Step between these cells, so that they are spread along each axis."""

DEEP = 40
"""Distance of the worst score of a private choice from the best one, in scales."""


class OfSamples:
    """`Transcripts` of policies whose publication samples or repeats."""

    def untested(self, part: AdaptivePart) -> str | None:
        return None if _over(part).cells <= MOST_CELLS else f"samples of more than {MOST_CELLS:,} cells"

    def made(self, part: AdaptivePart) -> Iterator[Stream]:
        """Yield, for each order of sampled and repeated windows, neighbours that these windows tell apart most.

        In each window the second level lacks a unit of the first. A sampled window has the last sampled histogram as
        its first level, and publishes the sums of the second one; its private choices have the worst scores. So the
        second distance and the second sums are more likely. A repeated window has its levels far above the last
        published values: the second distance is smaller.
        """
        over, apart = _over(part), far(part)
        if over.cells > MOST_CELLS:
            return
        base, cell = _ground(part, over)
        for first, flags in _orders(part):
            windows = len(flags)
            one, two = (np.zeros((windows, over.cells), dtype=np.int64) for _ in range(2))
            last, sketch = base, _published(over, base)
            values = []
            for window, sampled in enumerate(flags):
                one[window] = last
                one[window, cell] += 0 if sampled else apart
                two[window] = one[window]
                two[window, cell] -= part.scales.sensitivity if window >= first else 0
                if sampled:
                    last, sketch = two[window], _published(over, two[window])
                values.append(sketch)
            yield Stream(one=one, two=two, answers=np.array(flags), values=tuple(values))

    def drawn(self, part: AdaptivePart, choose: Random) -> Stream:
        over, period = _over(part), part.rule.period
        windows = min(period.among if period.windows is not None else period.among + 2, MOST_WINDOWS)
        one = random_levels(part, windows, over.cells, choose)
        if over.rounds:
            one[:, [choose.randrange(over.cells) for _ in range(3)]] += choose.randint(0, 4 * _mass(part))
        flags = np.array([choose.random() < 0.5 for _ in range(windows)])
        values = tuple(_published(over, level, choose) for level in one)
        first = choose.randint(0, windows - 1) if period.span is not None else 0
        two = moved(one, period, part.scales.sensitivity, first, choose)
        stream = Stream(one=one, two=two, answers=flags, values=values)
        return stream if over.rounds else _shifted(stream, part, range(windows), choose)

    def changed(self, stream: Stream, part: AdaptivePart, choose: Random) -> Stream:
        """Return a stream with another flag, another published value, or other levels of both in one window."""
        window, kind = choose.randrange(len(stream.answers)), choose.randrange(3)
        if kind == 0:
            flags = stream.answers.copy()
            flags[window] = not flags[window]
            return replace(stream, answers=flags)
        if kind == 1:
            return _shifted(stream, part, [window], choose)
        one, two = stream.one.copy(), stream.two.copy()
        by = choose.choice([-1, 1, 2, 10]) * part.scales.sensitivity
        cell = choose.randrange(one.shape[1])
        one[window, cell] += by
        two[window, cell] += by
        return replace(stream, one=one, two=two)

    def log_chances(self, part: AdaptivePart, stream: Stream) -> tuple[float, float]:
        over = _over(part)
        one, two = (
            log_chance(part.rule, part.scales, over, levels, stream.answers.tolist(), stream.values)
            for levels in (stream.one, stream.two)
        )
        return one, two

    def wrong(self, part: AdaptivePart, stream: Stream) -> Iterator[str]:
        levels = (stream.one, stream.two)
        yield from wrong_decisions(part.rule, part.scales, _over(part), levels, stream.answers.tolist(), stream.values)


def _over(part: AdaptivePart) -> Sketcher:
    return Each(cells=CELLS) if part.over.alone else part.over


def _mass(part: AdaptivePart) -> int:
    """Return a size of a histogram's content at which scores differ by many scales of private choices."""
    if part.scales.splits is None:
        return 0
    return DEEP * math.ceil(part.scales.split(part.rule.fewest if part.scales.units < 1000 else part.scales.units // 4))


def _published(over: Sketcher, level: Ints, choose: Random | None = None) -> Ints:
    """Return the exact sketch of a histogram, with the worst private choices; sometimes others if they are random."""

    def pick(scores: Ints) -> int:
        return int(scores.argmin()) if choose is None or choose.random() < 0.7 else choose.randrange(len(scores))

    return over.sketch(level, pick, lambda size: np.zeros(size, dtype=np.int64))


def _shifted(stream: Stream, part: AdaptivePart, windows: Iterable[int], choose: Random) -> Stream:
    """Return a stream with other noise in a published sum of each of these windows."""
    values, over = [*stream.values], _over(part)
    for window in windows:
        level = stream.one[window] if choose.random() < 0.5 else stream.two[window]
        sketch = _published(over, level, choose) if over.rounds else values[window].copy()
        sketch[-1 - choose.randrange(2 if over.rounds else len(sketch))] += jump(part, choose)  # sums come last
        values[window] = sketch
    return replace(stream, values=tuple(values))


def _ground(part: AdaptivePart, over: Sketcher) -> tuple[Ints, int]:
    """Return the histogram and the cell of a unit of which one sample tells most.

    Private choices tell most if they are far from the best ones: with most of the content in two cells, one of them
    the unit's, a cut that has both on one side is bad, and becomes better if the unit goes, while the best one becomes
    worse.
    """
    if over.alone:
        return np.zeros(over.cells, dtype=np.int64), 0
    places = {int(number * GOLDEN % 1 * over.cells) for number in range(PLACES)}
    tried = []
    for cell, other in product(places, places):
        base = np.zeros(over.cells, dtype=np.int64)
        if over.rounds:
            base[[cell, other]] = _mass(part), 4 * _mass(part)
        tried.append((_told(part, over, base, cell), cell, base))
    _, cell, base = max(tried, key=lambda each: each[0])
    return base, cell


def _told(part: AdaptivePart, over: Sketcher, base: Ints, cell: int) -> float:
    """Return the loss of a sample of a histogram, and of it without the unit; infinite if it is impossible."""
    one, two = base[None, :], base[None, :].copy()
    two[0, cell] -= part.scales.sensitivity
    values = [_published(over, two[0])]
    chances = [log_chance(part.rule, part.scales, over, levels, [True], values) for levels in (one, two)]
    return math.inf if math.isinf(min(chances)) else chances[1] - chances[0]


def _orders(part: AdaptivePart) -> Iterator[tuple[int, tuple[bool, ...]]]:
    """Yield windows in which neighbours begin to differ, with possible orders of sampled windows, each once."""
    seen = set()
    for first, wanted in _wanted(part):
        flags = allowed(part.rule, part.scales, _over(part), wanted)
        if (first, flags) not in seen:
            seen.add((first, flags))
            yield first, flags


def _wanted(part: AdaptivePart) -> Iterator[tuple[int, tuple[bool, ...]]]:
    """Yield windows in which neighbours begin to differ, with orders of answers: of few windows, all orders."""
    most = MOST_WINDOWS if part.over.alone else FEWER_WINDOWS
    for first in firsts(part.rule.period):
        windows = first + part.rule.period.among
        for later in product((False, True), repeat=min(windows, most) - 1):
            yield first, (True, *later)
        if windows > most:
            last = min(windows, LONGEST) - 1
            yield from ((first, tuple(place % step == 0 for place in range(last + 1))) for step in (1, 2, 4, last))
