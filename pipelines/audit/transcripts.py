"""Streams of two neighbours that are published alike, and how a policy's streams are made, changed and compared."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Protocol

import numpy as np

from privacy.adaptive.base import Period
from privacy.planning.adaptive_part import AdaptivePart
from privacy.series import Ints

MOST_WINDOWS = 6

FIRSTS = (1, 2, 3, 4)
"""Windows in which a protected span begins."""

FAR = 4096
"""Distance, in widths of the widest noise, at which the answer of a decision is certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Levels of two neighbours, and what is published of both.

    Attributes:
        one, two: Exact levels of the neighbours, int64 [windows, cells].
        answers: Answers of decisions, bool [windows] or [windows, cells].
        values: Published numbers of each window, int64 [numbers] each.
    """

    one: Ints
    two: Ints
    answers: np.ndarray
    values: tuple[Ints, ...]


class Transcripts(Protocol):
    """What the layer of decisions needs of a policy: an entry of a table (pipelines.audit.adaptive)."""

    def untested(self, part: AdaptivePart) -> str | None:
        """Return what of a part is not tested; None: nothing."""
        ...

    def made(self, part: AdaptivePart) -> Iterator[Stream]:
        """Yield streams that are made to cost as much as the plan states; none if the part cannot be tested."""
        ...

    def drawn(self, part: AdaptivePart, choose: Random) -> Stream:
        """Return a random stream."""
        ...

    def changed(self, stream: Stream, part: AdaptivePart, choose: Random) -> Stream:
        """Return a stream with one random change."""
        ...

    def log_chances(self, part: AdaptivePart, stream: Stream) -> tuple[float, float]:
        """Return the logarithms of the probabilities that each neighbour is published so."""
        ...

    def wrong(self, part: AdaptivePart, stream: Stream) -> Iterator[str]:
        """Yield what is wrong with single decisions."""
        ...


def firsts(period: Period) -> tuple[int, ...]:
    """Return the windows in which neighbours may begin to differ."""
    return (0,) if period.span is None else FIRSTS


def moved(one: Ints, period: Period, size: int, first: int, choose: Random) -> Ints:
    """Return the levels of a neighbour: a unit of this size is there or not in the windows from `first` on.

    In each of them it is in one cell, and moves at most once. If a span is protected, either neighbour may be the one
    without the unit in each window; otherwise the same one is, in all of them.

    Args:
        one: Levels of the first neighbour, int64 [windows, cells].
        period: Windows in which the unit may be.
        size: Size of the unit.
        first: The first of these windows.
        choose: Source of random choices.
    """
    two, cells = one.copy(), (choose.randrange(one.shape[1]), choose.randrange(one.shape[1]))
    last = min(len(one), first + period.among)
    moves, sign = choose.randint(first, last), choose.choice([-1, 1])
    for window in range(first, last):
        if period.span is not None:
            sign = choose.choice([-1, 1])
        two[window, cells[window >= moves]] += sign * size
    return two


def widest(part: AdaptivePart) -> float:
    """Return the scale of a sample's noise, of the smallest sample unless units are a fine share of the budget."""
    scales = part.scales
    return scales.sample(1).scale if scales.units < 1000 else scales.whole * 4


def far(part: AdaptivePart) -> int:
    """Return a distance at which the answer of a decision is certain."""
    scales = part.scales
    return FAR * int(np.ceil(max(scales.test or 1, scales.threshold or 1, widest(part))))


def jump(part: AdaptivePart, choose: Random) -> int:
    """Return a random movement of the size of noise."""
    return round(choose.choice([-8, -1, 0, 0, 1, 8]) * max(widest(part), part.scales.test or 1.0))


def random_levels(part: AdaptivePart, windows: int, cells: int, choose: Random) -> Ints:
    """Return small random levels, int64 [windows, cells]."""
    size = part.scales.sensitivity
    return np.array([[choose.randint(0, 3) * size for _ in range(cells)] for _ in range(windows)], dtype=np.int64)
