"""Which published numbers a smoothed number is made from: those of its segment, up to itself.

A segment has 2 `MEMORY` numbers, and its later half, of the first segment both, is smoothed in it. So each number is
made from the last 128 to 256 (the first ones from all before them), and the work grows with the numbers and not with
their square. Where segments lie depends on nothing but the schedule: a number that is smoothed stays as it is.
"""

from dataclasses import dataclass

MEMORY = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Numbers `first` to `last` - 1, of which those from `kept` on are smoothed."""

    first: int
    kept: int
    last: int


def segments(numbers: int, horizon: int | None) -> list[Segment]:
    """Those of the first so many numbers of a series, each whole: it may hold numbers that are not published yet.

    Args:
        horizon: how many numbers there will ever be; None without end.

    >>> [(s.first, s.kept, s.last) for s in segments(300, 365)]
    [(0, 0, 256), (128, 256, 365)]
    """
    end = numbers + 2 * MEMORY if horizon is None else horizon
    kept = [0, *range(2 * MEMORY, numbers, MEMORY)]
    return [Segment(first=max(0, k - MEMORY), kept=k, last=min(end, max(k + MEMORY, 2 * MEMORY))) for k in kept]
